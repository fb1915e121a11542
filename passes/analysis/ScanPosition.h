//===- ScanPosition.h - where a scan is taken -------------------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_SCANPOSITION_H
#define TK_PASSES_ANALYSIS_SCANPOSITION_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// `value` as an index of `compute`, or as what is left of `extent` behind one: `extent - 1 -
/// index`.
struct IndexOrMirror {
  mlir::BlockArgument index;
  bool isMirrored = false;
};
std::optional<IndexOrMirror> matchIndexOrMirror(mlir::Value value, mlir::Value extent,
                                                ComputeOp compute);

/// The index of its statement that `scan` is taken at, of all of whose range it scans. At its
/// mirror image it is a backward scan: that of each element and those behind it. In the terms of
/// another scan it may be taken at the number of the term, and follows the other scan's index.
std::optional<IndexOrMirror> getScanPosition(ScanOp scan, ComputeOp compute);

/// The chunk, of so many elements, in which `scan` begins anew: `n` where it begins at `i / n * n`,
/// for `index` i.
std::optional<int64_t> getScanChunk(ScanOp scan, mlir::BlockArgument index);

/// `extent - 1`, if `value` is that.
bool isLastOf(mlir::Value value, mlir::Value extent);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_SCANPOSITION_H
