//===- MaskedDots.h - products of masked weights by all warps ---*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_MASKEDDOTS_H
#define TK_PASSES_PIPELINE_MASKEDDOTS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace tk {

/// A sum of products of masked weights, by mma.sync or FMA (tk-guard-masked-values).
class MaskedDots {
public:
  /// The sums in `block` whose masks differ between rows and that can be guarded.
  static llvm::SmallVector<MaskedDots, 0> findIn(mlir::Block *block);
  /// Computes the sum again if it is not finite, without values that are not, and adds these to the
  /// rows that see them. A loop that carries the sum is copied.
  void apply();

private:
  /// A product, and how its left operand follows from weights.
  struct Product {
    gpu::DotOp dot;
    llvm::SmallVector<mlir::Operation *> ahead; ///< conversions of the weights, the first one first
    gpu::LocalStoreOp store;                    ///< puts them in shared memory; or null
    gpu::LocalLoadOp load;                      ///< reads a part from there
    llvm::SmallVector<mlir::Operation *> behind; ///< conversions of that part
    llvm::SmallVector<mlir::Value> conditions;   ///< that hold where a weight is present
  };
  bool add(gpu::DotOp dot);
  bool findWeights(Product &product, mlir::Value &weights);
  bool findSum();
  mlir::Value presence(mlir::OpBuilder &builder, mlir::Operation *point,
                       const mlir::IRMapping &mapping);
  mlir::Value count(mlir::OpBuilder &builder, Product &product, mlir::Value marks,
                    mlir::Value values, mlir::Value counts, const mlir::IRMapping &mapping);
  void guard(llvm::ArrayRef<gpu::DotOp> dots, const mlir::IRMapping &mapping);

  llvm::SmallVector<Product, 2> products; ///< each adds to the sum of the one before
  mlir::scf::ForOp loop;                  ///< carries the sum; or null
  mlir::Value sum;                        ///< behind the loop, or the last product's
};

} // namespace tk

#endif // TK_PASSES_PIPELINE_MASKEDDOTS_H
