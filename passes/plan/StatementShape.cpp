//===- StatementShape.cpp - the properties that decide a schedule ---------===//
#include "passes/plan/StatementShape.h"

#include "passes/analysis/OffsetRanges.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/limits/Elements.h"
#include "passes/plan/MergeIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

using namespace limits::analyze_statement;

Value StatementShape::endOf(Value index) {
  auto arg = cast<BlockArgument>(index);
  Operation *parent = arg.getOwner()->getParentOp();
  if (auto op = dyn_cast<ComputeOp>(parent))
    return op.getExtents()[arg.getArgNumber()];
  if (auto op = dyn_cast<ReduceOp>(parent))
    return op.getUpper()[arg.getArgNumber()];
  return cast<ScanOp>(parent).getUpper();
}

Value StatementShape::endWithoutMask(Value index) {
  SmallVector<Value> work = {endOf(index)};
  while (!work.empty()) {
    Value end = work.pop_back_val();
    if (llvm::is_contained(compute.getExtents(), end))
      return end;
    if (auto least = end.getDefiningOp<arith::MinSIOp>())
      llvm::append_range(work, least->getOperands());
  }
  return endOf(index);
}

bool StatementShape::startsAtZero(Value index) {
  auto arg = cast<BlockArgument>(index);
  Operation *parent = arg.getOwner()->getParentOp();
  if (auto op = dyn_cast<ReduceOp>(parent))
    return getConstantIndex(op.getLower()[arg.getArgNumber()]) == 0;
  if (auto op = dyn_cast<ScanOp>(parent))
    return getConstantIndex(op.getLower()) == 0;
  return true;
}

std::optional<int64_t> StatementShape::lengthOfPart(Value index) {
  auto arg = cast<BlockArgument>(index);
  auto reduce = dyn_cast<ReduceOp>(arg.getOwner()->getParentOp());
  auto end = reduce ? endOf(index).getDefiningOp<arith::MinSIOp>() : nullptr;
  if (!end)
    return std::nullopt;
  for (Value operand : end->getOperands())
    if (auto sum = operand.getDefiningOp<arith::AddIOp>())
      if (sum.getLhs() == reduce.getLower()[arg.getArgNumber()])
        return getConstantIndex(sum.getRhs());
  return std::nullopt;
}

std::optional<int64_t> StatementShape::upperOf(Value index) {
  if (isMergedIntoOther(index))
    return 1;
  if (SmallVector<Value> merged = getMergedIndices(index); !merged.empty()) {
    int64_t product = 1;
    for (Value part : merged) {
      std::optional<int64_t> upper = getSizeFact(kernel, endOf(part)).upper;
      if (!upper || *upper > std::numeric_limits<int32_t>::max() / product)
        return std::nullopt;
      product *= *upper;
    }
    return product;
  }
  std::optional<int64_t> upper = getSizeFact(kernel, endOf(index)).upper;
  std::optional<int64_t> length = lengthOfPart(index);
  return upper && length ? std::min(*upper, *length) : length ? length : upper;
}

StringRef StatementShape::nameOf(Value index) {
  auto arg = cast<BlockArgument>(index);
  Operation *parent = arg.getOwner()->getParentOp();
  if (auto op = dyn_cast<ComputeOp>(parent))
    return cast<StringAttr>(op.getIndexNames()[arg.getArgNumber()]).getValue();
  if (auto op = dyn_cast<ReduceOp>(parent))
    return cast<StringAttr>(op.getIndexNames()[arg.getArgNumber()]).getValue();
  return cast<ScanOp>(parent).getIndexName();
}

gpu::TargetAttr tk::getWholeTarget(KernelOp kernel) {
  auto target = kernel->getParentOp()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  return target ? target : gpu::TargetAttr::get(kernel.getContext(), 80, 101376, 108, false);
}

gpu::TargetAttr tk::getTarget(KernelOp kernel) {
  gpu::TargetAttr target = getWholeTarget(kernel);
  if (auto shared = kernel->getParentOp()->getAttrOfType<IntegerAttr>(planningSharedAttrName))
    target = gpu::TargetAttr::get(kernel.getContext(), target.getArch(), shared.getInt(),
                                  target.getProcessors(), target.getHopper());
  return target;
}

/// Does one of the bounds that `of` gives follow from parallel index `p` of all results?
static bool doBoundsFollow(ComputeOp compute, unsigned p,
                           function_ref<ValueRange(tk::ReduceOp)> of) {
  bool found = false;
  for (unsigned r = 0; r < compute.getNumResults(); ++r)
    if (!llvm::is_contained(compute.getIndicesOf(r), p))
      return false;
  compute.getBody().walk([&](tk::ReduceOp reduction) {
    SmallVector<Value> work(of(reduction));
    while (!work.empty()) {
      Value value = work.pop_back_val();
      found |= value == compute.getIndex(p);
      if (Operation *op = value.getDefiningOp())
        if (isa<arith::AddIOp, arith::MinSIOp, arith::MaxSIOp>(op))
          llvm::append_range(work, op->getOperands());
    }
  });
  return found;
}

bool tk::boundsReduction(ComputeOp compute, unsigned p) {
  return doBoundsFollow(compute, p, [](tk::ReduceOp op) -> ValueRange { return op.getUpper(); });
}

bool tk::beginsReduction(ComputeOp compute, unsigned p) {
  return doBoundsFollow(compute, p, [](tk::ReduceOp op) -> ValueRange { return op.getLower(); });
}

bool tk::runsOneByOne(Value value, Value index) {
  if (value == index)
    return true;
  auto add = value.getDefiningOp<arith::AddIOp>();
  return add && (runsOneByOne(add.getLhs(), index) || runsOneByOne(add.getRhs(), index));
}

bool tk::mayRunAlong(Value place, Value index) {
  Operation *op = place.getDefiningOp();
  if (place == index || !op)
    return place == index;
  if (isa<FloorDivOp, FloorModOp>(op))
    return mayRunAlong(op->getOperand(0), index);
  auto mayOperand = [&](Value value) { return mayRunAlong(value, index); };
  // A loaded offset is the same for neighbours along an index that is added to it.
  if (isa<arith::AddIOp>(op))
    for (auto [offset, other] : {std::pair(op->getOperand(0), op->getOperand(1)),
                                 std::pair(op->getOperand(1), op->getOperand(0))})
      if (isLoadedBound(offset) && !isLoadedBound(other) && !getIterationIndices(other).empty())
        return mayOperand(other);
  if (isa<arith::MulIOp>(op) && llvm::none_of(op->getOperands(), [](Value factor) {
        return getConstantIndex(factor).value_or(longestStep + 1) <= longestStep;
      }))
    return false;
  return llvm::any_of(op->getOperands(), mayOperand);
}
