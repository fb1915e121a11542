//===- SumByKey.h - sums by a key in shared memory --------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_SUMBYKEY_H
#define TK_PASSES_TENSOR_KEYS_SUMBYKEY_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Gives sums of i32 and f32 by a key a sum for each key in the shared memory of a block, if that
/// pays. Returns the number of sums.
unsigned sumByKey(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_SUMBYKEY_H
