//===- TkGpuProducts.h - what follows from a product's types ----*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUPRODUCTS_H
#define TK_DIALECTS_TKGPU_TKGPUPRODUCTS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk::gpu {

/// Is it one of the floats of 8 bits that are multiplied?
bool isByteFloat(mlir::Type type);

/// Do threads add up what the hardware sums over the k of the product's operands? Its sums of
/// products of 8-bit floats keep fewer bits than f32 has, and all of its sums are cut off where
/// threads round.
bool isPromoted(WarpgroupDotOp dot);

/// Are these accumulators of warpgroups' products that an exponential of the mode `rescale` takes
/// from one row maximum to the next?
bool isRescaledSum(mlir::arith::MulFOp product);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPUPRODUCTS_H
