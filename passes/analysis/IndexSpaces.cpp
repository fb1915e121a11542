//===- IndexSpaces.cpp - extents, and how statements' indices meet --------===//
#include "passes/analysis/IndexSpaces.h"

#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk {

int64_t getUpperBound(Value extent) {
  APInt constant;
  if (matchPattern(extent, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  if (auto product = extent.getDefiningOp<arith::MulIOp>()) { // axes that have become one
    int64_t outer = getUpperBound(product.getLhs()), inner = getUpperBound(product.getRhs()), both;
    return outer < 0 || inner < 0 || llvm::MulOverflow(outer, inner, both) ? -1 : both;
  }
  if (Operation *op = extent.getDefiningOp())
    if (auto kernel = dyn_cast<KernelOp>(op->getParentOp()))
      return std::max<int64_t>(getSizeFact(kernel, extent).upper.value_or(-1), -1);
  auto arg = dyn_cast<BlockArgument>(extent);
  auto kernel = arg ? dyn_cast<KernelOp>(arg.getOwner()->getParentOp()) : KernelOp();
  if (!kernel || arg.getArgNumber() >= kernel.getNumDims())
    return -1;
  return kernel.getFact(arg.getArgNumber()).getUpper();
}

bool isKernelLevel(Value value, ComputeOp compute) {
  SmallVector<Operation *> slice = getSlice(value, compute.getBlock());
  return getIterationIndices(value).empty() &&
         llvm::none_of(slice, [](Operation *op) { return op->getNumRegions() || isa<LoadOp>(op); });
}

bool isSameExtent(Value a, Value b) { return ScalarEquality().equal(a, b); }

bool rangesOver(ReduceOp reduce, unsigned n, Value extent) {
  return matchPattern(reduce.getLower()[n], m_Zero()) && isSameExtent(reduce.getUpper()[n], extent);
}

bool runsInOrder(Operation *scope, Value outer, Value inner) {
  Dependence onEither(ValueRange{outer, inner});
  auto walked = scope->walk([&](LoadOp load) {
    ValueRange indices = load.getIndices();
    for (auto [n, index] : llvm::enumerate(indices)) {
      const bool isLast = n + 1 == indices.size();
      if (index == inner ? !isLast : index != outer && onEither.on(index))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return !walked.wasInterrupted();
}

bool takesPackedPlane(ReduceOp reduce) {
  constexpr unsigned packedBits = 16;
  if (reduce.getNumIndices() != 2 || !runsInOrder(reduce, reduce.getIndex(0), reduce.getIndex(1)))
    return false;
  Value tensor;
  bool isOne = true;
  reduce.getBody().walk([&](LoadOp load) {
    isOne &= (!tensor || tensor == load.getTensor()) &&
             load.getResult().getType().getIntOrFloatBitWidth() <= packedBits;
    tensor = load.getTensor();
  });
  return isOne && tensor;
}

SmallVector<ReduceOp> getEnclosingReductions(Operation *op) {
  SmallVector<ReduceOp> reduces;
  for (op = op->getParentOp(); op && !isa<ComputeOp>(op); op = op->getParentOp())
    if (auto reduce = dyn_cast<ReduceOp>(op))
      reduces.push_back(reduce);
  return reduces;
}

/// Completes `partial` in all ways that keep the order of indices (`inOrder`), or that do not.
static void extendEmbedding(ComputeOp small, ComputeOp large, bool inOrder,
                            SmallVector<unsigned> &partial,
                            SmallVector<SmallVector<unsigned>> &found) {
  if (found.size() >= 16)
    return;
  if (partial.size() == small.getNumIndices()) {
    if (inOrder || !llvm::is_sorted(partial))
      found.push_back(partial);
    return;
  }
  unsigned first = partial.empty() || !inOrder ? 0 : partial.back() + 1;
  for (unsigned n = first; n < large.getNumIndices(); ++n) {
    if (llvm::is_contained(partial, n) ||
        !isSameExtent(small.getExtents()[partial.size()], large.getExtents()[n]))
      continue;
    partial.push_back(n);
    extendEmbedding(small, large, inOrder, partial, found);
    partial.pop_back();
  }
}

SmallVector<SmallVector<unsigned>> getEmbeddings(ComputeOp small, ComputeOp large) {
  SmallVector<SmallVector<unsigned>> found;
  SmallVector<unsigned> partial;
  for (bool inOrder : {true, false})
    extendEmbedding(small, large, inOrder, partial, found);
  return found;
}

bool isMatrixProduct(ReduceOp reduce) {
  return isContraction(reduce) && isMatrixProductIn(reduce, reduce.getYield().getValues()[0]);
}

bool isMatrixProductIn(ReduceOp reduce, Value term) {
  if (!isContractionTerm(reduce, term))
    return false;
  Operation *product = term.getDefiningOp();
  auto outerIndices = [&](Value factor) {
    llvm::DenseSet<Value> indices;
    for (BlockArgument arg : getIterationIndices(factor))
      if (!reduce.getBody().isAncestor(arg.getParentRegion()))
        indices.insert(arg);
    return indices;
  };
  auto a = outerIndices(product->getOperand(0)), b = outerIndices(product->getOperand(1));
  return llvm::any_of(a, [&](Value index) { return !b.contains(index); }) &&
         llvm::any_of(b, [&](Value index) { return !a.contains(index); });
}

bool computesPlainProducts(ComputeOp compute) {
  auto reduces = compute.getBlock()->getOps<ReduceOp>();
  return !reduces.empty() && llvm::all_of(reduces, [](ReduceOp reduce) {
    return isMatrixProduct(reduce) &&
           llvm::none_of(*reduce.getBlock(), [](Operation &op) { return op.getNumRegions() != 0; });
  });
}

bool isHeavy(Operation *op) {
  return op
      ->walk([&](ReduceOp reduce) {
        return reduce != op || isMatrixProduct(reduce) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace tk
