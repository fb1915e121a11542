//===- ChainMasks.cpp - masks of fused attention loops, for groups of rows ===//
#include "passes/tensor/ranges/ChainMasks.h"

#include "passes/analysis/BoundsApart.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Conditions.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/tensor/ranges/DivideIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

/// Launches more take as long as so many scores.
static constexpr double fewestScores = 1 << 24;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

llvm::StringRef ChainMask::nameOf(unsigned position) {
  return cast<StringAttr>(compute.getIndexNames()[position]).getValue();
}

/// Does a part of the mask admit several ranges of terms, which tiling leaves out the steps between
/// (BlockUnions.cpp)?
static bool admitsRanges(Value condition, ReduceOp reduce) {
  SmallVector<Value> parts;
  addParts<arith::AndIOp>(condition, parts);
  return llvm::any_of(parts, [&](Value part) {
    if (!part.getDefiningOp<arith::OrIOp>())
      return false;
    SmallVector<Value> cases;
    addParts<arith::OrIOp>(part, cases);
    return llvm::all_of(cases, [&](Value bound) {
      auto compare = bound.getDefiningOp<arith::CmpIOp>();
      return compare && compare.getLhs() == reduce.getIndex(0) &&
             !reduce.getBody().isAncestor(compare.getRhs().getParentRegion());
    });
  });
}

bool tk::vanishes(Value term, ArrayRef<Value> scores) {
  Operation *op = term.getDefiningOp();
  if (auto weight = dyn_cast_or_null<ExpDiffOp>(op))
    return llvm::is_contained(scores, weight.getA());
  return isa_and_nonnull<arith::MulFOp, arith::TruncFOp, arith::ExtFOp>(op) &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return vanishes(operand, scores); });
}

/// Is `value` computed in `compute` from what a tensor has?
static bool readsTensors(Value value, ComputeOp compute) {
  Operation *op = value.getDefiningOp();
  return op && compute->isProperAncestor(op) &&
         (isa<LoadOp>(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
            return readsTensors(operand, compute);
          }));
}

SmallVector<Value> tk::findScores(ReduceOp reduce) {
  SmallVector<Value> scores;
  for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k) {
    Value term = reduce.getYield().getValues()[k];
    if (reduce.getKind(k) == ReduceKind::Sum && vanishes(term, scores))
      continue;
    if (reduce.getKind(k) != ReduceKind::Max)
      return {};
    scores.push_back(term);
  }
  return scores;
}

/// What selects a score that is -inf elsewhere; null if nothing does.
static Value conditionOf(Value score) {
  auto masked = score.getDefiningOp<arith::SelectOp>();
  return masked && isIdentity(masked.getFalseValue(), ReduceKind::Max) ? masked.getCondition()
                                                                       : Value();
}

bool tk::areMasked(ArrayRef<Value> scores) { return llvm::any_of(scores, conditionOf); }

void tk::maskScores(ReduceOp reduce, ArrayRef<Value> scores, Value holds) {
  for (Value score : llvm::SmallSetVector<Value, 2>(scores.begin(), scores.end())) {
    OpBuilder builder(reduce.getContext());
    builder.setInsertionPointAfterValue(score);
    Location loc = score.getLoc();
    Value none = createIdentity(builder, loc, ReduceKind::Max, score.getType());
    auto masked = arith::SelectOp::create(builder, loc, holds, score, none);
    score.replaceAllUsesExcept(masked, masked);
  }
}

/// The one condition by which all scores under a maximum are selected, and without which all other
/// terms vanish.
static Value findCondition(ReduceOp reduce) {
  SmallVector<Value> scores = findScores(reduce);
  Value condition = scores.empty() ? Value() : conditionOf(scores.front());
  if (llvm::any_of(scores, [&](Value score) { return conditionOf(score) != condition; }))
    return {};
  if (!condition || condition.getParentBlock() != reduce.getBlock() ||
      admitsRanges(condition, reduce))
    return {};
  SmallVector<Operation *> slice = getSlice(condition, reduce.getBlock());
  const bool isPlain = llvm::none_of(slice, [](Operation *op) { return op->getNumRegions() > 0; });
  return isPlain && readsTensors(condition, reduce->getParentOfType<ComputeOp>()) ? condition
                                                                                  : Value();
}

