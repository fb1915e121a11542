//===- TkGpuProducts.h - what follows from a product's types ----*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUPRODUCTS_H
#define TK_DIALECTS_TKGPU_TKGPUPRODUCTS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk::gpu {

/// Is it one of the floats of 8 bits that are multiplied?
bool isByteFloat(mlir::Type type);

/// Do threads add up what the hardware sums over the k of the product's operands? Its sums of
/// products of 8-bit floats keep fewer bits than f32 has.
bool isPromoted(WarpgroupDotOp dot);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPUPRODUCTS_H
