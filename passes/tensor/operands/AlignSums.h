//===- AlignSums.h - contractions over several indices ----------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_OPERANDS_ALIGNSUMS_H
#define TK_PASSES_TENSOR_OPERANDS_ALIGNSUMS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Stores operands of contractions over several indices so that both are contiguous along the same
/// index. Returns the number of contractions.
unsigned alignSums(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_OPERANDS_ALIGNSUMS_H
