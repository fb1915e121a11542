//===- StatementShape.h - what decides a statement's schedule ---*- C++ -*-===//
//
// The properties of a tk.compute that schedules are chosen by: contractions and their indices,
// which indices run along memory, how far indices range. Nothing here knows names or patterns.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PARALLEL_STATEMENTSHAPE_H
#define TK_PASSES_PARALLEL_STATEMENTSHAPE_H

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/tiling/SizeFacts.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

/// A sum over `k` of a product of a factor over `m` and one over `n`.
struct Contraction {
  ReduceOp op;
  mlir::Value m, n, k;  ///< index arguments of the compute or of reductions
  mlir::Type operand;   ///< the type that the factors are stored in
  bool isInner = false; ///< inside the body of another reduction
  bool isOuter = false; ///< has another contraction in its body
};

struct StatementShape {
  KernelOp kernel;
  ComputeOp compute;
  llvm::SmallVector<mlir::Operation *> reductions; ///< tk.reduce and tk.scan, in pre-order
  llvm::SmallVector<Contraction> contractions;     ///< in pre-order
  /// For each index: at how many accesses it runs along memory.
  llvm::DenseMap<mlir::Value, unsigned> contiguous;
  /// For each access over the statement's last index, those that its innermost axis depends on.
  llvm::SmallVector<llvm::SetVector<mlir::Value>> innermost;
  /// For each reduction: the indices that it depends on, and those along which its loads run.
  llvm::DenseMap<mlir::Operation *, llvm::SetVector<mlir::Value>> dependsOn, runsAlong;
  unsigned narrowestBits = 64; ///< of the elements that are read and written

  /// The end of an index's range, and where it starts (null: 0).
  mlir::Value endOf(mlir::Value index);
  bool startsAtZero(mlir::Value index);
  /// The end without what a mask takes off (tk-restrict-ranges): of a minimum with an extent of the
  /// statement in it that extent.
  mlir::Value endWithoutMask(mlir::Value index);
  /// Of an index that runs over one of several parts of a range, how many values a part has.
  std::optional<int64_t> lengthOfPart(mlir::Value index);
  /// An upper bound of the number of values of an index, if there is one.
  std::optional<int64_t> upperOf(mlir::Value index);
  llvm::StringRef nameOf(mlir::Value index);
};

StatementShape analyzeStatement(KernelOp kernel, ComputeOp compute);

/// Does `value` run along `index` one by one?
bool runsOneByOne(mlir::Value value, mlir::Value index);

/// Does the end of a reduction's range follow from parallel index `p`, as under a causal mask? Only
/// where all results are over `p`: else there is a block even if there are no tiles.
bool boundsReduction(ComputeOp compute, unsigned p);
/// The same of the beginning of its range, as where keys sum over the queries that see them.
bool beginsReduction(ComputeOp compute, unsigned p);

/// The first decisions about a kernel.
struct PlannedTiles {
  gpu::PlanFamily family;
  gpu::PlanUnit unit;
  gpu::ScheduleAttr tiles;

  /// Writes them to the plan of `compute`.
  void writeTo(ComputeOp compute) const;
};

/// Plans a compute op: such that each thread has one output, or (`coarse`) several.
PlannedTiles planSchedule(StatementShape &shape, gpu::TargetAttr target, bool coarse);

/// `schedule` with the widest accesses that the hardware or the kernel's schedule block allows.
gpu::ScheduleAttr widenVectors(StatementShape &shape, gpu::TargetAttr target,
                               gpu::ScheduleAttr schedule);

/// On a module: how many bytes of shared memory schedules are planned for, if they are fewer than
/// there are. Threads then hold half of a product's factors, too.
inline constexpr llvm::StringLiteral planningSharedAttrName = "tkgpu.planning_shared";

/// The machine that a kernel is planned for, with the shared memory that it is planned for.
gpu::TargetAttr getTarget(KernelOp kernel);
/// The same with all of its shared memory.
gpu::TargetAttr getWholeTarget(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_PARALLEL_STATEMENTSHAPE_H
