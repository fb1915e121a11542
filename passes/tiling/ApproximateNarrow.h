//===- ApproximateNarrow.h - functions whose results are rounded -*- C++ -*-===//
#ifndef TK_PASSES_TILING_APPROXIMATENARROW_H
#define TK_PASSES_TILING_APPROXIMATENARROW_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Marks (`approx`) the f32 quotients in `compute` that may have an error of 2 ulp, and the error
/// functions that may have an absolute one of 2^-22, as their uses are rounded to 16 bits. Products
/// that are rounded to 8 bits get shares of the normal distribution for error functions. Products
/// of integers of 8 bits that are factors in bf16 may have an error of 2^-14.
void markNarrowFunctions(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TILING_APPROXIMATENARROW_H
