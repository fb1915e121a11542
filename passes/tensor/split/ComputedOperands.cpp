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
// Likewise of several sums in one loop, which do not need each other, and of sums over several
// indices. The parts may lie along either axis, so that an operand lies as the tensors that it is
// computed from. Two compute ops that need the same operand share it: the gradient of a layer by
// its input and that by its weights, for example.
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

/// The products in f32 whose sums `reduce` is, over all of an extent; none if it is something else.
static SmallVector<arith::MulFOp> productsOf(ReduceOp reduce, ComputeOp compute) {
  if (reduce.getPrecision() != Precision::Default)
    return {};
  for (unsigned position = 0; position < reduce.getNumIndices(); ++position)
    if (wholeExtent(reduce, position, compute) != reduce.getUpper()[position])
      return {};
  SmallVector<arith::MulFOp> products;
  for (auto [n, term] : llvm::enumerate(reduce.getYield().getValues())) {
    auto product = term.getDefiningOp<arith::MulFOp>();
    if (!product || !product.getType().isF32() || product.getLhs() == product.getRhs() ||
        product->getBlock() != reduce.getBlock() || reduce.getKind(n) != ReduceKind::Sum ||
        (reduce.isOnline() && !reduce.standsAlone(n)))
      return {};
    products.push_back(product);
  }
  return products;
}

/// Is `load` of an f32 tensor at bare indices?
static bool isPlain(LoadOp load) {
  return load && !load.getPad() && load.getType().isF32() &&
         llvm::all_of(load.getIndices(), llvm::IsaPred<BlockArgument>);
}

/// The computed operands of `products`, each once; nothing if an operand cannot be stored.
static std::optional<SmallVector<ComputedFactor>>
computedOperands(KernelOp kernel, ComputeOp compute, ReduceOp reduce,
                 ArrayRef<arith::MulFOp> products) {
  SmallVector<ComputedFactor> factors;
  llvm::SmallPtrSet<Value, 4> known;
  for (arith::MulFOp product : products)
    for (Value operand : product->getOperands()) {
      if (isPlain(operand.getDefiningOp<LoadOp>()) || !known.insert(operand).second)
        continue;
      // Matrix units multiply operands of 16 bits as they are.
      if (!withoutExtension(operand).getType().isF32() || !getElementsOf(operand))
        return std::nullopt;
      factors.emplace_back(kernel, compute, ReduceOp(), reduce, operand);
      if (!factors.back().read() || !factors.back().hasBareIndices())
        return std::nullopt;
      factors.back().orderAsLoaded();
    }
  return factors;
}

void tk::storeComputedOperands(KernelOp kernel, ComputeOp compute, int64_t processors,
                               SmallVectorImpl<ComputeOp> &known) {
  SignificandCost cost{kernel, compute, processors};
  bool stored = false;
  for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>())) {
    const SmallVector<arith::MulFOp> products = productsOf(reduce, compute);
    auto factors = computedOperands(kernel, compute, reduce, products);
    if (!factors || factors->empty())
      continue;
    double bytes = 0;
    for (ComputedFactor &factor : *factors)
      bytes += factor.bytes();
    // Each product makes up for its share of the stored operands.
    const double share = bytes / static_cast<double>(products.size());
    if (!llvm::all_of(products, [&](arith::MulFOp product) {
          return cost.paysStored(reduce, product.getLhs(), product.getRhs(), share);
        }))
      continue;
    note(reduce, passName, Verdict::Derived,
         "computed operands of the " + describe(reduce) + " are stored by statements of their own");
    for (auto [n, factor] : llvm::enumerate(*factors))
      known.push_back(
          factor.store(n == 0 ? ".factor" : ".other", /*rows=*/{}, /*isMasked=*/false, known));
    stored = true;
  }
  if (stored)
    eraseDead(compute);
}
