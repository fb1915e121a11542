//===- SumByRank.h - sums of the terms below a bound ------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_SUMBYRANK_H
#define TK_PASSES_TENSOR_KEYS_SUMBYRANK_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Reads sums of terms under a comparison from sums of sorted terms, if that pays. Returns the
/// number of reductions.
unsigned sumByRank(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_SUMBYRANK_H
