//===- ConvertIndices.h - indices as floats ---------------------*- C++ -*-===//
#ifndef TK_PASSES_TILING_CONVERTINDICES_H
#define TK_PASSES_TILING_CONVERTINDICES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// The unit attribute of a conversion of an index of which f32 holds all values, and all that they
/// are sums of.
inline constexpr llvm::StringLiteral exactAttrName = "exact";

/// See ConvertIndices.cpp.
void convertIndices(KernelOp kernel, ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TILING_CONVERTINDICES_H
