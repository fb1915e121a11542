//===- StoreWeights.cpp - storing softmax numerators for wide results -----===//
//
// Part of tk-online-reductions. Scores are stored if their reader has more columns than one tile
// (the values of latent attention). The reader would compute the softmax numerators in a loop that
// carries the maximum and the sum beside the contraction, once for each tile of columns. It would
// use mma.sync, because wgmma needs an operand that is loaded.
//
// 1. The rewrite matches contractions of a loaded operand and a 16-bit operand. The latter has an
//    exponential relative to a reduction over the same range, and contains no contraction.
// 2. A compute op stores the 16-bit operand if the columns are known to be several tiles, and the
//    tiles occupy at least a third of the multiprocessors without a split of the range. That is
//    done if it takes less time than it saves. Elements outside of the sum's range are 0.
// 3. The other reductions of each row, such as the sum of the numerators, become results of that
//    compute op. The contraction is then a plain matrix product.
//
//   %o = tk.compute ["i", "e"] {                   %w, %l = tk.compute ["i", "j"] {
//     %m = tk.reduce [max] ["j"] {s[i, j]}           %m = .., %z = ..
//     %z = tk.reduce [sum] ["j"] {                   yield bf16(exp_diff(s[i, j], %m)), %z }
//            exp_diff(s[i, j], %m)}           =>   %o = tk.compute ["i", "e"] {
//     %p = tk.reduce [sum] ["j"] {                   %p = tk.reduce [sum] ["j"] {
//            bf16(exp_diff(s[i, j], %m)) *                  w[i, j] * v[j, e]}
//            v[j, e]}                                yield %p / l[i] }
//     yield %p / %z }
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/StoreWeights.h"
#include "passes/machine/limits/Operands.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-online-reductions";
using namespace limits::store_weights;

/// Is `value` an exponential, rounded perhaps and times others, under a result of `reductions`?
static bool isWeight(Value value, ArrayRef<Value> reductions) {
  Dependence onReductions(reductions);
  SmallVector<Value> work = {value};
  bool found = false;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || isa<LoadOp>(op) || llvm::is_contained(reductions, op->getResult(0)))
      continue;
    if (op->getNumRegions() > 0)
      return false;
    found |= isa<ExpDiffOp, math::ExpOp, math::Exp2Op>(op) && onReductions.on(op->getResult(0));
    llvm::append_range(work, op->getOperands());
  }
  return found;
}

/// The factor of the product that `reduce` sums, if it is one of weights and loaded terms.
static Value getWeights(ReduceOp reduce, ArrayRef<Value> rows) {
  auto multiply = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  if (reduce.isOnline() || reduce.getNumIndices() != 1 || reduce.getKind(0) != ReduceKind::Sum ||
      !multiply)
    return {};
  for (unsigned side : {0, 1}) {
    Value weights = withoutExtension(multiply->getOperand(side)),
          terms = withoutExtension(multiply->getOperand(1 - side));
    Type type = weights.getType();
    if ((type.isF16() || type.isBF16()) && weights.getDefiningOp<arith::TruncFOp>() &&
        terms.getType() == type && terms.getDefiningOp<LoadOp>() && isWeight(weights, rows))
      return weights;
  }
  return {};
}

static bool storeWeights(ComputeOp compute, ReduceOp reduce, ArrayRef<ReduceOp> others,
                         int64_t processors) {
  auto kernel = compute->getParentOfType<KernelOp>();
  SmallVector<Value> results;
  for (ReduceOp other : others)
    if (other != reduce)
      results.append(other->result_begin(), other->result_end());
  Value weights = getWeights(reduce, results);
  Value range = weights ? wholeExtent(reduce, 0, compute) : Value();
  if (!range)
    return false;
  ComputedFactor factor(kernel, compute, /*outer=*/ReduceOp(), reduce, weights);
  if (!factor.read())
    return false;
  double rows = 1, columns = 1;
  bool areKnown = true;
  for (BlockArgument index : compute.getBlock()->getArguments()) {
    Value extent = compute.getExtents()[index.getArgNumber()];
    bool isRow = Dependence(ValueRange{index}).on(weights);
    (isRow ? rows : columns) *= guessSize(kernel, extent);
    areKnown &= isRow || getUpperBound(extent) >= 0;
  }
  double saved = cost::savedByStoredWeights * rows * columns * guessSize(kernel, range);
  if (!areKnown || columns <= columnsOfChain ||
      3 * rows * columns < static_cast<double>(processors) * outputsOfTile ||
      saved < 2 * cost::byte * factor.bytes() + cost::launch)
    return false;
  // What is reduced of a row is wanted once, too, unless the weights' statement alone needs it.
  SmallVector<Value> kept;
  for (Value result : results)
    if (!factor.coversIndicesOf(result))
      return false;
  for (Value result : results)
    if (llvm::any_of(result.getUsers(), [&](Operation *user) {
          return user->getBlock() == compute.getBlock() && !isa<ReduceOp>(user);
        }))
      kept.push_back(result);
  note(reduce, passName, Verdict::Derived,
       "the softmax numerators of the " + describe(reduce) + " are stored, once for all columns");
  factor.store(".weights", kept, /*isMasked=*/true);
  return true;
}

unsigned tk::storeWeights(ComputeOp compute) {
  auto target =
      compute->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!hasFeature(target, Feature::WarpgroupProducts))
    return 0;
  SmallVector<ReduceOp> reduces(compute.getBlock()->getOps<ReduceOp>());
  // Of several products each would have weights of its own.
  for (ReduceOp reduce : reduces)
    if (::storeWeights(compute, reduce, reduces, target.getProcessors())) {
      eraseDead(compute);
      return 1;
    }
  return 0;
}