bool tk::findIndices(ChainMask &mask, ValueRange conditions) {
  ComputeOp compute = mask.compute;
  Dependence onTerm(ValueRange{mask.getTerm()});
  SmallVector<ReduceOp> products;
  SmallVector<LoadOp> factors;
  mask.reduce.getBody().walk([&](ReduceOp product) {
    if (!isContraction(product))
      return;
    products.push_back(product);
    product.getBody().walk([&](LoadOp load) {
      if (onTerm.on(load))
        factors.push_back(load);
    });
  });
  if (factors.empty())
    return false;
  double scores = guessSize(mask.kernel, mask.extent);
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    Dependence onIndex(ValueRange{compute.getIndex(p)});
    const bool isOfScores =
        llvm::any_of(products, [&](ReduceOp product) { return onIndex.on(product.getResult(0)); });
    if (isOfScores)
      scores *= guessSize(mask.kernel, compute.getExtents()[p]);
    if (llvm::none_of(conditions, [&](Value condition) { return onIndex.on(condition); }))
      continue;
    if (llvm::any_of(factors, [&](LoadOp load) { return onIndex.on(load); })) {
      mask.batch.push_back(p);
    } else if (mask.row || !isOfScores) {
      return false;
    } else {
      mask.row = p;
    }
  }
  return (mask.row || !mask.batch.empty()) && scores >= fewestScores;
}

std::optional<ChainMask> tk::matchChainMask(KernelOp kernel, ComputeOp compute, ReduceOp reduce) {
  if (!reduce.isOnline() || reduce.getNumIndices() != 1 || reduce->getParentOp() != compute)
    return std::nullopt;
  ChainMask mask = {kernel, compute, reduce, findCondition(reduce), {}, {}, {}};
  mask.extent = wholeExtent(reduce, 0, compute);
  if (!mask.holds || !mask.extent || !isKernelLevel(mask.extent, compute) ||
      !findIndices(mask, mask.holds))
    return std::nullopt;
  return mask;
}

/// Is `at`, an index over the terms, below `end` for all of them?
static bool isWithinExtent(ChainMask &mask, Value at, Value end) {
  if (at == mask.getTerm())
    return isSameExtent(end, mask.extent);
  auto quotient = at.getDefiningOp<FloorDivOp>();
  auto count = end.getDefiningOp<FloorDivOp>();
  std::optional<int64_t> by =
      quotient && count ? getConstantIntValue(quotient.getRhs()) : std::nullopt;
  return by && *by > 0 && quotient.getLhs() == mask.getTerm() &&
         by == getConstantIntValue(count.getRhs()) && isSameExtent(count.getLhs(), mask.extent) &&
         isMultipleOf(mask.kernel, mask.extent, *by);
}

bool tk::canMove(ChainMask &mask, ValueRange values) {
  SmallVector<Value> others;
  for (unsigned p = 0; p < mask.compute.getNumIndices(); ++p)
    if (p != mask.row && !llvm::is_contained(mask.batch, p))
      others.push_back(mask.compute.getExtents()[p]);
  Dependence onOthers(others);
  SmallVector<Value> work(values);
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !mask.compute->isProperAncestor(op) || !seen.insert(op->getResult(0)).second)
      continue;
    if (op->getNumRegions() > 0 || !isInBoundsApart(op, onOthers))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

Value tk::createGroupCount(OpBuilder &builder, ChainMask &mask, int64_t size) {
  Location loc = mask.reduce.getLoc();
  Value last = arith::ConstantIndexOp::create(builder, loc, size - 1);
  Value groups = arith::ConstantIndexOp::create(builder, loc, size);
  Value rows = arith::AddIOp::create(builder, loc, mask.compute.getExtents()[*mask.row], last);
  return FloorDivOp::create(builder, loc, rows.getType(), rows, groups);
}

