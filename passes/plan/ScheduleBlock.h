//===- ScheduleBlock.h - the schedule blocks of a program -------*- C++ -*-===//
#ifndef TK_PASSES_PLAN_SCHEDULEBLOCK_H
#define TK_PASSES_PLAN_SCHEDULEBLOCK_H

#include "passes/plan/StatementShape.h"

namespace tk {

/// The part of a kernel's schedule block that concerns one compute op. It takes precedence over the
/// planner's choice; the planner chooses the rest.
struct ScheduleBlock {
  llvm::DenseMap<mlir::Value, int64_t> tiles;   ///< by index
  llvm::DenseMap<mlir::Value, int64_t> coarsen; ///< by index: outputs of a thread
  std::optional<int64_t> stages;
  std::optional<int64_t> group;  ///< rows of tiles in the rasterisation order; 0: all
  std::optional<int64_t> vector; ///< bytes
  // Of products that go to warpgroups:
  std::optional<int64_t> consumers; ///< consumer warpgroups
  std::optional<int64_t> cluster;   ///< blocks, along the first tiled index
  std::optional<int64_t> teams;     ///< warpgroups, each with tiles of its own (pingpong)
  std::optional<bool> persistent;
};

/// The entries of that block for a compute op; empty if there are none.
ScheduleBlock readScheduleBlock(StatementShape &shape);

/// The number of parts that the kernel's block asks for in a reduction over an index of this name,
/// if it does.
std::optional<int64_t> splitOf(KernelOp kernel, mlir::StringRef index);

/// The location of the first of `keys` in the kernel's block; nullopt if it has none of them.
std::optional<mlir::Location> placeOfKey(KernelOp kernel, mlir::ArrayRef<mlir::StringRef> keys);

/// Fails, with an error at the schedule block, if the block's tiles give a thread more outputs than
/// it can hold.
mlir::LogicalResult checkThreadsHold(StatementShape &shape, gpu::ScheduleAttr schedule);

/// Fails, with an error at the schedule block, if the warpgroups that the block asks for cannot
/// divide the rows of its tile. Leaves a note instead if the tile was chosen for the present sizes.
mlir::LogicalResult checkConsumers(StatementShape &shape, gpu::ScheduleAttr schedule,
                                   mlir::StringRef pass);

/// Leaves a note for each key of the kernel's block that does not apply to its compute ops, with
/// the reason.
void noteUnusedKeys(KernelOp kernel, mlir::StringRef pass);

} // namespace tk

#endif // TK_PASSES_PLAN_SCHEDULEBLOCK_H
