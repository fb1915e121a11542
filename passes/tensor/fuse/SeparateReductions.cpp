//===- SeparateReductions.cpp - hoist reductions out of a compute op ------===//
//
// A compute op may contain a reduction that does not depend on all of its indices, such as a row
// norm inside an elementwise expression. Each value of the other indices would repeat the
// reduction. This pass gives such a reduction a compute op of its own.
//
// 1. Find reductions that do not depend on some index with more than one value, either of the
//    compute op or of an enclosing reduction. Also find matrix products, and rows of more than 256
//    elements, inside another reduction.
//    Inner reductions come first.
// 2. Take along the other reductions over the same indices, and the elementwise operations that
//    need only these. The values that the rest of the compute op uses become results of the new op.
// 3. Ask the cost rule of tk-fuse-producers (FuseProducersCost.cpp) about the new op. Keep the new
//    op only if the rule stores at least one of its results, for example because the elements that
//    read it would be stored with it (KeptElements.cpp).
// 4. Otherwise move a reduction that is the same for all elements of an enclosing reduction in
//    front of that reduction.
// 5. A product whose operand is read at a place of two indices gets a compute op over all places
//    (SeparatePlaces.cpp).
//
// The pass takes a matrix product only if no other reduction beside it needs it. It declines values
// of fewer than 32 bits, because a store would round them, and accesses that might be out of bounds
// in the new op.
//
//   %y = tk.compute ["n","c"] {%s = tk.reduce [sum] ["k"] {x[n, k]^2}
//                              x[n, c] / sqrt(%s)}
//     =>
//   %r = tk.compute ["n"] {%s = tk.reduce [sum] ["k"] {x[n, k]^2}; sqrt(%s)}
//   %y = tk.compute ["n","c"] {x[n, c] / r[n]}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/BoundsApart.h"
#include "passes/analysis/Notes.h"
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/fuse/SeparatePlaces.h"
#include "passes/tensor/fuse/Separation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_SEPARATEREDUCTIONS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-separate-reductions";

using namespace limits::separate_reductions;

/// Does the statement, or a reduction around it, have an index with several values that `reduce`
/// does not depend on? Not of what stands in a scan, whose arguments are not indices alone.
static bool lacksIndices(ReduceOp reduce, ComputeOp compute) {
  Indices own = indicesOf(reduce);
  auto isLacking = [&](BlockArgument index) {
    Value extent = extentOf(index, compute);
    return !own.contains(index) && (!extent || getUpperBound(extent) != 1);
  };
  bool lacks = false;
  for (Operation *around = reduce->getParentOp(); around != compute->getParentOp();
       around = around->getParentOp()) {
    auto outer = dyn_cast<ReduceOp>(around);
    if (outer ? outer.isOnline() : !isa<ComputeOp>(around))
      return false;
    lacks |= llvm::any_of(around->getRegion(0).getArguments(), isLacking);
  }
  return lacks;
}

/// Is `reduce` a row in each term of another reduction, too long to be one of many that a thread or
/// a warp goes through? As a statement of its own it has all rows side by side.
static bool isRowOfTerm(ReduceOp reduce, ComputeOp compute) {
  auto around = dyn_cast<ReduceOp>(reduce->getParentOp());
  if (!around || around.isOnline() || isHeavy(reduce))
    return false;
  Indices own = indicesOf(reduce);
  const bool variesWithTerms = llvm::any_of(
      around.getBlock()->getArguments(), [&](BlockArgument index) { return own.contains(index); });
  return variesWithTerms && !countKnownTerms(reduce, shortRowOfTerm) &&
         llvm::all_of(reduce.getUpper(), [&](Value end) { return isKernelLevel(end, compute); });
}

/// Moves a reduction that is the same for all terms of the one around it before that, with what
/// follows from it; true if it did. There it is computed also where there are no terms.
static bool moveOut(ReduceOp reduce) {
  auto around = dyn_cast<ReduceOp>(reduce->getParentOp());
  if (!around)
    return false;
  Dependence onTerms(around.getBlock()->getArguments()), onEnds(around.getUpper());
  if (onTerms.on(reduce.getResult(0)))
    return false;
  SmallVector<Operation *> slice = getSlice(reduce.getResults(), around.getBlock());
  if (!llvm::all_of(slice, [&](Operation *op) { return isInBoundsApart(op, onEnds); }))
    return false;
  llvm::SetVector<Operation *> moved(slice.begin(), slice.end());
  for (Operation &op : *around.getBlock()) {
    auto isMoved = [&](Value v) { return v.getDefiningOp() && moved.contains(v.getDefiningOp()); };
    auto isInside = [&](Value v) { return v.getParentBlock() == around.getBlock() && !isMoved(v); };
    if (op.getNumResults() == 1 && op.getNumRegions() == 0 && !isa<LoadOp>(op) &&
        llvm::any_of(op.getOperands(), isMoved) && llvm::none_of(op.getOperands(), isInside))
      moved.insert(&op);
  }
  for (Operation *op : moved)
    op->moveBefore(around);
  return true;
}

namespace {
struct SeparateReductionsPass : tk::impl::SeparateReductionsBase<SeparateReductionsPass> {
  using SeparateReductionsBase::SeparateReductionsBase;

  void runOnOperation() override {
    getOperation()->walk([&](KernelOp kernel) {
      while (separateOnce(kernel))
        ++numSeparated;
    });
  }

private:
  bool separateOnce(KernelOp kernel) {
    for (ComputeOp compute : llvm::to_vector(kernel.getBody().front().getOps<ComputeOp>())) {
      SmallVector<ReduceOp> reduces;
      compute->walk([&](ReduceOp reduce) { reduces.push_back(reduce); });
      for (ReduceOp reduce : reduces)
        if (separatePlaces(reduce, compute) ||
            ((isReducedProduct(reduce) || isReducedPair(reduce)) && trySeparate(reduce, compute)) ||
            (lacksIndices(reduce, compute) && (trySeparate(reduce, compute) || moveOut(reduce))) ||
            (isRowOfTerm(reduce, compute) && trySeparate(reduce, compute)))
          return true;
    }
    return false;
  }

  /// The cost rule looks at the reader as it would be, and at the reader's readers: so a copy of it
  /// is changed first, and takes its place.
  bool trySeparate(ReduceOp reduce, ComputeOp compute) {
    OpBuilder builder(compute);
    IRMapping mapping;
    auto copy = cast<ComputeOp>(builder.clone(*compute, mapping));
    auto same = mapping.lookup(reduce.getResult(0)).getDefiningOp<ReduceOp>();
    const bool isPair = isReducedPair(same);
    SmallVector<ReduceOp> twins;
    if (isReducedProduct(same) || isPair)
      twins = findTwins(same, copy);
    Separation separation(same, copy);
    bool isMade = separation.run();
    for (ReduceOp twin : twins)
      if (isMade)
        separation.take(twin);
    std::optional<std::string> why;
    compute->replaceAllUsesWith(copy->getResults());
    if (isMade)
      why = isPair ? separation.whyPairsStored() : separation.whyStored(maxExtra);
    if (why) {
      note(reduce, passName, Verdict::Derived,
           "the " + describe(reduce) + " becomes a statement of its own: " + *why);
      compute.erase();
      return true;
    }
    copy->replaceAllUsesWith(compute->getResults());
    copy.erase();
    if (isMade)
      separation.eraseStatements();
    return false;
  }
};
} // namespace
