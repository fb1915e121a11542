//===- BandProducts.h - long filters as matrix products ---------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_BANDPRODUCTS_H
#define TK_PASSES_TENSOR_NORMALIZE_BANDPRODUCTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Makes matrix products of sums over long filters (BandProducts.cpp); whether there was one.
bool formBandProducts(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_BANDPRODUCTS_H
