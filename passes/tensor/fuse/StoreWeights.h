//===- StoreWeights.h - storing softmax numerators for wide results -*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_FUSE_STOREWEIGHTS_H
#define TK_PASSES_TENSOR_FUSE_STOREWEIGHTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Stores the softmax numerators that a contraction of `compute` multiplies with a loaded operand,
/// if recomputing them for each tile of columns takes longer. Returns the number of such
/// contractions.
unsigned storeWeights(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TENSOR_FUSE_STOREWEIGHTS_H
