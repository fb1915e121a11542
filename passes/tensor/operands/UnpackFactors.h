//===- UnpackFactors.h - operands with several numbers in a byte -*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_OPERANDS_UNPACKFACTORS_H
#define TK_PASSES_TENSOR_OPERANDS_UNPACKFACTORS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Rewrites contractions with an operand that has several elements in a byte to sums over bytes, if
/// possible. Returns their number.
unsigned unpackFactors(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_OPERANDS_UNPACKFACTORS_H
