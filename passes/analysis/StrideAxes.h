//===- StrideAxes.h - how strided tensors lie in memory ---------*- C++ -*-===//
//
// The axes of a `strided` parameter or result may lie in memory in another order than the source
// names them. A kernel that is compiled for such views has its axes in memory's order: the one with
// stride 1, if there is one, is the last. An attribute of the kernel says, for each axis of each
// strided tensor, the stride of which of the caller's axes it has.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_STRIDEAXES_H
#define TK_PASSES_ANALYSIS_STRIDEAXES_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

/// On a kernel: an array of i64 for each tensor, parameters before results; empty for one in the
/// caller's order. Each number is the caller's axis whose stride the axis has; `unitStride`: it
/// is 1.
inline constexpr llvm::StringLiteral strideAxesAttrName = "tk.stride_axes";
inline constexpr int64_t unitStride = -1;

/// For AxisOrder: the last axis has stride 1, or none has.
inline constexpr int64_t lastAxis = -1, noUnitAxis = -2;

/// On a kernel: the numbers of results that are declared `strided`.
inline constexpr llvm::StringLiteral stridedResultsAttrName = "tk.strided_results";

/// How views of one strided tensor lie: the caller's axis with stride 1, and whether the elements
/// lie one behind the other once that axis is the last.
struct AxisOrder {
  int64_t unitAxis = lastAxis;
  bool isDense = false;
};

/// The number of a tensor among the parameters and results, for results that replace a parameter
/// the parameter's.
std::optional<unsigned> getTensorNumber(KernelOp kernel, mlir::Value tensor);

/// The parameter that is tensor `number`, or null if that is a result.
mlir::BlockArgument getTensorParam(KernelOp kernel, unsigned number);

/// Is result `number` of the kernel declared `strided`?
bool isStridedResult(KernelOp kernel, unsigned number);

/// For each axis of `tensor` the caller's axis whose stride it has, or `unitStride`; nothing where
/// the tensor is dense.
std::optional<mlir::SmallVector<int64_t>> getStrideAxes(KernelOp kernel, mlir::Value tensor);

/// The caller's axes of tensor `number` in the order that the kernel has them; empty if it is the
/// caller's.
mlir::SmallVector<int64_t> getCallerAxes(KernelOp kernel, unsigned number);

/// Brings the axes of strided tensors into memory's order. `orders` are numbered as tensors are. A
/// dense one is strided no more, unless `keepsStrides`.
void orderStridedAxes(KernelOp kernel, mlir::ArrayRef<AxisOrder> orders, bool keepsStrides);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_STRIDEAXES_H
