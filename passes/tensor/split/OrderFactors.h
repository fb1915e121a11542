//===- OrderFactors.h - the order of a contraction's factors ----*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_ORDERFACTORS_H
#define TK_PASSES_TENSOR_SPLIT_ORDERFACTORS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Sums products of three or more factors pair by pair (OrderFactors.cpp); how many sums.
unsigned orderFactors(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_ORDERFACTORS_H