ComputeOp
tk::createOverGroups(ChainMask &mask, int64_t size, std::optional<FurtherIndex> further,
                     ArrayRef<StringRef> names,
                     llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> createValues) {
  OpBuilder builder(mask.compute);
  SmallVector<std::string> indices, results;
  SmallVector<Value> extents;
  for (unsigned p : mask.batch) {
    indices.push_back(mask.nameOf(p).str());
    extents.push_back(mask.compute.getExtents()[p]);
  }
  if (mask.row) {
    indices.push_back((mask.nameOf(*mask.row) + ".group").str());
    extents.push_back(createGroupCount(builder, mask, size));
  }
  if (further) {
    indices.push_back(further->name.str());
    extents.push_back(further->extent);
  }
  auto own = cast<StringAttr>(mask.compute.getNames()[0]).getValue();
  for (StringRef name : names)
    results.push_back((own + "." + name).str());
  auto createBody = [&](OpBuilder &body, Location loc, ValueRange places) {
    YieldOp::create(body, loc, createValues(body, places));
  };
  return ComputeOp::create(builder, mask.holds.getLoc(), llvm::to_vector_of<StringRef>(indices),
                           extents, SmallVector<Type>(names.size(), builder.getI32Type()),
                           llvm::to_vector_of<StringRef>(results),
                           ArrayRef<SmallVector<unsigned>>{}, createBody);
}

SmallVector<Value> tk::createGroupIndices(OpBuilder &builder, ChainMask &mask, int64_t size) {
  SmallVector<Value> indices;
  for (unsigned p : mask.batch)
    indices.push_back(mask.compute.getIndex(p));
  if (mask.row) {
    Location loc = mask.holds.getLoc();
    Value rows = arith::ConstantIndexOp::create(builder, loc, size);
    indices.push_back(FloorDivOp::create(builder, loc, rows.getType(), mask.getRow(), rows));
  }
  return indices;
}

//===----------------------------------------------------------------------===//
// Conditions for groups of rows
//===----------------------------------------------------------------------===//

bool tk::variesWithin(Value value, Value index, int64_t size, ComputeOp compute) {
  if (value == index)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || !compute->isProperAncestor(op))
    return false;
  if (auto quotient = dyn_cast<FloorDivOp>(op); quotient && quotient.getLhs() == index) {
    std::optional<int64_t> by = getConstantIntValue(quotient.getRhs());
    return !by || *by <= 0 || *by % size != 0;
  }
  return llvm::any_of(op->getOperands(),
                      [&](Value operand) { return variesWithin(operand, index, size, compute); });
}

/// Is `value`, a number of 64 bits, one of 32 bits or an index, or computed from such by sums?
/// These do not wrap, as those of what a tensor or a parameter has may.
static bool isFarFromWrapping(Value value) {
  Operation *op = value.getDefiningOp();
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isSignedIntN(32);
  if (auto cast = dyn_cast_or_null<arith::IndexCastOp>(op))
    return cast.getIn().getType().isIndex();
  return isa_and_nonnull<arith::ExtSIOp>(op) ||
         (isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op) &&
          llvm::all_of(op->getOperands(), isFarFromWrapping));
}

/// Do the extremes of `value` follow from those of what it is computed from? Indices do not wrap.
bool GroupTruth::hasParts(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp,
                         arith::IndexCastOp, arith::ExtSIOp>(op) &&
         (value.getType().isIndex() ||
          (value.getType().isInteger(64) && isFarFromWrapping(value))) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isBounded(operand); });
}

bool GroupTruth::isBounded(Value value) {
  if (!varies(value) || value == mask.getRow() || hasParts(value))
    return true;
  Dependence onTerm(ValueRange{mask.getTerm()});
  return !onTerm.on(value) && value.getType().isInteger() && !value.getType().isInteger(1);
}

