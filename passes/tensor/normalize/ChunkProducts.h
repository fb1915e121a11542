//===- ChunkProducts.h - products of decayed states, by chunks --*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_CHUNKPRODUCTS_H
#define TK_PASSES_TENSOR_NORMALIZE_CHUNKPRODUCTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Computes sums over decayed states chunk by chunk (ChunkProducts.cpp). True if `compute` has one.
bool formChunkProducts(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_CHUNKPRODUCTS_H
