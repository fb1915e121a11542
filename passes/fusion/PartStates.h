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
#ifndef TK_PASSES_FUSION_PARTSTATES_H
#define TK_PASSES_FUSION_PARTSTATES_H

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

class PartStates {
public:
  PartStates(KernelOp kernel, ComputeOp compute) : kernel(kernel), compute(compute) {}

  /// Are these states of parts, of ranges that it pays to compute in shares?
  bool match(gpu::TargetAttr target);
  bool isBatch(unsigned position) const { return llvm::is_contained(batch, position); }
  /// What `load`, which reads states, has for the batch index at `position`.
  mlir::Value batchIndexOf(LoadOp load, unsigned position);

  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  llvm::SmallVector<unsigned> batch, rows; ///< positions of the statement's indices
  mlir::arith::MulIOp offset;              ///< the place of a part's first term
  int64_t partLength = 0;                  ///< how many terms a part has
  mlir::Value begin, end;                  ///< of the range; 0 if there is no such beginning
  llvm::SetVector<ReduceOp> readers;       ///< what combines states
  int64_t mostBatch = 1;                   ///< at most how many ranges there are
  bool variesByRow = false;                ///< have rows bounds of their own?

private:
  bool matchBounds();
  bool isOfRange(mlir::Value bound);
  bool matchReader(LoadOp load);
  bool readsOneRange(ReduceOp reader);
  bool paysInShares(gpu::TargetAttr target);
};

} // namespace tk

#endif // TK_PASSES_FUSION_PARTSTATES_H
