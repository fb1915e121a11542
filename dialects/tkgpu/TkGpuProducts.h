//===- TkGpuProducts.h - properties of contractions -------------*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUPRODUCTS_H
#define TK_DIALECTS_TKGPU_TKGPUPRODUCTS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk::gpu {

/// True for the 8-bit floats that the matrix unit multiplies.
bool isByteFloat(mlir::Type type);

/// True if threads add the contraction over the operands' k to the accumulator. The matrix unit
/// accumulates 8-bit floats with fewer bits than f32, and truncates sums where threads round.
bool isPromoted(WarpgroupDotOp dot);

/// True if `product` rescales accumulators of wgmma from one running maximum to the next.
bool isRescaledSum(mlir::arith::MulFOp product);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPUPRODUCTS_H
