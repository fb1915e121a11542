//===- RepeatedRuns.h - loads of which neighbours share elements -*- C++ -*-===//
//
// Several numbers of a word are neighbours in a tile: the word is read at a run of indices that is
// divided, such as `k / 8`.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_REPEATEDRUNS_H
#define TK_PASSES_LAYOUT_REPEATEDRUNS_H

#include "passes/layout/BulkBox.h"

namespace tk {

/// A run that is divided: each number stands `times` times, a power of two.
struct RepeatedRun {
  FloorDivOp quotient;
  int64_t times;
};

/// Reads `index` as such, plus scalars, which are appended to `starts`.
std::optional<RepeatedRun> repeatedRun(mlir::Value index,
                                       llvm::SmallVectorImpl<mlir::Value> &starts);

/// How many neighbours read each number if `index` is such a run of `length` elements of a tile
/// that begins with a whole group of neighbours; nothing if it is none. What adds up to the first
/// number is appended to `starts`: operations before the index, if there are none.
std::optional<int64_t> repeatsOfRun(mlir::Value index, int64_t length, AxisInfo &info,
                                    llvm::SmallVectorImpl<mlir::Value> &starts);

/// The same index as `index`, such a run, but that the places in the tile are divided by
/// themselves: a thread then knows which of its elements are one. Null if `index` is no such run.
mlir::Value quotientOfPlaces(mlir::Value index, AxisInfo &info);

/// The same as analyseBulkBox, but the load may read elements that stand for several neighbours of
/// the tile. The box, and its tile in shared memory, have the stored elements alone.
mlir::FailureOr<BulkBox> analyseRepeatedBox(gpu::LoadOp load, AxisInfo &info, std::string &why);

} // namespace tk

#endif // TK_PASSES_LAYOUT_REPEATEDRUNS_H
