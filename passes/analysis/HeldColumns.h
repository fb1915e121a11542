//===- HeldColumns.h - columns that a block holds ---------------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_HELDCOLUMNS_H
#define TK_PASSES_ANALYSIS_HELDCOLUMNS_H

#include <cstdint>

namespace tk {

/// The longest column, across memory, of which a block holds all elements beside its neighbours'.
inline constexpr int64_t longestHeldColumn = 256;

} // namespace tk

#endif // TK_PASSES_ANALYSIS_HELDCOLUMNS_H
