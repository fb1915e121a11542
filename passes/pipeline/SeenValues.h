//===- SeenValues.h - values that are not finite, for rows that see them -*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_SEENVALUES_H
#define TK_PASSES_PIPELINE_SEENVALUES_H

#include "passes/layout/BulkBox.h"
#include "passes/pipeline/MaskedProduct.h"

namespace tk {

/// Adds values that are not finite to the sums of the rows that see them (tk-guard-masked-values).
class SeenValues {
public:
  explicit SeenValues(MaskedProduct &product) : product(product) {}

  /// Can values be found in memory, and the mask be computed, behind a tile's loops?
  bool analyse(LaunchArguments &arguments);
  /// Notes at `flag` whether all sums are finite. If `isAgain` and `cleared` is set, adds values to
  /// them.
  void add(LaunchArguments &arguments, mlir::Value flag, mlir::Value cleared, mlir::Value isAgain);

private:
  bool findMap(gpu::LaunchOp launch);
  void addArguments(LaunchArguments &arguments, mlir::OpBuilder &builder);
  mlir::Value addSteps(mlir::OpBuilder &builder, mlir::Operation *point);
  mlir::Value addKey(mlir::OpBuilder &builder, mlir::Value sums, mlir::Value key);
  mlir::Value valuesOf(mlir::OpBuilder &builder, mlir::Value key);
  mlir::Value seenRows(mlir::OpBuilder &builder, mlir::Value key);
  mlir::Value splat(mlir::OpBuilder &builder, mlir::RankedTensorType type, float number);

  MaskedProduct &product;
  gpu::TensorMapOp map;
  /// Of maps with a window: where the one that begins before the tensor is taken, so many rows
  /// before, and the axis of the rows of which the keys' axis is the window.
  mlir::Value isBefore;
  int64_t before = 0;
  std::optional<unsigned> rowsAxis;
  mlir::Value shift;
  unsigned keysAxis = 0, columnsAxis = 0; ///< of the map
  gpu::LayoutAttr layout, scores;
  mlir::Value buffer;
  llvm::SmallVector<mlir::Value> strides, extents, coordinates; ///< in the function
  mlir::IRMapping mapping;
  mlir::Operation *point = nullptr;
};

} // namespace tk

#endif // TK_PASSES_PIPELINE_SEENVALUES_H
