//===- AccumulateProducts.h - sums of products ------------------*- C++ -*-===//
#ifndef TK_PASSES_NUMERICS_ACCUMULATEPRODUCTS_H
#define TK_PASSES_NUMERICS_ACCUMULATEPRODUCTS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// Has a product that is added to another one begin with its sums.
void accumulateProducts(gpu::FuncOp func);

} // namespace tk

#endif // TK_PASSES_NUMERICS_ACCUMULATEPRODUCTS_H
