//===- ComputedOperands.cpp - computed operands of f32 products -----------===//
//
// Part of tk-split-significands. The parts of an operand are those of a stored tensor. An operand
// that is computed, such as a matrix times a mask, is stored first:
//
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {mulf (mulf a[i, k], p[i, k]), b[k, j]}}
//     =>
//   %f = tk.compute ["i", "k"] {mulf a[i, k], p[i, k]}
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {mulf f[i, k], b[k, j]}}
//
// The rewrite declines if CUDA cores take less time than the contraction by parts and the stores
// (SignificandCost.cpp). It declines if an operand is in 16 bits, is computed from reductions, or
// is not over indices of the compute op and of the sum alone.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/tensor/split/SignificandParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-significands";

/// The product in f32 whose sum `reduce` is, over all of an extent; null if it is something else.
static arith::MulFOp productOf(ReduceOp reduce, ComputeOp compute) {
  if (reduce.isOnline() || reduce.getNumAccumulators() != 1 || reduce.getNumIndices() != 1 ||
      reduce.getKind(0) != ReduceKind::Sum || reduce.getPrecision() != Precision::Default ||
      wholeExtent(reduce, 0, compute) != reduce.getUpper()[0])
    return {};
  auto product = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  return product && product.getType().isF32() && product.getLhs() != product.getRhs()
             ? product
             : arith::MulFOp();
}

/// Is `load` of an f32 tensor at bare indices?
static bool isPlain(LoadOp load) {
  return load && !load.getPad() && load.getType().isF32() &&
         llvm::all_of(load.getIndices(), llvm::IsaPred<BlockArgument>);
}

void tk::storeComputedOperands(KernelOp kernel, ComputeOp compute, int64_t processors) {
  SignificandCost cost{kernel, compute, processors};
  bool stored = false;
  for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>())) {
    arith::MulFOp product = productOf(reduce, compute);
    if (!product)
      continue;
    SmallVector<ComputedFactor> factors;
    double bytes = 0;
    const bool areOperands = llvm::all_of(product->getOperands(), [&](Value operand) {
      if (isPlain(operand.getDefiningOp<LoadOp>()))
        return true;
      // Matrix units multiply operands of 16 bits as they are.
      if (!withoutExtension(operand).getType().isF32() || !getElementsOf(operand))
        return false;
      factors.emplace_back(kernel, compute, ReduceOp(), reduce, operand);
      if (!factors.back().read() || !factors.back().hasBareIndices())
        return false;
      bytes += factors.back().bytes();
      return true;
    });
    if (!areOperands || factors.empty() ||
        !cost.paysStored(reduce, product.getLhs(), product.getRhs(), bytes))
      continue;
    note(reduce, passName, Verdict::Derived,
         "computed operands of the " + describe(reduce) + " are stored by statements of their own");
    for (auto [n, factor] : llvm::enumerate(factors))
      factor.store(n == 0 ? ".factor" : ".other");
    stored = true;
  }
  if (stored)
    eraseDead(compute);
}
