//===- PartStates.h - compute ops of partial softmax states -----*- C++ -*-===//
//
// The form in which tk-split-chains leaves an attention loop whose ranges a tensor holds, and which
// tk-share-parts reads:
//
//   %s = tk.compute ["j.part", batch.., rows.., ..] in (%P, ..) {
//     tk.reduce ["j"] from (0, or max(0, begin - j.part * L)) to (min(L, end - j.part * L)) {..}}
//   tk.reduce ["j.part"] from (0) to (%P) {.. %s[j.part, ..] ..}
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_SPLIT_PARTSTATES_H
#define TK_PASSES_TENSOR_SPLIT_PARTSTATES_H

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

class PartStates {
public:
  PartStates(KernelOp kernel, ComputeOp compute) : kernel(kernel), compute(compute) {}

  /// True if these are partial softmax states of ranges for which work units pay.
  bool match(gpu::TargetAttr target);
  bool isBatch(unsigned position) const { return llvm::is_contained(batch, position); }
  /// The batch index at `position` of a `load` of states.
  mlir::Value batchIndexOf(LoadOp load, unsigned position);

  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  llvm::SmallVector<unsigned> batch, rows; ///< positions of the compute op's indices
  mlir::arith::MulIOp offset;              ///< the position of a part's first element
  int64_t partLength = 0;                  ///< elements of a part
  mlir::Value begin, end;                  ///< of the range; 0 if there is no such beginning
  llvm::SetVector<ReduceOp> readers;       ///< the reductions that combine states
  int64_t mostBatch = 1;                   ///< an upper bound of the number of ranges
  int64_t tilesOfRows = 1;                 ///< each of which has work units of its own
  bool variesByRow = false;                ///< true if rows have bounds of their own

private:
  bool matchBounds();
  bool isOfRange(mlir::Value bound);
  bool matchReader(LoadOp load);
  bool readsOneRange(ReduceOp reader);
  bool paysInShares(gpu::TargetAttr target);
};

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_PARTSTATES_H
