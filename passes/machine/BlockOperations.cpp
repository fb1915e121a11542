//===- BlockOperations.cpp - what one block does: arithmetic --------------===//
#include "passes/machine/BlockWalk.h"
#include "passes/machine/OperationCost.h"

#include "dialects/tkgpu/TkGpuCountOps.h"
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "dialects/tkgpu/TkGpuHistogramOps.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "dialects/tkgpu/TkGpuRepeats.h"
#include "dialects/tkgpu/TkGpuSortOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace tk {

/// Instructions of one step of an exchange between lanes: a shuffle, and what it is combined by.
static constexpr double instructionsOfExchange = 2;
/// Exchanges between all lanes of a warp.
static constexpr double stepsOfWarp = 5;

/// Cycles of an atomic addition to shared memory by a warp whose lanes add to random words, some of
/// which lie in one bank.
static constexpr double conflictsOfAdditions = 4;
/// Instructions of such an addition: the test of the bin, the address, the branch and the addition.
static constexpr double instructionsOfAddition = 5;

/// The same of floats, which lanes with one key add one after the other: a load and a store in each
/// of a few rounds, beside the search for lanes with the same key.
static constexpr double conflictsOfOrdered = 10, instructionsOfOrdered = 40;

/// Instructions of a step of a sort for each element: to order two elements of a thread, or to keep
/// one of two that threads exchange, through lanes or through shared memory. A number of 64 bits is
/// two.
static constexpr double instructionsOfOrder = 3, instructionsOfKept = 6;

static double threadBytes(Type type) {
  return countThreadElements(type) * elementBytes(getElementTypeOrSelf(type));
}

void BlockWalk::addShared(AccessCost cost, double times) {
  counts.work.sharedBytes += cost.bytes * times;
  counts.work.instructions += cost.accesses * times;
}

/// A bitonic sort compares along bit b of an element's number in as many steps as there are bits
/// from b on. The lower bits are those of a thread's elements, then those of the lanes.
void BlockWalk::addSort(gpu::SortOp sort, double times) {
  constexpr int64_t lanes = 32, bytes = 8;
  LaunchWork &work = counts.work;
  const double elements = countElements(sort.getResult().getType());
  const auto all = static_cast<uint64_t>(elements);
  const unsigned bits = llvm::Log2_64(all),
                 ofThread =
                     llvm::Log2_64(all / lanes / static_cast<uint64_t>(function.getBlockWarps())),
                 ofWarp = ofThread + llvm::Log2_64(lanes);
  double inThreads = 0, inWarps = 0, inBlock = 0;
  for (unsigned bit = 0; bit < bits; ++bit)
    (bit < ofThread ? inThreads : bit < ofWarp ? inWarps : inBlock) += bits - bit;
  work.instructions +=
      elements * (instructionsOfOrder * inThreads + instructionsOfKept * (inWarps + inBlock)) *
      times;
  // Shuffles take the pipeline of shared memory.
  work.sharedBytes += elements * bytes * (inWarps + 2 * inBlock + 4) * times;
  work.barriers += (2 * inBlock + 4) * times;
}

bool BlockWalk::visitShared(Operation *op, double times) {
  LaunchWork &work = counts.work;
  auto load = dyn_cast<gpu::LocalLoadOp>(op);
  if (SmallVector<int64_t> repeats = load ? gpu::repeatsOf(load) : SmallVector<int64_t>();
      !repeats.empty()) {
    // Each thread reads a stored element once.
    double words = countThreadElements(load.getType());
    if (gpu::LayoutAttr layout = gpu::getLayout(load.getType()))
      for (gpu::LayoutBit bit : layout.getRegisterBits())
        words /= bit.step < repeats[bit.axis] ? 2 : 1;
    work.sharedBytes += words * elementBytes(getElementTypeOrSelf(load.getType())) * times;
    work.instructions += words * times;
  } else if (load && !load.getMatrix()) {
    addShared(costOfShared(load.getSource().getType(), load.getType(), load.getVector()), times);
  } else if (auto store = dyn_cast<gpu::LocalStoreOp>(op); store && !store.getMatrix()) {
    addShared(costOfShared(store.getTarget().getType(),
                           cast<RankedTensorType>(store.getValue().getType()), store.getVector()),
              times);
  } else if (isa<gpu::LocalLoadOp, gpu::PrivateLoadOp>(op)) {
    work.sharedBytes += threadBytes(op->getResult(0).getType()) * times;
    work.instructions += countThreadElements(op->getResult(0).getType()) * times / 4;
  } else if (isa<gpu::LocalStoreOp, gpu::PrivateStoreOp>(op)) {
    work.sharedBytes += threadBytes(op->getOperand(0).getType()) * times;
    work.instructions += countThreadElements(op->getOperand(0).getType()) * times / 4;
  } else if (auto convert = dyn_cast<gpu::ConvertLayoutOp>(op)) {
    gpu::LayoutAttr from = gpu::getLayout(convert.getSource().getType());
    gpu::LayoutAttr to = gpu::getLayout(convert.getType());
    if (!from || !to)
      return true;
    gpu::Conversion conversion = gpu::classifyConversion(from, to);
    if (conversion == gpu::Conversion::Shuffle)
      work.instructions += countThreadElements(convert.getType()) * times * instructionsOfExchange;
    if (conversion != gpu::Conversion::Shared)
      return true;
    work.sharedBytes +=
        (threadBytes(convert.getSource().getType()) + threadBytes(convert.getType())) * times;
    work.barriers += 2 * times;
  } else if (auto histogram = dyn_cast<gpu::HistogramOp>(op)) {
    constexpr double bytesOfCounter = 4, barriers = 3;
    const double terms = countThreadElements(histogram.getBins().getType());
    const double counters = countElements(histogram.getResult().getType());
    const bool isFloat = getElementTypeOrSelf(histogram.getResult().getType()).isF32();
    const double copies = isFloat ? function.getBlockWarps() : 1;
    const double conflicts = isFloat ? conflictsOfOrdered : conflictsOfAdditions;
    work.sharedBytes += (terms * conflicts + 2 * copies * counters) * bytesOfCounter * times;
    work.instructions += (terms * (isFloat ? instructionsOfOrdered : instructionsOfAddition) +
                          2 * copies * counters) *
                         times;
    work.barriers += barriers * times;
  } else if (auto sort = dyn_cast<gpu::SortOp>(op)) {
    addSort(sort, times);
  } else if (isa<gpu::BarrierOp, gpu::PhaseWaitOp, gpu::NoneNegativeOp, gpu::LastBlockOp,
                 gpu::AllFiniteOp>(op)) {
    work.barriers += times;
  } else {
    return false;
  }
  return true;
}

