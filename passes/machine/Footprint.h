//===- Footprint.h - where the elements of an access lie --------*- C++ -*-===//
//
// The places of a tile's elements in memory: how many sectors they touch, each counted once.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_FOOTPRINT_H
#define TK_PASSES_MACHINE_FOOTPRINT_H

#include "passes/machine/KnownValues.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <utility>

namespace tk {

/// Where the elements of an access lie: from `base` on, a run of neighbours for each combination of
/// the axes' places. In elements.
struct Footprint {
  int64_t base = 0;
  double run = 1;                                         ///< neighbours, with gaps within sectors
  llvm::SmallVector<std::pair<int64_t, int64_t>, 4> axes; ///< distance and count, beyond the run
  double bytes = 0;                                       ///< of all sectors
  double readBefore = 0;                                  ///< bytes that the block had read before
};

/// An access of a tile to a tensor, in its terms.
struct TileAccess {
  mlir::ValueRange indices, strides;
  mlir::ArrayAttr dims;          ///< for each index, the axes of the tile that it runs over
  llvm::ArrayRef<int64_t> shape; ///< of the tile
  double share = 1;              ///< of the elements that are accessed
  int64_t vector = 1;            ///< elements of a thread's access
  double bytesOfElement = 4;
};

/// The places of an access. Indices are lines along axes of the tile; an axis that no index runs
/// over is one element, which all share.
Footprint footprintOf(const KnownValues &values, const TileAccess &access);

/// An index over several axes of a tile as a sum of lines, each along one of them. The step of an
/// irregular line is what it is on the average.
class SumOfLines {
public:
  struct Line {
    double step = 0;
    int64_t count = 0;
  };
  int64_t base = 0;
  llvm::SmallDenseMap<int64_t, Line> lines; ///< by axis

  /// Adds `factor` times `index`, whose axes are `along` of the tile; false if it is no such sum.
  bool add(const KnownValues &values, mlir::Value index, llvm::ArrayRef<int64_t> along,
           int64_t factor = 1);
};

} // namespace tk

#endif // TK_PASSES_MACHINE_FOOTPRINT_H
