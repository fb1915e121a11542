//===- InvariantStores.h - values that many elements share ------*- C++ -*-===//
//
// The values that tk-store-invariants stores, of one compute op (StoreInvariants.cpp). Those in
// operands of matrix products are found in OperandInvariants.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_OPERANDS_INVARIANTSTORES_H
#define TK_PASSES_TENSOR_OPERANDS_INVARIANTSTORES_H

#include "dialects/tk/TkDialect.h"

#include <string>

namespace tk {

/// A value that is over some indices of its statement.
struct Invariant {
  mlir::Value value;
  /// Of the statement in their order, or the last of a reduction or scan.
  llvm::SmallVector<mlir::BlockArgument> over;
  llvm::SmallVector<mlir::Value> extents;
  llvm::SmallVector<std::string> names;
  double functions = 0; ///< long ones
  double instructions = 0;
  double users = 0; ///< elements that are computed from it
};

/// The index that runs along memory: the last one of a statement, or that of a reduction or scan.
struct AlongIndex {
  mlir::BlockArgument index;
  mlir::Value extent; ///< null if it does not run over one whole range
  std::string name;
  bool isOfStatement = false;
};

class InvariantStores {
public:
  InvariantStores(KernelOp kernel, ComputeOp compute) : kernel(kernel), compute(compute) {}
  unsigned run();

private:
  AlongIndex ofStatement();
  AlongIndex ofReduction(ReduceOp reduce);
  AlongIndex ofScan(ScanOp scan);
  std::optional<Invariant> read(mlir::Value value, const AlongIndex &along);
  void collect(mlir::Block *block, const AlongIndex &along);
  void collectOperands(ReduceOp product);
  void add(Invariant &&invariant);
  bool pays(llvm::ArrayRef<Invariant *> together);
  bool paysInOperands(llvm::ArrayRef<Invariant *> together);
  bool isShared(const Invariant &invariant);
  double bytesOfElement();
  mlir::Value findStored(const Invariant &invariant);
  void store(llvm::ArrayRef<Invariant *> together);
  void replace(Invariant &invariant, mlir::Value tensor);
  double sizeOf(mlir::ValueRange extents);

  KernelOp kernel;
  ComputeOp compute;
  unsigned stored = 0;     ///< values that are read from memory now
  bool inOperands = false; ///< values in operands of matrix products are looked for
  llvm::SmallVector<Invariant> found;
  /// With the number of what they are equal to.
  llvm::SmallVector<std::pair<Invariant, size_t>> copies;
};

/// The operations inside `compute` that `value` is computed by, if nothing is reduced or scanned
/// among them.
std::optional<llvm::SmallVector<mlir::Operation *>> getElementwise(ComputeOp compute,
                                                                   mlir::Value value);

} // namespace tk

#endif // TK_PASSES_TENSOR_OPERANDS_INVARIANTSTORES_H
