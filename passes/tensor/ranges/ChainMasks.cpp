//===- ChainMasks.cpp - masks of fused attention loops, for groups of rows ===//
#include "passes/tensor/ranges/ChainMasks.h"
#include "passes/machine/limits/Operands.h"

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

using namespace limits::chain_masks;

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
