//===- SeparateQuotients.h - reductions at a quotient of an index -*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_RANGES_SEPARATEQUOTIENTS_H
#define TK_PASSES_TENSOR_RANGES_SEPARATEQUOTIENTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Gives reductions that depend on `i / n` alone, instead of `i`, compute ops of their own, which
/// have an index for the quotient. Returns their number.
unsigned separateQuotients(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_RANGES_SEPARATEQUOTIENTS_H