/// Whether a product's accumulator lies as mma.sync leaves it, see mmaAccumulatorLayout.
static bool isFragment(gpu::LayoutAttr layout) {
  if (!layout || layout.getRank() != 2 || layout.getLaneBits().size() != 5 ||
      layout.getRegisterBits().size() < 2)
    return false;
  auto is = [](gpu::LayoutBit bit, int32_t axis, int64_t step) {
    return bit.axis == axis && bit.step == step;
  };
  ArrayRef<gpu::LayoutBit> lanes = layout.getLaneBits(), registers = layout.getRegisterBits();
  return is(lanes[0], 1, 2) && is(lanes[1], 1, 4) && is(lanes[2], 0, 1) && is(lanes[3], 0, 2) &&
         is(lanes[4], 0, 4) && is(registers[0], 1, 1) && is(registers[1], 0, 8);
}

/// Is `op` part of the instruction of its only user: the product of a multiply-add, or a sign?
static bool isWithinUser(Operation *op) {
  if (!op->hasOneUse())
    return false;
  Operation *user = *op->user_begin();
  if (isa<arith::MulFOp>(op))
    return isa<arith::AddFOp, arith::SubFOp>(user);
  return isa<math::AbsFOp, arith::NegFOp>(op) &&
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(user);
}

/// What the element of a pairwise contraction costs a thread. A thread computes what depends on a
/// row or a column alone once for all of its elements of that row or column.
static ElementCost costOfPair(gpu::DotOp dot) {
  ElementCost each;
  gpu::LayoutAttr layout = gpu::getLayout(dot.getType());
  const double own = layout ? std::sqrt(double(layout.getNumRegisters())) : 1;
  Block &body = dot.getTerm().front().front();
  llvm::DenseMap<Value, unsigned> sides = {{body.getArgument(0), 1}, {body.getArgument(1), 2}};
  for (Operation &inner : body) {
    unsigned side = 0;
    for (Value operand : inner.getOperands())
      side |= operand == body.getArgument(2) ? 3 : sides.lookup(operand);
    if (inner.getNumResults() == 1)
      sides[inner.getResult(0)] = side;
    if (isWithinUser(&inner))
      continue;
    const ElementCost cost = elementCost(&inner);
    const double times = side == 3 ? 1 : 1 / own;
    each.instructions += cost.instructions * times;
    each.special += cost.special * times;
  }
  return each;
}

