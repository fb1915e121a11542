//===- StoreFactors.h - storing computed operands ---------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_OPERANDS_STOREFACTORS_H
#define TK_PASSES_TENSOR_OPERANDS_STOREFACTORS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Stores computed operands of back-to-back contractions in the order that wgmma multiplies, if
/// that pays. Returns their number.
unsigned storeFactors(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_OPERANDS_STOREFACTORS_H
