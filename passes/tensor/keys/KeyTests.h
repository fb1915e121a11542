//===- KeyTests.h - comparisons solved for an index -------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_KEYTESTS_H
#define TK_PASSES_TENSOR_KEYS_KEYTESTS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Comparisons in a reduction that ask for a value of an index of the compute op, written as
/// `key == index`.
class KeyTests {
public:
  KeyTests(ComputeOp compute, ReduceOp reduce);
  /// Brings the comparisons back as they were written. To be called while they are there.
  void restore();

private:
  void solveRanges(mlir::Value condition);
  void replace(mlir::Value written, mlir::Value solved);

  ComputeOp compute;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> replaced; ///< as written, solved
};

/// `total`, an integer of at most as many bits as `type`, in `type`.
mlir::Value convertTotal(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value total,
                         mlir::Type type);

/// Replaces the result of `reduce`, a count or a sum of integers, by `total`, an integer of at most
/// as many bits, in the result's type.
void replaceByTotal(mlir::OpBuilder &builder, ReduceOp reduce, mlir::Value total);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_KEYTESTS_H
