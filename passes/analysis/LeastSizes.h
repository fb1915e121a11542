//===- LeastSizes.h - how long rows are at least ----------------*- C++ -*-===//
//
// A variant that is compiled for sizes up to a bound serves, if it is chosen at the launch, only
// those that have no lower bound of their own.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_LEASTSIZES_H
#define TK_PASSES_ANALYSIS_LEASTSIZES_H

#include "llvm/ADT/StringRef.h"

namespace tk {

/// On a kernel, an array: the least size of each dimension that launches of this variant have. On a
/// function: the least value of each argument; 0 where nothing is known. Absent: all are 0.
inline constexpr llvm::StringLiteral leastSizesAttrName = "tkgpu.least_sizes";

} // namespace tk

#endif // TK_PASSES_ANALYSIS_LEASTSIZES_H
