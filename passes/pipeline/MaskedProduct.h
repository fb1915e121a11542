//===- MaskedProduct.h - a product of masked weights with values -*- C++ -*-===//
//
// What tk-guard-masked-values rewrites: in a kernel with producer and consumer warps, the product
// of masked softmax numerators ("weights") with values that TMA loads bring.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PIPELINE_MASKEDPRODUCT_H
#define TK_PASSES_PIPELINE_MASKEDPRODUCT_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

/// The loop over tiles of one role, and the loop of two passes around it, if there is one.
struct RoleTiles {
  mlir::scf::ForOp tiles, passes;
  static RoleTiles of(mlir::Region &role);
};

/// One product whose left operand is weights under a mask that differs between rows.
struct MaskedProduct {
  gpu::WarpRolesOp roles;
  RoleTiles producer, consumer;
  gpu::BulkCopyOp load;                      ///< of a step's values
  gpu::PhaseExpectOp expect;                 ///< that announces its bytes
  mlir::scf::ForOp steps;                    ///< the producer's loop around it
  mlir::scf::ForOp masked;                   ///< the consumer's loop with the mask
  llvm::SmallVector<mlir::Value> conditions; ///< that hold where a score is present
  mlir::Value sums;                          ///< the product, where a tile is complete

  explicit MaskedProduct(gpu::WarpRolesOp roles) : roles(roles) {}
  /// False if the kernel has none; `reason` is why it cannot be guarded if it has one.
  bool find(llvm::StringRef &reason);

private:
  bool findMask();
  bool findValues(llvm::StringRef &reason);
  bool findSums();
};

/// Is it a choice of -inf for scores?
bool isMask(mlir::arith::SelectOp select);

/// Does the tile `condition` differ between rows?
bool differsByRow(mlir::Value condition);

/// The values that a value follows from, through loops and branches.
llvm::SetVector<mlir::Value> sourcesOf(mlir::Value value);

/// `value` in a region of `point` or before it, where `builder` stands: computed again if it does
/// not dominate that. Null if it cannot be. Without a builder nothing is created.
mlir::Value computeAt(mlir::OpBuilder *builder, mlir::Operation *point, mlir::Value value,
                      mlir::IRMapping &mapping);

} // namespace tk

#endif // TK_PASSES_PIPELINE_MASKEDPRODUCT_H
