//===- PlanParts.h - the parts of split reductions --------------*- C++ -*-===//
//
// Shared by PlanParts.cpp, which decides for all reductions, and PlanColumnParts.cpp, which decides
// for those of columns.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_SPLIT_PLANPARTS_H
#define TK_PASSES_TENSOR_SPLIT_PLANPARTS_H

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/machine/limits/Splits.h"
#include "passes/tensor/split/SplitReductions.h"

namespace tk {

/// The GPU that a compute op is compiled for; null on the CPU.
gpu::TargetAttr targetOf(ComputeOp compute);

/// How many outputs a compute op has, if they are at most `few`.
std::optional<int64_t> countOutputs(ComputeOp compute,
                                    int64_t few = limits::plan_parts::fewOutputs);

/// An upper bound of the values of an index of a reduction, or -1.
int64_t countOf(ReduceOp reduce, unsigned position);

/// Divides the index of which there are most parts, or one further out of which there are at least
/// half as many, if there should be `parts` of `least` terms or more each; nothing where sizes are
/// not known. `isColumn`: loads run across the index but for those of a row that all columns share.
std::optional<Split> divide(ReduceOp reduce, int64_t parts, int64_t least, bool isColumn = false);

/// True if all loads of a reduction run along an index of the compute op, but for those that are
/// the same for all its values, and depend on no index on which not all of the others do.
bool runsAcross(ReduceOp reduce, ComputeOp compute);

/// How many blocks have the columns of a compute op side by side, if that is known and not enough.
std::optional<int64_t> blocksOfColumns(ComputeOp compute);

/// The split of one of the sums of columns that `blocks` blocks have.
std::optional<Split> splitColumn(ReduceOp reduce, int64_t blocks, int64_t processors,
                                 bool areProducts, bool wait);

/// The splits of sums of columns; nothing if they are not, or too short.
llvm::SmallVector<Split> splitColumns(ComputeOp compute, llvm::ArrayRef<ReduceOp> reduces);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_PLANPARTS_H
