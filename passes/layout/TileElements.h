//===- TileElements.h - single elements of tiles of numbers -----*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_TILEELEMENTS_H
#define TK_PASSES_LAYOUT_TILEELEMENTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace tk {

/// Elements of tiles of one axis, as scalars. Each is computed once, where the tile is.
class TileElements {
public:
  /// Can the elements of `tile` be computed one by one? Those of a scalar are itself.
  static bool areScalars(mlir::Value tile);
  mlir::Value at(mlir::Value tile, int64_t position);

private:
  mlir::Value compute(mlir::OpBuilder &builder, mlir::Operation *op, int64_t position);
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> known;
};

} // namespace tk

#endif // TK_PASSES_LAYOUT_TILEELEMENTS_H
