//===- AxisPairs.h - axes and indices that can be collapsed -----*- C++ -*-===//
//
// Pairs of neighbouring axes of tensors, and of indices of compute ops and reductions, that all
// accesses use together. CollapseAxes.cpp states the conditions.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_AXISPAIRS_H
#define TK_PASSES_TENSOR_NORMALIZE_AXISPAIRS_H

#include "dialects/tk/TkDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/IntEqClasses.h"

namespace tk {

/// The pairs of neighbours in one kernel, numbered: neighbouring axes of a tensor, and neighbouring
/// indices of a compute op or a reduction. The first of the two names the pair.
///
/// With `dividesIndices`, a tensor whose axes another access needs apart is still read by one
/// index, divided into two: `t[n, i / W, i % W]`. Only rows of matrix products want this.
class AxisPairs {
public:
  AxisPairs(KernelOp kernel, bool dividesIndices);

  /// True if `axis` of `tensor`, or index `p` of `owner`, collapses with the next one.
  bool joinsNext(mlir::Value tensor, unsigned axis) const {
    return isCollapsed(tensor.getAsOpaquePointer(), axis);
  }
  bool joinsNext(mlir::Operation *owner, unsigned p) const { return isCollapsed(owner, p); }

private:
  void number(const void *of, unsigned count);
  std::optional<unsigned> find(const void *of, int64_t first) const;
  bool isCollapsed(const void *of, unsigned first) const;
  void tie(std::optional<unsigned> a, std::optional<unsigned> b);
  void refuse(std::optional<unsigned> pair);
  void addTensor(mlir::Value tensor);
  void addIndices(mlir::Operation *owner);
  void tieLoad(LoadOp load);
  void keepApart();
  llvm::IntEqClasses classes() const;
  llvm::SmallVector<bool> ofClasses(const llvm::IntEqClasses &classes,
                                    llvm::ArrayRef<bool> ofPairs) const;
  void tieResults(ComputeOp compute);
  void wantRows(ComputeOp compute);
  void wantTurned(ComputeOp compute);
  void checkIndex(mlir::BlockArgument index);
  bool runsOverAxis(mlir::BlockArgument index, mlir::Value extent) const;

  KernelOp kernel;
  bool dividesIndices;
  llvm::DenseMap<std::pair<const void *, unsigned>, unsigned> numbers;
  llvm::SmallVector<bool> refused, wanted; // by number
  llvm::SmallVector<bool> apart;           // by number: axes of a tensor that stay two
  llvm::SmallVector<std::pair<unsigned, unsigned>> ties;
  llvm::SmallVector<bool> collapsed; // by number, at the end
};

/// Collapses all pairs of `module` that AxisPairs accepts, but those of kernels with a schedule
/// block, and returns how many indices are gone. The notes are those of pass `passName`.
unsigned collapsePairs(mlir::ModuleOp module, llvm::StringRef passName, bool dividesIndices);

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_AXISPAIRS_H
