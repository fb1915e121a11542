//===- OverlapExchanges.h - a row's sums under the row before ---*- C++ -*-===//
#ifndef TK_PASSES_ROWS_OVERLAPEXCHANGES_H
#define TK_PASSES_ROWS_OVERLAPEXCHANGES_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// Do the blocks of the function's clusters exchange sums of rows while nothing else runs on their
/// multiprocessors, as sums of columns fill their registers?
bool exchangesAlone(gpu::FuncOp function);

/// Takes sums of products with differences of a row of at most 16 bits from a scalar apart, into
/// sums that do not need the scalar: all sums of the row have one exchange then
/// (SeparateMeans.cpp). Returns how many.
unsigned separateMeans(gpu::FuncOp function);

/// Lets the loops of the function exchange the next row's sums while they compute this row
/// (OverlapExchanges.cpp). Returns how many.
unsigned overlapExchanges(gpu::FuncOp function);

} // namespace tk

#endif // TK_PASSES_ROWS_OVERLAPEXCHANGES_H
