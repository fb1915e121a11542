//===- BoundTerms.h - ranges of the elements with a key ---------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_BOUNDTERMS_H
#define TK_PASSES_TENSOR_KEYS_BOUNDTERMS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Bounds reductions by the first and the last element with their key; returns their number.
unsigned boundTerms(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_BOUNDTERMS_H
