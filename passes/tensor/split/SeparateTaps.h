//===- SeparateTaps.h - sums of few taps ------------------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_SEPARATETAPS_H
#define TK_PASSES_TENSOR_SPLIT_SEPARATETAPS_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

/// Which index of `compute` counts taps that one loop sums; nothing if there is none.
std::optional<unsigned> tapOfOneLoop(ComputeOp compute);

/// Gives each tap of long sums over pixels a sum of its own (SeparateTaps.cpp); how many.
unsigned separateTaps(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_SEPARATETAPS_H
