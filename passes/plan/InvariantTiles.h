//===- InvariantTiles.h - tiles of batch-invariant products ------*- C++ -*-===//
#ifndef TK_PASSES_PLAN_INVARIANTTILES_H
#define TK_PASSES_PLAN_INVARIANTTILES_H

#include "llvm/Support/MathExtras.h"

#include <cstdint>

namespace tk {

/// The columns of a tile of `columns` outputs, at most `width` and about `least`, of which
/// `processors` have a tile each, if there are `others` tiles beside each other otherwise.
///
/// The terms of a batch-invariant product have one order, so that no other block takes a part of
/// them. Few blocks have fewer columns instead. Predicted for an H200: 8 rows and 1024 columns of
/// 4096 terms take 5.5 us for 10.1, and one query of 32 heads of 4096 keys, each block of which
/// computes all scores of its head, takes 22.9 us for 34.1.
inline int64_t invariantColumns(int64_t width, int64_t columns, int64_t others, int64_t processors,
                                int64_t least) {
  auto tilesOf = [&](int64_t width) -> int64_t {
    return others * llvm::divideCeil(columns, width);
  };
  while (width > least && width % 2 == 0 && tilesOf(width / 2) <= processors)
    width /= 2;
  return width;
}

} // namespace tk

#endif // TK_PASSES_PLAN_INVARIANTTILES_H