bool GroupTruth::isKnown(Value condition) {
  if (!varies(condition))
    return true;
  Operation *op = condition.getDefiningOp();
  if (isa<arith::AndIOp>(op))
    return isKnown(op->getOperand(0)) || isKnown(op->getOperand(1));
  if (isa<arith::OrIOp>(op))
    return isKnown(op->getOperand(0)) && isKnown(op->getOperand(1));
  auto compare = dyn_cast<arith::CmpIOp>(op);
  return compare && compare.getPredicate() <= arith::CmpIPredicate::sge &&
         !compare.getLhs().getType().isInteger(1) && isBounded(compare.getLhs()) &&
         isBounded(compare.getRhs());
}

void GroupTruth::begin(OpBuilder &body, Location loc, ValueRange places) {
  for (auto [p, place] : llvm::zip(mask.batch, places))
    ofGroup.map(mask.compute.getIndex(p), place);
  if (mask.row) {
    Value number = arith::ConstantIndexOp::create(body, loc, size);
    firstRow = arith::MulIOp::create(body, loc, places[mask.batch.size()], number);
    endOfRows = arith::AddIOp::create(body, loc, firstRow, number);
    endOfRows = arith::MinSIOp::create(body, loc, mask.compute.getExtents()[*mask.row], endOfRows);
    ofGroup.map(mask.getRow(), firstRow);
  }
  shared = arith::ConstantIndexOp::create(body, loc, 0);
}

Truth GroupTruth::at(OpBuilder &builder, Value term, Value condition) {
  ofTerm = ofGroup;
  ofTerm.map(mask.getTerm(), term);
  return judge(builder, condition);
}

/// Lets loads at terms that the chain may not have, whose bounds depend on rows, be out of bounds.
void GroupTruth::padLoads(Value value) {
  if (mask.reduce.getUpper()[0] == mask.extent)
    return;
  Dependence onTerm(ValueRange{mask.getTerm()});
  for (Operation *op : getSlice(value, mask.reduce.getBlock())) {
    auto load = dyn_cast<LoadOp>(op);
    if (!load || load.getPad() || !onTerm.on(load))
      continue;
    SmallVector<Value> extents = getExtents(mask.kernel, load.getTensor());
    auto isInBounds = [&](auto at) {
      return !onTerm.on(std::get<0>(at)) || isWithinExtent(mask, std::get<0>(at), std::get<1>(at));
    };
    auto copied = ofTerm.lookup(load.getResult()).getDefiningOp<LoadOp>();
    if (copied.getPad() || llvm::all_of(llvm::zip_equal(load.getIndices(), extents), isInBounds))
      continue;
    OpBuilder builder(copied);
    Value pad =
        arith::ConstantOp::create(builder, load.getLoc(), builder.getZeroAttr(load.getType()));
    copied.getPadMutable().assign(pad);
  }
}

/// What does not differ within a group, computed for its first row.
Value GroupTruth::copy(OpBuilder &builder, Value value) {
  Dependence onTerm(ValueRange{mask.getTerm()});
  if (onTerm.on(value)) {
    Value result = cloneFrom(builder, value, mask.compute, ofTerm);
    padLoads(value);
    return result;
  }
  OpBuilder before(shared);
  Value result = cloneFrom(before, value, mask.compute, ofGroup);
  ofTerm.map(value, result);
  return result;
}

/// The extreme of what the rows of a group have.
Value GroupTruth::reduceRows(Value value, ReduceKind kind) {
  OpBuilder before(shared);
  auto createTerm = [&](OpBuilder &body, Location, ValueRange indices) {
    IRMapping ofRow;
    for (unsigned p : mask.batch)
      ofRow.map(mask.compute.getIndex(p), ofGroup.lookup(mask.compute.getIndex(p)));
    ofRow.map(mask.getRow(), indices[0]);
    return cloneFrom(body, value, mask.compute, ofRow);
  };
  return ReduceOp::create(before, value.getLoc(), kind, ArrayRef<StringRef>{mask.nameOf(*mask.row)},
                          firstRow, endOfRows, value.getType(), createTerm)
      .getResult(0);
}

