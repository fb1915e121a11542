//===- RowOrder.h - rows in blocks by their group ---------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_ROWORDER_H
#define TK_PASSES_TENSOR_KEYS_ROWORDER_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// The number of rows that are ranked among each other.
inline constexpr int64_t rowsOfChunk = 256;

/// What a size that is not known is at most. Sizes are known, or no tensor has as many elements.
inline constexpr int64_t mostUnknown = int64_t(1) << 30;

/// Do the kernel's tensors, those between launches too, have fewer elements than that?
bool hasSmallTensors(KernelOp kernel);
/// An upper bound of `size`, at the level of `kernel`.
int64_t getMost(KernelOp kernel, mlir::Value size);

/// Tensors of i32 that sort rows by their group. A group takes whole blocks.
struct RowOrder {
  mlir::Value first;      ///< [group] the group's first block
  mlir::Value blockGroup; ///< [block] the group of a block
  mlir::Value blockRow;   ///< [block, place] the row at a place of a block, or -1
  mlir::Value place;      ///< [chunk, row of the chunk] block * rows of a block + place, or -1;
                          ///< null if rows were sorted by two digits
  mlir::Value numBlocks;  ///< as many as there may be; the last ones may be empty
  int64_t rowsOfBlock = 0;
};

/// Writes compute ops at one place of a kernel.
class ComputeWriter {
public:
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>;

  /// The names of the compute ops begin with `prefix`.
  ComputeWriter(mlir::OpBuilder builder, mlir::Location loc, llvm::StringRef prefix)
      : builder(builder), loc(loc), prefix(prefix) {}

  /// A compute op that stores `body`, of `type`, over `extents`.
  mlir::Value define(llvm::StringRef suffix, llvm::ArrayRef<llvm::StringRef> names,
                     llvm::ArrayRef<mlir::Value> extents, mlir::Type type, Body body);
  mlir::Value constant(mlir::OpBuilder &at, int64_t value);
  mlir::Value divide(mlir::OpBuilder &at, mlir::Value value, int64_t divisor);
  mlir::Value remainder(mlir::OpBuilder &at, mlir::Value value, int64_t divisor);
  /// An index as an i32.
  mlir::Value word(mlir::OpBuilder &at, mlir::Value index);
  /// The element of a tensor of i32 as an index; `pad` outside of the tensor.
  mlir::Value loadIndex(mlir::OpBuilder &at, mlir::Value tensor, mlir::ValueRange indices,
                        std::optional<int64_t> pad = std::nullopt);
  /// The sum of `term`, an index, over `extent`, as an index.
  mlir::Value count(mlir::OpBuilder &at, llvm::StringRef name, mlir::Value extent, Body term);
  /// How many of the indices from 0 to below `most` come before the first one for which `holds` is
  /// false. It is false for all indices behind that one.
  mlir::Value countLeading(mlir::OpBuilder &at, int64_t most,
                           llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)> holds);

protected:
  mlir::OpBuilder builder;
  mlir::Location loc;

private:
  std::string prefix;
};

/// Creates the compute ops that sort rows by their group.
class RowSorter : ComputeWriter {
public:
  /// The group of a row, an index, in a compute op.
  using GroupOf = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)>;

  RowSorter(KernelOp kernel, const ComputeWriter &writer) : ComputeWriter(writer), kernel(kernel) {}

  /// Sorts rows into `numGroups` groups, whose blocks have `rowsOfBlock` rows. There are `batches`
  /// times `numRows` rows. Group `g` of batch `a` has the number `a * numGroups + g`. `groupOf`
  /// gives the group of a row among those of its batch.
  RowOrder sort(mlir::Value batches, mlir::Value numRows, mlir::Value numGroups,
                int64_t rowsOfBlock, GroupOf groupOf);

  /// Nanoseconds that it takes to sort rows of these numbers.
  static double timeOf(double batches, double rows, double groups, int64_t rowsOfBlock);

private:
  void storeRuns(GroupOf groupOf);
  void storeCounts();
  mlir::Value allOf(mlir::OpBuilder &at, mlir::Value ofBatch);
  mlir::Value rowsBefore(mlir::OpBuilder &at, mlir::Value group, mlir::Value batch);
  std::pair<mlir::Value, mlir::Value> splitGroup(mlir::OpBuilder &at, mlir::Value group);
  mlir::Value batchOfChunk(mlir::OpBuilder &at, mlir::Value chunk);
  void storeBlocks(RowOrder &order);
  void storePlaces(RowOrder &order);
  void storeRows(RowOrder &order);

  KernelOp kernel;
  int64_t rowsOfBlock = 0;
  /// Numbers at the level of the kernel. Those of rows, groups and chunks are of one batch.
  mlir::Value batches, numRows, numGroups, numChunks, chunkSize, blockSize;
  /// [chunk, row of the chunk] the row's group and its place in the chunk, and the number of
  /// smaller ones; [chunk, rank] the same, sorted.
  mlir::Value entry, rank, run;
  /// [group of the batch, chunk of all] the chunk's rows up to the end of the group, and the
  /// group's rows up to the end of the chunk.
  mlir::Value inChunk, upTo;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_ROWORDER_H
