//===- StatementShape.h - the properties that decide a schedule -*- C++ -*-===//
//
// The properties of a tk.compute from which schedules are chosen: contractions and their indices,
// indices that are contiguous in memory, and the extents of indices. They do not depend on names,
// and match no programs.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PLAN_STATEMENTSHAPE_H
#define TK_PASSES_PLAN_STATEMENTSHAPE_H

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/SizeFacts.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

/// A sum over `k` of the product of an operand over `m` and one over `n`.
struct Contraction {
  ReduceOp op;
  mlir::Value m, n, k;  ///< index arguments of the compute or of reductions
  mlir::Type operand;   ///< the type in which the operands are stored
  bool isInner = false; ///< inside the body of another reduction
  bool isOuter = false; ///< has another contraction in its body
};

struct StatementShape {
  KernelOp kernel;
  ComputeOp compute;
  llvm::SmallVector<mlir::Operation *> reductions; ///< tk.reduce and tk.scan, in pre-order
  llvm::SmallVector<Contraction> contractions;     ///< in pre-order
  /// For each index: the number of accesses that are contiguous along it.
  llvm::DenseMap<mlir::Value, unsigned> contiguous;
  /// For each access over the compute op's last index, the indices that its innermost axis depends
  /// on.
  llvm::SmallVector<llvm::SetVector<mlir::Value>> innermost;
  /// For each reduction: the indices that it depends on, and the indices along which its loads are
  /// contiguous.
  llvm::DenseMap<mlir::Operation *, llvm::SetVector<mlir::Value>> dependsOn, runsAlong;
  unsigned narrowestBits = 64; ///< of the elements that are read and written

  /// The end of an index's range, and where it starts (null: 0).
  mlir::Value endOf(mlir::Value index);
  bool startsAtZero(mlir::Value index);
  /// The end without the bound that a mask adds (tk-restrict-ranges): of a minimum that contains an
  /// extent of the compute op, that extent.
  mlir::Value endWithoutMask(mlir::Value index);
  /// The number of values in a part, for an index over one of several parts of a range.
  std::optional<int64_t> lengthOfPart(mlir::Value index);
  /// An upper bound of the number of values of an index, if there is one.
  std::optional<int64_t> upperOf(mlir::Value index);
  llvm::StringRef nameOf(mlir::Value index);
};

/// How many results that share the elements of a reduction a block has at most (PlanShared.cpp).
inline constexpr int64_t mostSharedResults = 8;

StatementShape analyzeStatement(KernelOp kernel, ComputeOp compute);

/// True if `value` grows by one with `index`.
bool runsOneByOne(mlir::Value value, mlir::Value index);
/// May neighbours along `index` be neighbours at `place`, the same, or in the same sector?
bool mayRunAlong(mlir::Value place, mlir::Value index);

/// True if the end of a reduction's range depends on parallel index `p`, as under a causal mask,
/// and all results are over `p`. Otherwise there is a block even without tiles.
bool boundsReduction(ComputeOp compute, unsigned p);
/// True likewise for the beginning of the range, as where keys sum over the queries that see them.
bool beginsReduction(ComputeOp compute, unsigned p);

/// The first decisions about a kernel.
struct PlannedTiles {
  gpu::PlanFamily family;
  gpu::PlanUnit unit;
  gpu::ScheduleAttr tiles;

  /// Writes them to the plan of `compute`.
  void writeTo(ComputeOp compute) const;
};

/// Plans a compute op with one output for each thread, or with several (`coarse`).
PlannedTiles planSchedule(StatementShape &shape, gpu::TargetAttr target, bool coarse);

/// `schedule` with the widest accesses that the hardware or the kernel's schedule block allows.
gpu::ScheduleAttr widenVectors(StatementShape &shape, gpu::TargetAttr target,
                               gpu::ScheduleAttr schedule);

/// On a module: the bytes of shared memory that schedules may plan, if they are fewer than the
/// machine has. Threads then also hold half of a contraction's operands.
inline constexpr llvm::StringLiteral planningSharedAttrName = "tkgpu.planning_shared";

/// The machine of a kernel, with the shared memory that schedules may plan.
gpu::TargetAttr getTarget(KernelOp kernel);
/// The machine of a kernel, with all of its shared memory.
gpu::TargetAttr getWholeTarget(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_PLAN_STATEMENTSHAPE_H
