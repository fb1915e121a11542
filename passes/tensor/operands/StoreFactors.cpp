//===- StoreFactors.cpp - storing computed operands of back-to-back contractions ===//
//
// wgmma computes the back-to-back contractions of attention if TMA loads their operands. A computed
// operand, such as queries or keys with rotary embedding, leaves both contractions to mma.sync at
// half the rate. An operand over the indices of the outer sum is recomputed for each tile of rows.
// An operand over the rows takes registers that the scores need.
//
// 1. The pattern matches reductions that contain contractions whose results are operands of their
//    own sums, all in 16 bits. Their operands are loads, or computed from loads and from reductions
//    of loads.
// 2. A compute op stores each computed operand over its own indices, with the sum's index last
//    (ComputedFactor.h). That is done if it takes less time than it saves, and if all operands of
//    the back-to-back contractions can be stored.
//
//   %o = tk.compute ["i", "e"] {tk.reduce [max, sum, sum] ["j"] {
//          %s = tk.reduce [sum] ["d"] {bf16(q[i, d] * c[i, d]) * k[j, d]} ..}}
//     =>
//   %f = tk.compute ["i", "d"] {bf16(q[i, d] * c[i, d])}
//   %o = tk.compute ["i", "e"] {tk.reduce [max, sum, sum] ["j"] {
//          %s = tk.reduce [sum] ["d"] {f[i, d] * k[j, d]} ..}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/StoreFactors.h"
#include "passes/machine/limits/Operands.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:computed";
using namespace limits::store_factors;

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

/// Is it multiplied in 16 bits?
static bool isHalf(Value factor) {
  Type type = withoutExtension(factor).getType();
  return type.isF16() || type.isBF16();
}

/// The computed factors of the products inside `outer`; nothing if warpgroups would not take the
/// chain with these stored either, or if there are none.
static SmallVector<ComputedFactor> getComputedFactors(KernelOp kernel, ComputeOp compute,
                                                      ReduceOp outer, double &terms) {
  SmallVector<ComputedFactor> factors;
  terms = 0;
  for (ReduceOp inner : outer.getBlock()->getOps<ReduceOp>()) {
    if (!isMatrixProduct(inner))
      continue;
    auto multiply = inner.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
    std::optional<int64_t> depth = getSizeFact(kernel, inner.getUpper()[0]).upper;
    if (!multiply || inner.getNumIndices() != 1 || inner.getNumAccumulators() != 1 || !depth ||
        *depth > longestInnerSum)
      return {};
    double rows = 1, columns = 1;
    for (auto [index, extent] :
         llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents()))
      (Dependence(ValueRange{index}).on(inner.getResult(0)) ? rows : columns) *=
          guessSize(kernel, extent);
    Value range = wholeExtent(outer, 0, compute);
    terms +=
        rows * (range ? guessSize(kernel, range) : 1) * (static_cast<double>(*depth) + columns);
    for (Value operand : multiply->getOperands()) {
      Value factor = withoutExtension(operand);
      if (!isHalf(operand))
        return {};
      if (factor.getDefiningOp<LoadOp>())
        continue;
      ComputedFactor computed(kernel, compute, outer, inner, factor);
      if (!computed.read())
        return {};
      factors.push_back(std::move(computed));
    }
  }
  return factors;
}

/// Is `outer` a chain: is a factor of a sum of it computed from a product inside?
static bool isChain(ReduceOp outer) {
  SmallVector<Value> products;
  for (ReduceOp inner : outer.getBlock()->getOps<ReduceOp>())
    if (isMatrixProduct(inner))
      products.push_back(inner.getResult(0));
  Dependence onProducts(products);
  return outer.getNumIndices() == 1 && llvm::any_of(outer.getYield().getValues(), [&](Value term) {
           auto multiply = term.getDefiningOp<arith::MulFOp>();
           return multiply && isHalf(multiply.getLhs()) && isHalf(multiply.getRhs()) &&
                  onProducts.on(multiply.getLhs()) != onProducts.on(multiply.getRhs());
         });
}

unsigned tk::storeFactors(KernelOp kernel) {
  unsigned stored = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
    for (ReduceOp outer : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>())) {
      if (!isChain(outer))
        continue;
      double terms = 0, cost = 0;
      SmallVector<ComputedFactor> factors = getComputedFactors(kernel, compute, outer, terms);
      for (ComputedFactor &factor : factors)
        cost += 2 * cost::byte * factor.bytes() + cost::launch;
      if (factors.empty() ||
          !savesTime(outer, "tk-materialize-operands:computed", "storing its computed operands",
                     cost::savedByStoredOperand * terms, cost))
        continue;
      note(outer, passName, Verdict::Derived,
           "computed operands of the contractions in the " + describe(outer) +
               " are stored by statements of their own");
      for (ComputedFactor &factor : factors)
        factor.store(".factor");
      eraseDead(compute);
      stored += factors.size();
    }
  return stored;
}
