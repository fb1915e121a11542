//===- RankThresholds.h - ranks that are compared with a limit --*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_RANKTHRESHOLDS_H
#define TK_PASSES_TENSOR_KEYS_RANKTHRESHOLDS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Replaces comparisons of a sum of ranked terms with a limit by comparisons of the key with a
/// threshold of its row, if that pays. Returns the number of comparisons.
unsigned findThresholds(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_RANKTHRESHOLDS_H
