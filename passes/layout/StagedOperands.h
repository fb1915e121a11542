//===- StagedOperands.h - operands of wgmma in shared memory ----*- C++ -*-===//
//
// Loads of a function's operands, as TMA loads to shared memory. FormWarpgroupDots.cpp decides
// which operands these are.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_STAGEDOPERANDS_H
#define TK_PASSES_LAYOUT_STAGEDOPERANDS_H

#include "passes/layout/TileElements.h"
#include "passes/layout/WarpgroupOperands.h"

#include "mlir/IR/Builders.h"

namespace tk {

class StagedOperands {
public:
  StagedOperands(gpu::FuncOp function, LaunchArguments &arguments, WarpgroupOperands &operands)
      : function(function), arguments(arguments), operands(operands),
        builder(function.getContext()) {}

  /// Where `operand` is copied to, for products if it `isMultiplied`.
  mlir::Value stage(mlir::Value operand, bool isMultiplied);
  /// Reads a tile from shared memory, and computes elements from it, just before the first use:
  /// what else is loaded for them comes while the tile is waited for.
  gpu::LocalLoadOp readLate(gpu::LoadOp load);
  /// Erases the loads of all staged operands.
  void eraseLoads();

  bool areParts = false; ///< are pairs of parts multiplied?

private:
  /// The maps of one tensor: from its begin on, and from some rows before it if boxes end in it.
  struct Maps {
    mlir::Value plain, before;
    mlir::Value arePanelsInside; ///< an i1; null: all panels begin inside the tensor
  };
  std::optional<unsigned> sharedRows(const BulkBox &box, mlir::Operation *load);
  mlir::Value mapOf(const BulkBox &box);
  mlir::Value endCopy(const BulkBox &box, Maps maps, mlir::ValueRange base, mlir::Value isInside,
                      llvm::SmallVectorImpl<mlir::Value> &coordinates);
  void copyGroups(const BulkBox &box, mlir::Value shared, Maps maps,
                  llvm::ArrayRef<mlir::Value> coordinates);

  gpu::FuncOp function;
  LaunchArguments &arguments;
  WarpgroupOperands &operands;
  mlir::OpBuilder builder;
  TileElements elements;
  llvm::DenseMap<mlir::Value, mlir::Value> staged;
  /// Maps of boxes of parts, of which several are of one tensor.
  llvm::SmallVector<std::pair<BulkBox, mlir::Value>, 0> mapsOfParts;
};

} // namespace tk

#endif // TK_PASSES_LAYOUT_STAGEDOPERANDS_H