GroupTruth::Interval GroupTruth::bound(OpBuilder &builder, Value value) {
  Location loc = value.getLoc();
  if (!varies(value)) {
    Value same = copy(builder, value);
    return {same, same};
  }
  if (auto known = rows.find(value); known != rows.end())
    return known->second;
  if (value == mask.getRow()) {
    OpBuilder before(shared);
    Value one = arith::ConstantIndexOp::create(before, loc, 1);
    return rows[value] = {firstRow, arith::SubIOp::create(before, loc, endOfRows, one)};
  }
  if (!hasParts(value)) {
    Interval interval = {reduceRows(value, ReduceKind::Min), reduceRows(value, ReduceKind::Max)};
    return rows[value] = interval;
  }
  Operation *op = value.getDefiningOp();
  SmallVector<Value> least, greatest;
  for (auto [n, operand] : llvm::enumerate(op->getOperands())) {
    Interval part = bound(builder, operand);
    if (isa<arith::SubIOp>(op) && n == 1)
      std::swap(part.least, part.greatest);
    least.push_back(part.least);
    greatest.push_back(part.greatest);
  }
  auto apply = [&](ValueRange operands) {
    OperationState state(loc, op->getName());
    state.addOperands(operands);
    state.addTypes(value.getType());
    return builder.create(state)->getResult(0);
  };
  Value first = apply(least);
  return {first, apply(greatest)};
}

/// What `condition` is for the group, at `builder`, where a term is taken.
Truth GroupTruth::judge(OpBuilder &builder, Value condition) {
  using Predicate = arith::CmpIPredicate;
  Location loc = condition.getLoc();
  if (!varies(condition)) {
    Value same = copy(builder, condition);
    return {same, same};
  }
  Operation *op = condition.getDefiningOp();
  if (isa<arith::AndIOp, arith::OrIOp>(op)) {
    Truth a = judge(builder, op->getOperand(0)), b = judge(builder, op->getOperand(1));
    auto join = [&](Value x, Value y) -> Value {
      return isa<arith::AndIOp>(op) ? arith::AndIOp::create(builder, loc, x, y).getResult()
                                    : arith::OrIOp::create(builder, loc, x, y).getResult();
    };
    Value some = join(a.some, b.some);
    return {some, join(a.every, b.every)};
  }
  auto constant = [&](bool value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
  };
  if (!isKnown(condition))
    return {constant(true), constant(false)};
  auto compare = cast<arith::CmpIOp>(op);
  Interval a = bound(builder, compare.getLhs()), b = bound(builder, compare.getRhs());
  auto holds = [&](Predicate predicate, Value x, Value y) -> Value {
    return arith::CmpIOp::create(builder, loc, predicate, x, y);
  };
  auto both = [&](Value x, Value y) -> Value { return arith::AndIOp::create(builder, loc, x, y); };
  Predicate predicate = compare.getPredicate();
  if (predicate == Predicate::eq || predicate == Predicate::ne) {
    Value isLess = holds(Predicate::sle, a.least, b.greatest);
    Value meet = both(isLess, holds(Predicate::sle, b.least, a.greatest));
    Value isMore = holds(Predicate::sge, a.least, b.greatest);
    Value same = both(isMore, holds(Predicate::sge, b.least, a.greatest));
    if (predicate == Predicate::eq)
      return {meet, same};
    Value yes = constant(true);
    Value some = arith::XOrIOp::create(builder, loc, same, yes);
    return {some, arith::XOrIOp::create(builder, loc, meet, yes)};
  }
  if (predicate == Predicate::sgt || predicate == Predicate::sge) {
    std::swap(a, b);
    predicate = predicate == Predicate::sgt ? Predicate::slt : Predicate::sle;
  }
  Value some = holds(predicate, a.least, b.greatest);
  return {some, holds(predicate, a.greatest, b.least)};
}
