//===- ChunkProduct.h - one product of decayed states -----------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_CHUNKPRODUCT_H
#define TK_PASSES_TENSOR_NORMALIZE_CHUNKPRODUCT_H

#include "passes/tensor/normalize/DecayWeights.h"
#include "passes/tensor/normalize/IndexArithmetic.h"
#include "passes/tensor/normalize/RecurrenceSide.h"

namespace tk {

/// out[t, x] = sum[y](a[t, y] * sum[r](w(t, r) * b[r, y] * c[r, x])) for the terms `r` up to `t`,
/// or from there on, in one compute op over all indices of the results and over y.
class ChunkProduct {
public:
  using Factor = DecayWeights::Factor;
  using Indices = llvm::SmallVector<mlir::BlockArgument>;

  /// `compute` has the sum over r alone. The first `numOfResult` of its indices are those of `out`.
  /// Operands are rounded to 16 bits if `mayRound`.
  ChunkProduct(ComputeOp compute, unsigned numOfResult, bool mayRound)
      : compute(compute), reduce(*compute.getBlock()->getOps<ReduceOp>().begin()),
        kernel(compute->getParentOfType<KernelOp>()), numOfResult(numOfResult), mayRound(mayRound) {
  }

  bool match();
  /// Nanoseconds of the product by chunks, infinite if there are none, and of a scan of states.
  /// The former chooses the length of a chunk.
  double timeOfChunks();
  double timeOfScan();
  /// Creates the compute ops before `use`.
  void write(ComputeOp use);
  /// Element `own` of the result, which has a value for each of the first indices.
  mlir::Value elementAt(mlir::OpBuilder &at, mlir::ValueRange own);

private:
  /// Which indices a weight has beside the batch's.
  enum class Kind { Plain, OfStates, OfColumns };
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>;

  bool divide();
  void findNarrow();
  bool hasNarrowScores();
  double sizeOf(const Indices &indices);
  ComputeOp define(llvm::StringRef suffix, llvm::ArrayRef<Indices> lists, bool hasRow,
                   const Indices &last, mlir::Type type, Body body);
  mlir::Value createStates();
  mlir::Value createCarried(mlir::Value states);
  mlir::Value createScores();
  mlir::Value createInside(mlir::Value scores);
  mlir::Value createResults(mlir::Value carried, mlir::Value scores);
  llvm::SmallVector<mlir::Value> placeOf(mlir::Value chunk, mlir::ValueRange inChunk,
                                         llvm::ArrayRef<Indices> lists);
  mlir::Value insideOf(mlir::OpBuilder &at, mlir::Value chunk, mlir::Value number,
                       mlir::Value scores);
  mlir::Value sumOverChunk(mlir::OpBuilder &at, mlir::Type type, mlir::Value seenBy,
                           llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)> term);
  mlir::Value sumOverStates(mlir::OpBuilder &at,
                            llvm::function_ref<mlir::Value(mlir::OpBuilder &)> term);
  mlir::Value scoreOf(mlir::OpBuilder &at, mlir::Value to, mlir::Value index);
  mlir::Value weighted(mlir::OpBuilder &at, mlir::Value value, mlir::Value to, mlir::Value index,
                       Kind kind);
  mlir::Value decay(mlir::OpBuilder &at, mlir::Value to, mlir::Value before,
                    std::optional<Kind> kind);
  mlir::Value seen(mlir::OpBuilder &at, mlir::Value score, mlir::Value number, mlir::Value term);
  mlir::Value edgeOf(mlir::OpBuilder &at, mlir::Value chunk);
  mlir::Value product(mlir::OpBuilder &at, llvm::ArrayRef<Factor> factors, mlir::Value row,
                      mlir::Value times = {});
  mlir::Value rounded(mlir::OpBuilder &at, mlir::Value value);
  mlir::Type storedType() { return narrow ? mlir::Type(narrow) : reduce.getResult(0).getType(); }
  mlir::Value toStored(mlir::OpBuilder &at, mlir::Value value);
  mlir::Value fromStored(mlir::OpBuilder &at, mlir::Value value);
  mlir::Value times(mlir::OpBuilder &at, mlir::Value a, mlir::Value b);
  mlir::Value rowOf(mlir::OpBuilder &at, mlir::Value chunk, mlir::Value number);
  void setIndices(const mlir::IRMapping &mapping);

  ComputeOp compute;
  ReduceOp reduce;
  KernelOp kernel;
  unsigned numOfResult;
  bool mayRound;
  RecurrenceSide side;
  std::optional<DecayWeights> weights;
  mlir::IRMapping indices;
  Indices batch, columns, states;                     ///< indices of out beside t; x; y
  llvm::SmallVector<Factor> a, b, c, ofTerm, ofPlace; ///< the last two have neither x nor y
  llvm::SmallVector<Kind> kinds;                      ///< of the weights
  bool weighsStates = false, weighsColumns = false;
  mlir::FloatType narrow; ///< of operands; null if they are not rounded
  int64_t length = 0;
  bool isWhole = false; ///< does the last chunk have all of its rows?
  mlir::Value extent, numChunks, results;
  mlir::OpBuilder *builder = nullptr;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_CHUNKPRODUCT_H
