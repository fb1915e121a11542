//===- IntegerRanges.h - between which numbers integers lie -----*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_INTEGERRANGES_H
#define TK_PASSES_ANALYSIS_INTEGERRANGES_H

#include "mlir/IR/Value.h"

#include <optional>

namespace tk {

/// The least and the greatest number of an integer.
struct IntegerRange {
  int64_t least, greatest;
};

/// Between which numbers `value` lies, an integer that is computed from constants, from loaded
/// integers of up to 16 bits, and by masks, shifts, sums, products and choices of those; nothing if
/// that is not known.
std::optional<IntegerRange> getIntegerRange(mlir::Value value);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_INTEGERRANGES_H
