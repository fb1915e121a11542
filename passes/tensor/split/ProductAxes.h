//===- ProductAxes.h - the indices of a product, by kind --------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_PRODUCTAXES_H
#define TK_PASSES_TENSOR_SPLIT_PRODUCTAXES_H

#include "dialects/tk/TkDialect.h"

#include "mlir/IR/IRMapping.h"

#include <array>

namespace tk {

using Indices = llvm::SmallVector<mlir::BlockArgument>;

/// A compute op of one sum of products of two loaded factors. Handles alone: it is passed by value.
struct Product {
  ComputeOp compute;
  ReduceOp reduce;
  std::array<LoadOp, 2> factors;

  static std::optional<Product> match(KernelOp kernel, ComputeOp compute);
  Indices axesOf(unsigned factor);
  bool has(unsigned factor, mlir::BlockArgument index) {
    return llvm::is_contained(factors[factor].getIndices(), index);
  }
  mlir::Value extentOf(mlir::BlockArgument index);
  mlir::StringRef nameOf(mlir::BlockArgument index);

private:
  bool isRead(KernelOp kernel, LoadOp load);
};

/// The indices of a product, sorted.
struct ProductAxes {
  Indices batch, own[2], terms; ///< `own`: rows and columns

  explicit ProductAxes(Product product);
  bool isInOrder(llvm::ArrayRef<mlir::BlockArgument> axes, const Indices &a,
                 const Indices &b) const {
    return axes == llvm::ArrayRef(join({&batch, &a, &b})) ||
           axes == llvm::ArrayRef(join({&batch, &b, &a}));
  }
  bool hasFactorInOrder(Product product, unsigned n) const {
    return isInOrder(product.axesOf(n), own[n], terms);
  }
  bool hasResultInOrder(Product product) const;

private:
  static Indices join(std::initializer_list<const Indices *> parts) {
    Indices all;
    for (const Indices *part : parts)
      llvm::append_range(all, *part);
    return all;
  }
};

/// Indices that become one.
struct Joined {
  Indices indices;
  mlir::Value extent;
  std::string name;

  Joined(mlir::OpBuilder &builder, Product product, const Indices &indices);
  /// Maps the indices to parts of `joined`: its quotients and remainders.
  void divide(mlir::OpBuilder &builder, Product product, mlir::Value joined,
              mlir::IRMapping &mapping) const;
  /// The place that the indices have together, where `own` is each one's.
  mlir::Value place(mlir::OpBuilder &builder, Product product, mlir::ValueRange own) const;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_PRODUCTAXES_H
