//===- RowKey.h - the integer that rows are sorted by -----------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_ROWKEY_H
#define TK_PASSES_TENSOR_KEYS_ROWKEY_H

#include "passes/tensor/keys/RowOrder.h"

#include "llvm/ADT/SetVector.h"

#include <deque>

namespace tk {

/// An integer that each row has. A row is a tuple of iteration indices.
struct RowKey {
  ComputeOp compute;                      ///< the compute op whose body computes the key
  mlir::Value key;                        ///< an integer or an index in that body
  llvm::SmallVector<mlir::Value> indices; ///< the iteration indices of a row
  llvm::SmallVector<mlir::Value> extents; ///< their extents, at the level of the kernel
  unsigned numBatches = 0;                ///< the first indices, which are part of the group
  mlir::Value numKeys;                    ///< the number of keys, from 0 on
};

/// Does `key`, in the body of `compute`, read a tensor, and does nothing in it need a reduction?
bool readsTable(mlir::Value key, ComputeOp compute);

/// The iteration indices that `value` depends on, less those that it depends on by `key` alone.
llvm::SetVector<mlir::Value> getIndicesBeside(mlir::Value key, mlir::Value value);

/// The loads in the computation of `value`, in `compute`.
llvm::SmallVector<LoadOp> getLoads(mlir::Value value, ComputeOp compute);

/// The extent of `index`, of `compute` or of a reduction in it, as a value at the level of the
/// kernel; null if it is none or if the index does not begin at 0.
mlir::Value getExtent(mlir::Value index, ComputeOp compute);
llvm::StringRef getName(mlir::Value index);

/// Rows of a kernel in the order of their keys. Rows with one key share one order. Group
/// `batch * (numKeys + 1) + key` has the rows of a key. The last group of a batch has the rows
/// whose key is negative or `numKeys` at least.
class RowOrders {
public:
  explicit RowOrders(KernelOp kernel) : kernel(kernel) {}

  /// The order of the rows of `key`, in blocks of `rowsOfBlock`. The compute ops that sort are
  /// created at the first call. Without `withPlaces` the order may have no places of rows.
  const RowOrder &get(const RowKey &key, int64_t rowsOfBlock, bool withPlaces);
  /// Nanoseconds that it takes to sort rows of these numbers without their places.
  static double timeOf(double batches, double rows, double groups, int64_t rowsOfBlock);
  /// Erases places of rows that nothing reads.
  void eraseUnused();
  bool contains(const RowKey &key, int64_t rowsOfBlock) {
    return find(key, rowsOfBlock) != nullptr;
  }

private:
  struct Entry {
    RowKey key;
    int64_t rowsOfBlock;
    RowOrder order;
  };
  Entry *find(const RowKey &key, int64_t rowsOfBlock);
  mlir::OpBuilder getPlace(const RowKey &key);

  KernelOp kernel;
  std::deque<Entry> entries;
};

/// The indices of the row with the number `row`.
llvm::SmallVector<mlir::Value> splitRow(mlir::OpBuilder &at, mlir::Location loc, mlir::Value row,
                                        mlir::ValueRange extents);
/// The number of the row of `indices`.
mlir::Value joinRow(mlir::OpBuilder &at, mlir::Location loc, mlir::ValueRange indices,
                    mlir::ValueRange extents);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_ROWKEY_H
