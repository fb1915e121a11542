//===- ScheduleBlock.h - what a program says of a schedule ------*- C++ -*-===//
#ifndef TK_PASSES_PARALLEL_SCHEDULEBLOCK_H
#define TK_PASSES_PARALLEL_SCHEDULEBLOCK_H

#include "passes/parallel/StatementShape.h"

namespace tk {

/// The part of a kernel's schedule block that is about one statement. It comes before anything that
/// a planner would choose; what it leaves open is the planner's.
struct ScheduleBlock {
  llvm::DenseMap<mlir::Value, int64_t> tiles; ///< by index
  std::optional<int64_t> stages;
  std::optional<int64_t> group;  ///< row tiles walked together
  std::optional<int64_t> vector; ///< bytes
};

/// The first of the kernel's blocks that applies to `target`; an empty one if none does.
ScheduleBlock readScheduleBlock(StatementShape &shape, gpu::TargetAttr target);

} // namespace tk

#endif // TK_PASSES_PARALLEL_SCHEDULEBLOCK_H
