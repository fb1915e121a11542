//===- TileBoxes.h - tiles of operands as TMA boxes -------------*- C++ -*-===//
//
// Whether TMA can load the tile of an operand: as one box of rows, or as a box for each group of
// rows that are gathered.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PLAN_TILEBOXES_H
#define TK_PASSES_PLAN_TILEBOXES_H

#include "passes/plan/StatementShape.h"

namespace tk {

/// Rows of a tile that are gathered together at least, if a table names them.
inline constexpr int64_t rowsOfGatheredBox = 8;

/// How far apart the rows of a tensor are that copies of boxes take; 0 if they do not take it.
int64_t rowAlignment(StatementShape &shape, LoadOp load);

/// Is `factor` a load, of a type or a narrower one, whose rows TMA can copy?
bool isBulkLoadable(StatementShape &shape, mlir::Value factor);

/// Is a tile of what `product` reads by `load` made of rows of memory, which begin at multiples of
/// 16 bytes? Other tiles are boxes of single elements.
bool isBoxOfRows(StatementShape &shape, Contraction &product, LoadOp load);

/// Does what `factor` is loaded from run along `k` in memory?
bool isContiguousAlong(mlir::Value factor, mlir::Value k);

/// Is `index` of an access the same in a tile, or a run along one of the `tiled` indices, plus what
/// is the same, or the groups or places of rows, for groups of which a tile of a warpgroup has
/// whole ones?
bool isRunOfBox(StatementShape &shape, mlir::Value index, llvm::ArrayRef<mlir::Value> tiled);

/// Does `index` follow from what a table has for the tiled indices?
bool followsTable(mlir::Value index, llvm::ArrayRef<mlir::Value> tiled);

/// Are the rows of a tile gathered in groups, each of which is a box: of all indices one counts
/// them, and the others are the same?
bool areRowsGathered(StatementShape &shape, LoadOp load, llvm::ArrayRef<mlir::Value> tiled,
                     int64_t least);

} // namespace tk

#endif // TK_PASSES_PLAN_TILEBOXES_H
