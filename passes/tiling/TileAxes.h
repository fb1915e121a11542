//===- TileAxes.h - tiled indices, and values along them --------*- C++ -*-===//
#ifndef TK_PASSES_TILING_TILEAXES_H
#define TK_PASSES_TILING_TILEAXES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace tk {

using Axes = llvm::SmallVector<unsigned, 4>;

/// A value in the program of a block: a tile over `axes`, in the program's order, or a scalar if
/// there are none. It lives in scope `depth`.
struct TileValue {
  mlir::Value value;
  Axes axes;
  unsigned depth = 0;
};

/// A tiled index. A tile holds the index values `start .. start + size`, of which those from
/// `start + step` on are the next tile's.
struct Axis {
  std::string name;
  int64_t size = 1;
  int64_t step = 1; ///< from one tile to the next
  unsigned depth = 0;
  /// No tile has this axis: its index is a scalar.
  bool isScalar = false;
  /// One tile from 0 holds the whole range.
  bool isWhole = false;
  /// Tiles start at multiples of their size.
  bool isAligned = false;
  mlir::Value start;       ///< null: 0
  mlir::Value counter;     ///< of a loop that leaves tiles out, what it counts; else null
  mlir::Value rangeEnd;    ///< the scalar end of the range as the compute has it, for comparison
  mlir::Value limit;       ///< index values from here on are outside for all; null: there are none
  bool limitIsAll = false; ///< the tile is full or, if limit is 0, empty
  /// The last tile ends with the range. The first one then may begin before it: index values below
  /// 0 are outside for all, too, and those from `limit` on are none of a tile's own.
  bool endsWithRange = false;
  /// The last tile is as full as the others: it begins early enough to end with the range, if that
  /// has a tile's elements, and computes some of those of the tile before it again.
  bool overlapsLast = false;
  /// Tiles from fullFrom (null: any) to fullTo are inside all bounds; null: not known.
  mlir::Value fullFrom, fullTo;
  /// The range ends at this extent at the latest, which is what an index that stands for it has to
  /// stay below; a multiple of the tiles' size needs no mask.
  mlir::Value coveringExtent;
  bool coversTiles = false;
  /// The range ends where a scalar or a tensor says: elements behind it may be no tile's at all.
  bool endsByValue = false;
  /// Bounds that depend on other axes; index values outside them are outside for some.
  std::optional<TileValue> lower, upper;
};

/// An axis of the grid: its extent is needed once at least where `atLeastOne`.
struct GridAxis {
  mlir::Value extent;
  int64_t tile;
  bool atLeastOne;
  int64_t blocks = 1; ///< that share one of these tiles
};

/// What a mask leaves out for all rows of a tile: the conditions, and the axis of the rows.
struct UnseenTerms {
  llvm::SmallVector<mlir::Value> conditions;
  unsigned rows;
};

} // namespace tk

#endif // TK_PASSES_TILING_TILEAXES_H
