//===- ComputedFactor.h - a computed operand as a compute op of its own -*- C++ -*-===//
#ifndef TK_PASSES_FUSION_COMPUTEDFACTOR_H
#define TK_PASSES_FUSION_COMPUTEDFACTOR_H

#include "dialects/tk/TkDialect.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

/// An upper bound of an extent, or a guess where there is none.
double guessSize(KernelOp kernel, mlir::Value extent);

/// Where the range of an index of `reduce` ends without what masks take off: the first of nested
/// minima is what the program says. Null if that is no number of the launch, or if the range does
/// not begin at 0.
mlir::Value wholeExtent(ReduceOp reduce, unsigned position, ComputeOp compute);

/// Erases what no result of `compute` needs.
void eraseDead(ComputeOp compute);

/// A statement before `compute` that stores the tensor which `factor`, in `reduce` of it, loads
/// from, axis d of the result being axis `axes[d]` of the tensor.
mlir::Value storePermuted(LoadOp factor, ComputeOp compute, ReduceOp reduce,
                          llvm::ArrayRef<unsigned> axes);

/// A factor of the sum `reduce`, which may stand in the reduction `outer` of a statement, that is
/// computed from what is loaded and from reductions of it.
///
/// What it is over are indices of the statement, that of the sum, and that of the outer reduction;
/// or, in place of an index of the statement, what its accesses make of it alone: a group's number
/// (h / 4), which is over an axis of the tensor that is read.
class ComputedFactor {
public:
  ComputedFactor(KernelOp kernel, ComputeOp compute, ReduceOp outer, ReduceOp reduce,
                 mlir::Value factor)
      : kernel(kernel), compute(compute), outer(outer), reduce(reduce), factor(factor) {}

  /// Finds what the factor is over; false if it cannot be stored as copies take it.
  bool read();
  /// Is the factor over nothing that `value` of the statement is not over?
  bool coversIndicesOf(mlir::Value value);
  double bytes();
  /// Stores the factor in a statement of its own, the sum's index last, and has it loaded; so are
  /// `rows`, which are over all but the sum's index. Outside of the sum's range it is 0 if it
  /// `isMasked`.
  void store(llvm::StringRef suffix, llvm::ArrayRef<mlir::Value> rows = {}, bool isMasked = false);

private:
  /// What is stored is over an iteration index, or over what accesses make of one.
  struct Leaf {
    mlir::Value index, extent;
    std::string name;
    int64_t rank = 0;
  };

  bool visit(mlir::Value value);
  bool visitIndex(LoadOp load, unsigned axis);
  bool addBare(mlir::BlockArgument index);
  bool isGroup(mlir::Value index);
  void orderLeaves();
  mlir::Value copyMasked(mlir::OpBuilder &builder, mlir::IRMapping &mapping);

  KernelOp kernel;
  ComputeOp compute;
  ReduceOp outer, reduce;
  mlir::Value factor;
  llvm::SmallVector<Leaf> leaves;
  llvm::SetVector<mlir::Value> bare;
  llvm::MapVector<mlir::Value, Leaf> groups;
  llvm::DenseSet<mlir::Value> visited;
  LoadOp widest;
};

} // namespace tk

#endif // TK_PASSES_FUSION_COMPUTEDFACTOR_H
