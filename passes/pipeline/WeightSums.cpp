//===- WeightSums.cpp - rows of weights, and products that sum them -------===//
#include "passes/pipeline/WeightSums.h"
#include "passes/machine/limits/Loops.h"

#include "dialects/tkgpu/TkGpuProducts.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::weight_sums;

/// The tile that is rounded to become `weights`; null if that is none.
static Value roundedFrom(Value weights) {
  if (auto convert = weights.getDefiningOp<ConvertLayoutOp>())
    weights = convert.getSource();
  auto round = weights.getDefiningOp<arith::TruncFOp>();
  return round ? round.getIn() : Value();
}

/// Does `op` add up rows of `tile`, for this use alone?
static bool sumsRows(Operation *op, Value tile) {
  auto isOfRows = [&](auto reduce) {
    return reduce && reduce.getKind() == ReduceKind::Sum && reduce.getSource() == tile &&
           reduce.getAxis() == 1 && reduce->hasOneUse();
  };
  return isOfRows(dyn_cast_or_null<gpu::ReduceOp>(op)) ||
         isOfRows(dyn_cast_or_null<ReduceInThreadsOp>(op));
}

std::optional<StepSum> tk::stepSumOf(Value sum, Value weights) {
  Value tile = roundedFrom(weights);
  auto add = sum.getDefiningOp<arith::AddFOp>();
  if (!tile || !add)
    return std::nullopt;
  for (unsigned side : {0, 1})
    if (Operation *rows = add->getOperand(side).getDefiningOp(); sumsRows(rows, tile))
      return StepSum{add->getOperand(1 - side), add, rows};
  return std::nullopt;
}

bool tk::isDivisor(Value sum) {
  return llvm::all_of(sum.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<arith::DivFOp, DivOrZeroOp>(user))
      return use.getOperandNumber() == 1;
    if (isa<scf::YieldOp>(user) && isa<scf::IfOp>(user->getParentOp()))
      return isDivisor(user->getParentOp()->getResult(use.getOperandNumber()));
    if (auto parts = dyn_cast<gpu::ReduceOp>(user))
      return parts.getKind() == ReduceKind::Sum && isDivisor(parts.getResult());
    return isa<arith::MulFOp, BroadcastOp, ExtractOp, ConvertLayoutOp>(user) &&
           isDivisor(user->getResult(0));
  });
}

bool tk::canHaveOnes(SharedType operand) {
  if (operand.getShape().size() != 2 || operand.getInterleave() != 1 || operand.getPitch() != 0 ||
      operand.getShape()[1] + kColumnsOfOnes > kMostColumns)
    return false;
  const int64_t swizzle = operand.getHardwareSwizzle().value_or(0);
  // As rows behind one panel, or as a panel behind the others.
  return operand.getAxisOrder().front() == 0 ? operand.getPanel() == 0 && swizzle == 128
                                             : swizzle != 0;
}

AllocSharedOp tk::findBesideOnes(scf::ForOp loop) {
  auto dots = llvm::to_vector(loop.getOps<WarpgroupDotOp>());
  if (dots.empty() || dots.back().getAccumulate() || isPromoted(dots.back()))
    return {};
  SharedType operand = dots.back().getB().getType();
  auto alloc = dots.back().getB().getDefiningOp<AllocSharedOp>();
  if (!alloc || operand.getElementType().getIntOrFloatBitWidth() != 16 || !canHaveOnes(operand))
    return {};
  for (auto [carried, yielded, result] :
       llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues(), loop.getResults()))
    if (std::optional<StepSum> sum = stepSumOf(yielded, dots.back().getA());
        sum && sum->before == carried && isDivisor(result))
      return alloc;
  return {};
}
