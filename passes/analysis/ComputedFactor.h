//===- ComputedFactor.h - a computed operand as a compute op of its own -*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_COMPUTEDFACTOR_H
#define TK_PASSES_ANALYSIS_COMPUTEDFACTOR_H

#include "dialects/tk/TkDialect.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

/// An upper bound of an extent, or a guess where there is none.
double guessSize(KernelOp kernel, mlir::Value extent);

/// The end of the range of an index of `reduce` without the bounds that masks add: the first of
/// nested minima is the bound of the program. Null if that is no number of the launch, or if the
/// range does not begin at 0.
mlir::Value wholeExtent(ReduceOp reduce, unsigned position, ComputeOp compute);

/// Erases the operations of `compute` that no result needs.
void eraseDead(ComputeOp compute);

/// Creates a compute op in front of `compute` that stores the tensor which `factor`, in `reduce` of
/// it, loads. Axis d of the result is axis `axes[d]` of the tensor.
mlir::Value storePermuted(LoadOp factor, ComputeOp compute, ReduceOp reduce,
                          llvm::ArrayRef<unsigned> axes);

/// An operand of the sum `reduce`, which may stand in the reduction `outer` of a compute op. The
/// operand is computed from loads and from reductions of loads. It is over indices of the compute
/// op, the index of the sum, and the index of the outer reduction. In place of an index of the
/// compute op it may be over a value that its accesses derive from that index alone: the number of
/// a group (h / 4), which is over an axis of the loaded tensor.
class ComputedFactor {
public:
  ComputedFactor(KernelOp kernel, ComputeOp compute, ReduceOp outer, ReduceOp reduce,
                 mlir::Value factor)
      : kernel(kernel), compute(compute), outer(outer), reduce(reduce), factor(factor) {}

  /// Finds the indices of the operand; false if it cannot be stored in a form that copies load.
  bool read();
  /// Lets the operand lie as the widest of the tensors that it is computed from. An index that this
  /// one has not comes before its last axis, so that neighbouring elements read the same.
  void orderAsLoaded();
  /// True if each index of the operand is an index of `value`, a value of the compute op.
  bool coversIndicesOf(mlir::Value value);
  /// True if the operand is over iteration indices alone, not over values derived from them.
  bool hasBareIndices() const { return groups.empty(); }
  double bytes();
  /// Stores the operand by a compute op of its own, with the sum's index last, and replaces it by a
  /// load. The same holds for `rows`, which are over all indices but the sum's. With `isMasked` the
  /// stored operand is 0 outside of the sum's range. A compute op among `known` that stores the
  /// same is taken instead. Returns the compute op.
  ComputeOp store(llvm::StringRef suffix, llvm::ArrayRef<mlir::Value> rows = {},
                  bool isMasked = false, llvm::ArrayRef<ComputeOp> known = {});

private:
  /// An index of the stored operand: an iteration index, or a value that accesses derive from one.
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

#endif // TK_PASSES_ANALYSIS_COMPUTEDFACTOR_H
