//===- SizeFacts.h - what is known of sizes at compile time -----*- C++ -*-===//
//
// Bounds and divisors of kernel-level `index` values, derived from the facts about dimensions and
// the arithmetic between them.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_SIZEFACTS_H
#define TK_PASSES_ANALYSIS_SIZEFACTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// On a module: no offset in any tensor needs more than 32 bits. The launch checks it.
inline constexpr llvm::StringLiteral smallTensorsAttrName = "tkgpu.small_tensors";

struct SizeFact {
  int64_t divisor = 1;               ///< a number that divides the value
  std::optional<int64_t> upper = {}; ///< the value is at most this
  std::optional<int64_t> exact = {}; ///< the value, if it is a constant
};

/// What is known of `value`, an `index` at the level of `kernel`.
SizeFact getSizeFact(KernelOp kernel, mlir::Value value);

/// An attribute of the module: a power of two that divides the strides of `strided` parameters, but
/// for the innermost ones, in elements. Absent: 1.
inline constexpr llvm::StringLiteral strideDivisorAttrName = "tkgpu.stride_divisor";

int64_t getStrideDivisor(KernelOp kernel);

/// The constant that `value` is, if it is one.
std::optional<int64_t> getConstantIndex(mlir::Value value);

/// The extents of a tensor at the level of a kernel: a parameter's or a statement's result's.
llvm::SmallVector<mlir::Value> getExtents(KernelOp kernel, mlir::Value tensor);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_SIZEFACTS_H