bool BlockWalk::visitProduct(Operation *op, double times) {
  LaunchWork &work = counts.work;
  auto lengthOf = [](Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    return double(tile ? tile.getShape().back() : cast<gpu::SharedType>(type).getShape().back());
  };
  auto elementOf = [](Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    return tile ? tile.getElementType() : cast<gpu::SharedType>(type).getElementType();
  };
  if (auto dot = dyn_cast<gpu::WarpgroupDotOp>(op)) {
    // A right operand of fewer columns leaves the last ones out.
    auto tile = cast<RankedTensorType>(dot.getType());
    const double kept =
        std::min(static_cast<double>(dot.getB().getType().getShape()[1]) / tile.getDimSize(1), 1.0);
    const double products = countElements(tile) * kept * lengthOf(dot.getA().getType());
    // Products of f32 by warpgroups are rounded to tf32.
    auto type = matrixTypeOf(elementOf(dot.getA().getType()), /*isRounded=*/true);
    work.warpgroupProducts[static_cast<size_t>(type.value_or(MatrixType::Half))] +=
        products * times;
    counts.operations += 2 * products * times;
    return true;
  }
  if (auto sums = dyn_cast<gpu::WarpgroupSumsOp>(op)) {
    const bool isBFloat = elementOf(sums.getA().getType()).isBF16();
    const MatrixType type = isBFloat ? MatrixType::BFloat : MatrixType::Half;
    work.warpgroupProducts[static_cast<size_t>(type)] +=
        countElements(sums.getType()) * lengthOf(sums.getA().getType()) * times;
    return true;
  }
  auto dot = dyn_cast<gpu::DotOp>(op);
  if (!dot)
    return false;
  const double terms = lengthOf(dot.getA().getType());
  const double products = countElements(dot.getType()) * terms * times;
  counts.operations += 2 * products;
  auto type = matrixTypeOf(elementOf(dot.getA().getType()), dot.getPrecision() == Precision::TF32);
  if (!dot.hasTerm() && type && isFragment(gpu::getLayout(dot.getType()))) {
    work.warpProducts[static_cast<size_t>(*type)] += products;
    return true;
  }
  const double onCores = countThreadElements(dot.getType()) * terms * times;
  const ElementCost each = dot.hasTerm() ? costOfPair(dot) : ElementCost{1, 0, 0, 0};
  const bool isDouble = getElementTypeOrSelf(dot.getType()).isF64();
  (isDouble ? work.doubles : work.instructions) += onCores * each.instructions;
  work.special += onCores * each.special;
  return true;
}

/// Has each thread all of the axis that `op` scans along?
static bool scansInThread(Operation *op) {
  int64_t axis = 0;
  if (auto scan = dyn_cast<gpu::ScanOp>(op))
    axis = scan.getAxis();
  else if (auto recurrence = dyn_cast<gpu::RecurrenceOp>(op))
    axis = recurrence.getAxis();
  else
    return false;
  gpu::LayoutAttr layout = gpu::getLayout(op->getOperand(0).getType());
  if (!layout)
    return false;
  gpu::AxisBits bits = gpu::axisBits(layout, static_cast<unsigned>(axis));
  return bits.lanes == 0 && bits.warps == 0;
}

bool BlockWalk::visitReduction(Operation *op, double times) {
  // Instructions and special functions of an element.
  ElementCost each;
  const bool isInThread = isa<gpu::ReduceInThreadsOp>(op) || scansInThread(op);
  if (isInThread || isa<gpu::ReduceOp, gpu::ReduceRunsOp>(op))
    each = {1, 0, 0, 1};
  else if (isa<gpu::ArgReduceOp, gpu::ScanOp>(op))
    each = {3, 0, 0, 1};
  else if (isa<gpu::RecurrenceOp>(op)) // of two numbers
    each = {6, 0, 0, 2};
  else if (isa<gpu::MomentsOp>(op))
    each = {2, 0, 0, 2};
  else if (isa<gpu::WeightsOp>(op))
    each = {4, 0, 1, 4};
  else
    return false;
  LaunchWork &work = counts.work;
  Type source = op->getOperand(0).getType();
  const double elements = countThreadElements(source) * times;
  const bool isDouble = getElementTypeOrSelf(source).isF64();
  (isDouble ? work.doubles : work.instructions) += elements * each.instructions;
  work.special += elements * each.special;
  counts.operations += std::min(countElements(source), elements / times) * each.operations * times;
  if (isInThread)
    return true;
  double steps = stepsOfWarp;
  bool crossesWarps = true;
  if (auto reduce = dyn_cast<gpu::ReduceOp>(op))
    if (gpu::LayoutAttr layout = gpu::getLayout(source)) {
      gpu::AxisBits bits = gpu::axisBits(layout, static_cast<unsigned>(reduce.getAxis()));
      steps = llvm::popcount(bits.lanes);
      crossesWarps = bits.warps != 0;
      if (reduce.getBesideNext())
        return true; // the next reduction's exchange brings its value, too
    }
  Type result = op->getResult(0).getType();
  const double results = isa<RankedTensorType>(result)
                             ? countThreadElements(result)
                             : double(function.getNumWarps() * lanesOfWarp);
  work.instructions += results * steps * instructionsOfExchange * times;
  work.barriers += (crossesWarps ? 2 : 1) * times;
  return true;
}

void BlockWalk::visitElements(Operation *op, double times) {
  if (op->getNumResults() != 1)
    return;
  ElementCost each = elementCost(op);
  if (isWithinUser(op))
    each.instructions = 0;
  if (!isa<RankedTensorType>(op->getResult(0).getType())) {
    // A scalar is the same in all threads, and its instructions run beside those of tiles.
    counts.work.special += double(function.getNumWarps() * lanesOfWarp) * each.special * times;
    return;
  }
  Type type = op->getResult(0).getType();
  const double elements = countThreadElements(type) * times;
  counts.work.instructions += elements * each.instructions;
  counts.work.doubles += elements * each.doubles;
  counts.work.special += elements * each.special;
  counts.operations +=
      std::min(countElements(type), countThreadElements(type)) * each.operations * times;
}

} // namespace tk
