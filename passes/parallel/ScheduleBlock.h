//===- ScheduleBlock.h - the schedule blocks of a program -------*- C++ -*-===//
#ifndef TK_PASSES_PARALLEL_SCHEDULEBLOCK_H
#define TK_PASSES_PARALLEL_SCHEDULEBLOCK_H

#include "passes/parallel/StatementShape.h"

namespace tk {

/// The part of a kernel's schedule block that is about one statement. It comes before anything that
/// a planner would choose; what it leaves open is the planner's.
struct ScheduleBlock {
  llvm::DenseMap<mlir::Value, int64_t> tiles;   ///< by index
  llvm::DenseMap<mlir::Value, int64_t> coarsen; ///< by index: outputs of a thread
  std::optional<int64_t> stages;
  std::optional<int64_t> group;  ///< row tiles walked together; 0: all
  std::optional<int64_t> vector; ///< bytes
  // Of products that go to warpgroups:
  std::optional<int64_t> consumers; ///< warpgroups that compute
  std::optional<int64_t> cluster;   ///< blocks, along the first index that is cut into tiles
  std::optional<int64_t> teams;     ///< of warpgroups, each with tiles of its own
  std::optional<bool> persistent;
};

/// What that block says of a statement; an empty one where there is none.
ScheduleBlock readScheduleBlock(StatementShape &shape);

/// In how many parts the kernel's block wants a reduction over an index of this name, if it does.
std::optional<int64_t> splitOf(KernelOp kernel, mlir::StringRef index);

/// The place of the first of `keys` that the kernel's block has; nullopt where it has none of them.
std::optional<mlir::Location> placeOfKey(KernelOp kernel, mlir::ArrayRef<mlir::StringRef> keys);

/// Fails, with an error at the schedule block, where the block's tiles leave a thread more outputs
/// than it could hold.
mlir::LogicalResult checkThreadsHold(StatementShape &shape, gpu::ScheduleAttr schedule);

/// Fails, with an error at the schedule block, where the rows of the block's tile cannot be shared
/// by as many warpgroups as it wants; notes it where the tile was chosen for the sizes at hand.
mlir::LogicalResult checkConsumers(StatementShape &shape, gpu::ScheduleAttr schedule,
                                   mlir::StringRef pass);

/// Notes which keys of the kernel's block mean nothing to its statements, and why.
void noteUnusedKeys(KernelOp kernel, mlir::StringRef pass);

} // namespace tk

#endif // TK_PASSES_PARALLEL_SCHEDULEBLOCK_H
