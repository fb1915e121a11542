//===- StoreWeights.h - storing softmax numerators for wide results -*- C++ -*-===//
#ifndef TK_PASSES_FUSION_STOREWEIGHTS_H
#define TK_PASSES_FUSION_STOREWEIGHTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Stores the exponentials that a product of `compute` weighs loaded terms with where computing
/// them for each tile of columns takes longer; how many products have such.
unsigned storeWeights(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_FUSION_STOREWEIGHTS_H
