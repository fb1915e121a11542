//===- TermSorting.h - sorts the elements of reductions ---------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_TERMSORTING_H
#define TK_PASSES_TENSOR_KEYS_TERMSORTING_H

#include "passes/tensor/keys/KeyedTerms.h"

#include <string>

namespace tk {

/// The elements of a block, and of one if it is not known how many elements or keys there are:
/// blocks of few keys are read at a time, and those of many keys may be nearly empty.
inline constexpr int64_t termsOfBlock = 128, termsOfUnknown = 32;
/// The results of a key that lie side by side, and the elements of a key, from which on a block has
/// the results of one key.
inline constexpr double leastColumnsOfKey = 32, leastTermsOfKey = 0.25;

/// Sorts the elements of reductions in one compute op.
class TermSorting {
public:
  TermSorting(KernelOp kernel, ComputeOp compute, RowOrders &orders)
      : kernel(kernel), compute(compute), orders(orders), builder(compute), loc(compute.getLoc()),
        writer(builder, loc, mlir::cast<mlir::StringAttr>(compute.getNames()[0]).getValue()) {}

  /// Whether the reductions of sorted elements take less time. All of `all` have one key.
  bool pays(llvm::ArrayRef<KeyedReduction> all);
  /// Sorts the elements of `all`, which have one key. `number` tells the first one from others of
  /// the compute op.
  void rewrite(llvm::ArrayRef<KeyedReduction> all, unsigned number);

private:
  int64_t blockSizeOf(llvm::ArrayRef<KeyedReduction> all);
  std::pair<double, double> timesOfProduct(const KeyedReduction &keyed, double products,
                                           double places, double columns);
  mlir::Value copyElement(mlir::OpBuilder &at, const KeyedReduction &keyed, mlir::Value element,
                          mlir::Value block, mlir::Value row, mlir::ValueRange columns,
                          mlir::ValueRange rest, bool isPresent = true);
  void padRows(mlir::Operation *in);
  mlir::Value firstBlock(mlir::OpBuilder &at, const KeyedReduction &keyed, bool isNext);
  mlir::Value isNan(mlir::OpBuilder &at, mlir::Value value);

  // Blocks of elements (KeyedBlocks.cpp).
  mlir::Value reduceAll(const KeyedReduction &keyed, llvm::StringRef suffix);
  mlir::Value storeBlocks(const KeyedReduction &keyed, llvm::StringRef suffix, mlir::Type type,
                          ReduceKind kind, bool isPresent);
  mlir::Value reduceBlocks(const KeyedReduction &keyed, mlir::Value blocks, ReduceKind kind);
  double termsOfKey(const KeyedReduction &keyed);
  bool hasRowsOfKeys(const KeyedReduction &keyed);
  mlir::Value reduceKey(const KeyedReduction &keyed);
  /// Tells planners how many elements a key has on average.
  void setTypicalTerms(ReduceOp reduce, const KeyedReduction &keyed);
  mlir::Value reduceRuns(const KeyedReduction &keyed, llvm::StringRef suffix);
  mlir::Value selectNan(const KeyedReduction &keyed, mlir::Value total, llvm::StringRef suffix);

  // Matrix products (KeyedProducts.cpp).
  mlir::Value multiply(const KeyedReduction &keyed, llvm::StringRef suffix);
  mlir::Value storeFactor(const KeyedReduction &keyed, mlir::Value factor,
                          llvm::ArrayRef<unsigned> columns, llvm::StringRef suffix);
  mlir::Value sumPlaces(mlir::OpBuilder &at, const KeyedReduction &keyed, mlir::ValueRange group,
                        mlir::Type type,
                        llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)> element);
  mlir::Value differs(const KeyedReduction &keyed, mlir::Value factor, mlir::Value stored,
                      llvm::ArrayRef<unsigned> columns, llvm::StringRef suffix);

  KernelOp kernel;
  ComputeOp compute;
  RowOrders &orders;
  mlir::OpBuilder builder;
  mlir::Location loc;
  ComputeWriter writer;
  RowOrder order;
  llvm::SmallVector<mlir::Value> rows; ///< the rows that elements were copied for
};

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_TERMSORTING_H
