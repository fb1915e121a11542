//===- ApproximateExps.h - exponentials of fewer bits -----------*- C++ -*-===//
#ifndef TK_PASSES_TILING_APPROXIMATEEXPS_H
#define TK_PASSES_TILING_APPROXIMATEEXPS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// The unit attribute of a tk.exp_diff whose result may have a relative error of 2^-19, of a
/// tk.div_or_zero by a number with a normal reciprocal that may have one of 2^-22, and of what
/// ApproximateNarrow.h marks.
inline constexpr llvm::StringRef approxAttrName = "approx";

/// The unit attribute of such a tk.exp_diff that holds under maxima of any size; others do while
/// these are below 2^27.
inline constexpr llvm::StringRef wideAttrName = "wide";

/// Marks the exponentials in `compute`, and the quotients by their sums, that are of use for no
/// more than 16 bits.
void markApproximateExps(ComputeOp compute);

/// Is `value` of use for 16 bits or less only, perhaps as a factor or a choice?
bool isNarrowed(mlir::Value value);

/// See ApproximateScores.cpp. To be called once the weights that may be approximate are marked.
void approximateScores(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TILING_APPROXIMATEEXPS_H
