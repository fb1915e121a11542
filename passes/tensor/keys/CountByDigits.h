//===- CountByDigits.h - counts of keys by matrix products ------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_COUNTBYDIGITS_H
#define TK_PASSES_TENSOR_KEYS_COUNTBYDIGITS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Counts elements by the two digits of their key, if that pays. Returns the number of counts.
unsigned countByDigits(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_COUNTBYDIGITS_H
