//===- ProducerSlice.cpp - what a producer's program can compute ----------===//
//
// Copies become a program of their own if their coordinates follow from the block's number, loop
// indices and arguments alone, and if the consumer's threads never synchronise with the whole
// block.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Loops.h"
#include "passes/pipeline/WarpSpecialization.h"

#include "passes/machine/Machine.h"

#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuHistogramOps.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "dialects/tkgpu/TkGpuSortOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::warp_specialization;

/// Adds the operations that `value` is computed from; false if the producer cannot compute it.
bool WarpSpecialization::addToSlice(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return !loop || argument == loop.getInductionVar();
  }
  Operation *op = value.getDefiningOp();
  if (slice.contains(op))
    return true;
  if (op->getNumRegions() > 0 || !isMemoryEffectFree(op) || isa<RankedTensorType>(value.getType()))
    return false;
  if (!llvm::all_of(op->getOperands(), [&](Value operand) { return addToSlice(operand); }))
    return false;
  slice.insert(op);
  return true;
}

/// Does `op` make all threads of the block meet, as primitives that exchange values between warps
/// do?
static bool meetsBlock(Operation *op) {
  auto crossesWarps = [](Value tile, int64_t axis) {
    return axisBits(getLayout(tile.getType()), axis).warps != 0;
  };
  if (auto reduce = dyn_cast<gpu::ReduceOp>(op))
    return crossesWarps(reduce.getSource(), reduce.getAxis());
  if (auto reduce = dyn_cast<ReduceRunsOp>(op))
    return runBits(getLayout(reduce.getSource().getType()), reduce.getAxis(), reduce.getRun())
               .warps != 0;
  if (auto reduce = dyn_cast<ArgReduceOp>(op))
    return crossesWarps(reduce.getSource(), reduce.getAxis());
  if (auto scan = dyn_cast<gpu::ScanOp>(op))
    return crossesWarps(scan.getSource(), scan.getAxis());
  if (auto recurrence = dyn_cast<RecurrenceOp>(op))
    return crossesWarps(recurrence.getSource(), recurrence.getAxis());
  if (isa<HistogramOp, SortOp>(op))
    return true;
  if (auto convert = dyn_cast<ConvertLayoutOp>(op))
    return classifyConversion(getLayout(convert.getSource().getType()),
                              getLayout(convert.getType())) == Conversion::Shared;
  return false;
}

bool tk::doWarpsMeet(FuncOp function) {
  WalkResult meets = function.walk([](Operation *op) {
    return meetsBlock(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return meets.wasInterrupted();
}

/// Is `op` a reduction of rows that warpgroups divide, in a loop of their products? The warps of
/// the consumer meet for it at a barrier of their own.
static bool meetsConsumers(Operation *op, FuncOp function) {
  auto reduce = dyn_cast<gpu::ReduceOp>(op);
  auto loop = op->getParentOfType<scf::ForOp>();
  const AxisBits bits = reduce ? joinedBits(reduce) : AxisBits();
  return bits.warps && loop && !loop.getOps<WarpgroupDotOp>().empty() &&
         joinKindOf(op, function, bits) == JoinKind::EachLane;
}

/// Do operations make all threads of the block meet that a consumer's program cannot have?
static bool meetsBeyondConsumers(FuncOp function) {
  WalkResult meets = function.walk([&](Operation *op) {
    return meetsBlock(op) && !meetsConsumers(op, function) ? WalkResult::interrupt()
                                                           : WalkResult::advance();
  });
  return meets.wasInterrupted();
}

bool WarpSpecialization::canCutOut() {
  if (function.getBlockWarps() + kProducerWarps > mostWarpsOfBlock)
    return false;
  if (meetsBeyondConsumers(function))
    return false;
  auto isKnown = [&](Value value) { return addToSlice(value); };
  for (Ring &ring : rings) {
    for (BulkCopyOp copy : ring.copies)
      if (!isKnown(copy.getMap()) || !llvm::all_of(copy.getCoordinates(), isKnown) ||
          !llvm::all_of(copy.getDistances(), isKnown))
        return false;
    Operation *parent = ring.copies.front()->getParentOp();
    for (; parent != function; parent = parent->getParentOp()) {
      auto loop = cast<scf::ForOp>(parent);
      if (!isKnown(loop.getLowerBound()) || !isKnown(loop.getUpperBound()) ||
          !isKnown(loop.getStep()))
        return false;
    }
  }
  return true;
}
