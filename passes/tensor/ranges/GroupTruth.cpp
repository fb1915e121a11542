//===- GroupTruth.cpp - masks for groups of rows --------------------------===//
//
// Whether a mask holds for some or for every row of a group. Comparisons follow from the least and
// the greatest values of their sides, which follow from the group's first and last row, or are
// reduced over the rows of the group.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/BoundsApart.h"
#include "passes/analysis/Conditions.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/tensor/ranges/ChainMasks.h"
#include "passes/tensor/ranges/DivideIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

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
