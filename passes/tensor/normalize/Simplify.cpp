//===- Simplify.cpp - fold, merge and hoist at the level of tensors -------===//
//
// Inlining and fusion leave equal expressions, equal reductions and invariant factors behind.
// Passes that match patterns need one canonical form. This pass produces that form. Its patterns
// run in this order:
//
// 1. `fold`: fold, canonicalise and merge equal scalar expressions with MLIR's drivers
//    (FoldExpressions.cpp). Four further rewrites run with them:
//    * compare narrow integers with indices as indices, which have 32 bits on a GPU;
//    * truncate the elements of an integer sum instead of the sum;
//    * move the masked value of a selection to the second operand;
//    * fold a comparison of a clamped float with a value outside of its limits.
// 2. `form-windows`: let ranges of a bounded length begin at 0 (FormWindows.cpp).
// 3. `unroll`: write out reductions of a few elements (UnrollReductions.cpp).
// 4. `order-indices`: order the indices of a reduction as they lie in memory (OrderIndices.cpp).
// 5. `merge-equal`: replace a reduction or scan by an equal one that dominates it. Indices may have
//    different names.
// 6. `separate-products`: split a sum of several products into one sum each (SeparateProducts.cpp).
// 7. `hoist-factors`: apply an invariant factor to the sum instead of to each element
//    (HoistFactors.cpp).
// 8. `group-factors`: multiply the factors of a sum in the order that makes two operands of them
//    (GroupFactors.cpp).
// 9. `reuse-weights`: replace `exp(x - logsumexp)` by a softmax numerator over its sum
//    (SummedWeights.cpp).
// 10. `running-maxima`: take exponentials under the running maximum if they are taken under the
//    greater of it and another value (RunningReferences.cpp).
//
// `fold` runs again after `unroll` and at the end if anything changed. `merge-equal` runs last,
// too.
//
//   %s = tk.reduce [sum] ["j"] {mulf (tk.div_or_zero %e, %z), %v}
//     =>                                                                    // hoist-factors
//   %t = tk.reduce [sum] ["j"] {mulf %e, %v}
//   %s = tk.div_or_zero %t, %z
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/Simplify.h"
#include "passes/tensor/normalize/FormRecurrences.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/tensor/normalize/BandProducts.h"
#include "passes/tensor/normalize/ChunkProducts.h"
#include "passes/tensor/normalize/GroupFactors.h"
#include "passes/tensor/normalize/PadConditions.h"
#include "passes/tensor/normalize/RunningReferences.h"
#include "passes/tensor/normalize/SeparateProducts.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

namespace tk {
#define GEN_PASS_DEF_SIMPLIFY
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

unsigned tk::mergeEqualReductions(ComputeOp compute) {
  SmallVector<Operation *> kept;
  SmallVector<Operation *> all;
  compute->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<ReduceOp, ScanOp>(op))
      all.push_back(op);
  });
  DominanceInfo dominance(compute);
  llvm::SmallPtrSet<Operation *, 8> erased;
  unsigned merged = 0;
  for (Operation *op : all) {
    if (erased.contains(op))
      continue;
    Operation *same = nullptr;
    for (Operation *earlier : kept)
      if (dominance.properlyDominates(earlier, op, /*enclosingOpOk=*/false) &&
          ScalarEquality().equal(earlier, op)) {
        same = earlier;
        break;
      }
    if (!same) {
      kept.push_back(op);
      continue;
    }
    op->walk([&](Operation *nested) { erased.insert(nested); });
    op->replaceAllUsesWith(same->getResults());
    op->erase();
    ++merged;
  }
  return merged;
}

static void mergeExpressions(Operation *root) {
  IRRewriter rewriter(root->getContext());
  DominanceInfo dominance(root);
  eliminateCommonSubExpressions(rewriter, dominance, root);
}

/// The reductions in `root`, inner ones before those that they are part of.
static SmallVector<ReduceOp> collectReductions(Operation *root) {
  SmallVector<ReduceOp> reduces;
  root->walk([&](ReduceOp reduce) { reduces.push_back(reduce); });
  return reduces;
}

