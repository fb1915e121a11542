//===- ApproximateExps.h - exponentials of fewer bits -----------*- C++ -*-===//
#ifndef TK_PASSES_TILING_APPROXIMATEEXPS_H
#define TK_PASSES_TILING_APPROXIMATEEXPS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// The unit attribute of a tk.exp_diff whose result may have a relative error of 2^-19.
inline constexpr llvm::StringRef approxAttrName = "approx";

/// Marks the exponentials in `compute` that are of use for no more than 16 bits.
void markApproximateExps(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TILING_APPROXIMATEEXPS_H
