//===- DigitOrder.h - rows sorted by two digits of their group --*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_DIGITORDER_H
#define TK_PASSES_TENSOR_KEYS_DIGITORDER_H

#include "passes/tensor/keys/RowOrder.h"

namespace tk {

/// Sorts rows of many groups by the lower digit of their group, then by the higher one.
class DigitSorter : ComputeWriter {
public:
  using GroupOf = RowSorter::GroupOf;

  DigitSorter(KernelOp kernel, mlir::OpBuilder builder, mlir::Location loc, llvm::StringRef prefix)
      : ComputeWriter(builder, loc, prefix), kernel(kernel), prefix(prefix) {}

  /// The order of `numRows` rows in `numGroups` groups, as that of RowSorter without places of
  /// rows.
  RowOrder sort(mlir::Value numRows, mlir::Value numGroups, int64_t rowsOfBlock, GroupOf groupOf);

  /// Nanoseconds that it takes to sort rows of these numbers.
  static double timeOf(double rows, double groups, int64_t rowsOfBlock);

private:
  mlir::Value storeRows(mlir::Value numRows, mlir::Value numGroups, GroupOf groupOf);
  void storeBlocks(RowOrder &order, mlir::Value rows, mlir::Value numRows, mlir::Value numGroups);

  KernelOp kernel;
  std::string prefix;
  mlir::Value start; ///< [group] the first of its rows in the order of all
};

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_DIGITORDER_H