namespace {
struct SimplifyPass : tk::impl::SimplifyBase<SimplifyPass> {
  using SimplifyBase::SimplifyBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    bool changed = true;
    auto fold = [&] {
      if (changed) {
        patterns.run("fold", [&] { foldExpressions(getOperation()); });
        patterns.run("merge-expressions", [&] { mergeExpressions(getOperation()); });
      }
      changed = false;
    };
    auto forComputes = [&](StringRef name, llvm::function_ref<void(ComputeOp)> rewrite) {
      patterns.run(name,
                   [&] { getOperation()->walk([&](ComputeOp compute) { rewrite(compute); }); });
    };
    auto merge = [&](ComputeOp compute) { numMerged += mergeEqualReductions(compute); };
    fold();
    const bool isForGpu = getOperation()->hasAttr(gpu::targetAttrName);
    patterns.run("pad-conditions", [&] {
      SmallVector<ComputeOp> computes;
      getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
      for (ComputeOp compute : computes)
        changed |= padConditions(compute, /*splits=*/isForGpu);
    });
    fold();
    patterns.run("band-products", [&] {
      SmallVector<ComputeOp> computes;
      getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
      for (ComputeOp compute : computes)
        changed |= isForGpu && formBandProducts(compute);
    });
    fold();
    patterns.run("form-windows", [&] {
      for (ReduceOp reduce : collectReductions(getOperation()))
        changed |= countRange(reduce) || formWindow(reduce);
    });
    fold();
    patterns.run("unroll", [&] {
      for (ReduceOp reduce : collectReductions(getOperation()))
        changed |= unrollReduction(reduce);
    });
    fold();
    patterns.run("only-terms", [&] {
      for (ReduceOp reduce : collectReductions(getOperation()))
        changed |= takeOnlyTerm(reduce);
    });
    fold();
    patterns.run("chunk-products", [&] {
      SmallVector<ComputeOp> computes;
      getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
      for (ComputeOp compute : computes)
        changed |= isForGpu && formChunkProducts(compute);
    });
    fold();
    patterns.run("form-scans", [&] {
      for (ReduceOp reduce : collectReductions(getOperation()))
        changed |= formScan(reduce);
      SmallVector<ScanOp> scans;
      getOperation()->walk([&](ScanOp scan) { scans.push_back(scan); });
      for (ScanOp scan : scans)
        changed |= shiftScan(scan);
    });
    fold();
    patterns.run("form-recurrences", [&] {
      for (ReduceOp reduce : collectReductions(getOperation()))
        changed |= formRecurrence(reduce) || nestRecurrence(reduce);
    });
    fold();
    forComputes("order-indices", [&](ComputeOp compute) {
      compute->walk([&](ReduceOp reduce) { numOrdered += orderIndices(reduce); });
    });
    // Merging makes the divisors of one row equal; factors leave inner sums before outer ones.
    forComputes("merge-equal", merge);
    forComputes("separate-products", [&](ComputeOp compute) {
      for (ReduceOp reduce : collectReductions(compute))
        changed |= separateProducts(reduce);
    });
    forComputes("hoist-factors", [&](ComputeOp compute) {
      for (ReduceOp reduce : collectReductions(compute))
        if (hoistFactors(reduce)) {
          ++numHoisted;
          changed = true;
        }
    });
    // Factors that do not vary have left.
    forComputes("group-factors", [&](ComputeOp compute) {
      for (ReduceOp reduce : collectReductions(compute))
        changed |= groupFactors(reduce);
    });
    forComputes("reuse-weights",
                [&](ComputeOp compute) { changed |= reuseSummedWeights(compute) > 0; });
    forComputes("running-maxima", [&](ComputeOp compute) {
      for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
        changed |= reduce.isOnline() && referToRunningMaxima(reduce);
    });
    fold();
    forComputes("merge-equal", merge);
  }
};
} // namespace
