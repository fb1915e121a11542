//===- RowOrder.h - rows in blocks by their group ---------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_OPERANDS_ROWORDER_H
#define TK_PASSES_TENSOR_OPERANDS_ROWORDER_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// The number of rows that are ranked among each other.
inline constexpr int64_t rowsOfChunk = 256;

/// Tensors of i32 that sort rows by their group. A group takes whole blocks.
struct RowOrder {
  mlir::Value first;      ///< [group] the group's first block
  mlir::Value blockGroup; ///< [block] the group of a block
  mlir::Value blockRow;   ///< [block, place] the row at a place of a block, or -1
  mlir::Value place;      ///< [chunk, row of the chunk] block * rows of a block + place, or -1
  mlir::Value numBlocks;  ///< as many as there may be; the last ones may be empty
};

/// Creates the compute ops that sort rows by their group.
class RowSorter {
public:
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>;
  /// The group of a row, an index, in a compute op.
  using GroupOf = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)>;

  /// The compute ops stand at `before`. Their names begin with that of its first result.
  RowSorter(KernelOp kernel, ComputeOp before)
      : kernel(kernel), before(before), builder(before), loc(before.getLoc()) {}

  /// Sorts `numRows` rows into `numGroups` groups, whose blocks have `rowsOfBlock` rows.
  RowOrder sort(mlir::Value numRows, mlir::Value numGroups, int64_t rowsOfBlock, GroupOf groupOf);

  /// Nanoseconds that it takes to sort rows of these numbers.
  static double timeOf(double rows, double groups, int64_t rowsOfBlock);

  mlir::Value constant(mlir::OpBuilder &at, int64_t value);
  /// A compute op that stores `body`, of `type`, over `extents`.
  mlir::Value define(llvm::StringRef suffix, llvm::ArrayRef<llvm::StringRef> names,
                     llvm::ArrayRef<mlir::Value> extents, mlir::Type type, Body body);
  /// The element of a tensor of i32 as an index; `pad` outside of the tensor.
  mlir::Value loadIndex(mlir::OpBuilder &at, mlir::Value tensor, mlir::ValueRange indices,
                        std::optional<int64_t> pad = std::nullopt);
  mlir::Value divide(mlir::OpBuilder &at, mlir::Value value, int64_t divisor);
  mlir::Value remainder(mlir::OpBuilder &at, mlir::Value value, int64_t divisor);

private:
  mlir::Value count(mlir::OpBuilder &at, llvm::StringRef name, mlir::Value extent, Body term);
  mlir::Value word(mlir::OpBuilder &at, mlir::Value index);
  void storeGroups(GroupOf groupOf);
  void storeBlocks(RowOrder &order);
  void storePlaces(RowOrder &order);
  void storeRows(RowOrder &order);
  mlir::Value storeChunksOfPlaces(const RowOrder &order);

  KernelOp kernel;
  ComputeOp before;
  mlir::OpBuilder builder;
  mlir::Location loc;
  int64_t rowsOfBlock = 0;
  mlir::Value numRows, numGroups, numChunks, chunkSize, blockSize; ///< at the level of the kernel
  mlir::Value entry; ///< [chunk, row of the chunk] the row's group, or -1 behind the last row
  mlir::Value inChunk, upTo; ///< [group, chunk] the group's rows in the chunk, and up to its end
};

} // namespace tk

#endif // TK_PASSES_TENSOR_OPERANDS_ROWORDER_H
