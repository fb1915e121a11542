//===- GroupFactors.cpp - the operands of a term --------------------------===//
//
// Part of tk-simplify. A sum of products of three or more factors is a matrix product if the
// factors are two operands, each with an index of its own. The order in which a program writes the
// factors need not show that:
//
//   %s = tk.reduce [sum] ["k"] {mulf (mulf %x[m, k], %w[k, n]), %p[m, k]}
//     =>
//   %s = tk.reduce [sum] ["k"] {mulf (mulf %x[m, k], %p[m, k]), %w[k, n]}
//
// 1. Take the element of the sum apart into f32 factors. The pattern declines if the element is the
//    product of two such operands as it is, or if the sum is exact.
// 2. Two factors are seeds if each has an index that the other one lacks. The seeds with the most
//    indices are taken.
// 3. The pattern declines if a product of the same tensors stands at another place of the kernel,
// but
//    as the term of a sum: it may be a value with one name. An operation may receive both values,
//    which would differ in the last bits (passes/analysis/ValueCopies.h).
// 4. A factor with an index that one seed has alone joins that seed. All others join the first
//    operand. The pattern declines if a factor has such indices of both.
//
// The frontend groups the factors of sums with operands of 16 or 8 bits, and rounds the operands.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/GroupFactors.h"

#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-simplify";
/// More factors than this are left as they are: the search is over their pairs.
static constexpr size_t mostFactors = 8;

namespace {
using Indices = llvm::SmallDenseSet<Value, 4>;

struct Factor {
  Value value;
  Indices indices; ///< from outside of the sum
};
} // namespace

/// The indices from outside of `reduce` that `value` depends on.
static Indices outerIndices(ReduceOp reduce, Value value) {
  Indices indices;
  for (BlockArgument index : getIterationIndices(value))
    if (!reduce.getBody().isAncestor(index.getParentRegion()))
      indices.insert(index);
  return indices;
}

/// Appends the factors of `value`, in `reduce`, and the products that they are taken from.
static void collectFactors(ReduceOp reduce, Value value, SmallVectorImpl<Factor> &factors,
                           SmallVectorImpl<Operation *> &products) {
  auto multiply = value.getDefiningOp<arith::MulFOp>();
  if (multiply && multiply->getBlock() == reduce.getBlock()) {
    products.push_back(multiply);
    collectFactors(reduce, multiply.getLhs(), factors, products);
    return collectFactors(reduce, multiply.getRhs(), factors, products);
  }
  factors.push_back({value, outerIndices(reduce, value)});
}

/// The tensors that a product is computed from, in the order of their addresses, as often as they
/// are loaded.
static SmallVector<void *> tensorsOf(Value product) {
  SmallVector<void *> tensors;
  SmallVector<Value> rest = {product};
  while (!rest.empty()) {
    Operation *op = rest.pop_back_val().getDefiningOp();
    if (auto load = dyn_cast_or_null<LoadOp>(op))
      tensors.push_back(load.getTensor().getAsOpaquePointer());
    else if (op)
      rest.append(op->operand_begin(), op->operand_end());
  }
  llvm::sort(tensors);
  return tensors;
}

/// Is `product` a part of the product that a sum adds up? The sum's factors are grouped likewise.
static bool isTermOfSum(Operation *product) {
  while (llvm::hasSingleElement(product->getUsers())) {
    Operation *user = *product->user_begin();
    if (isa<arith::MulFOp>(user)) {
      product = user;
      continue;
    }
    auto sum = dyn_cast<ReduceOp>(user->getParentOp());
    return isa<YieldOp>(user) && sum && sum.getNumAccumulators() == 1 &&
           sum.getKind(0) == ReduceKind::Sum && sum.getPrecision() != Precision::Exact;
  }
  return false;
}

/// Does a product of the same tensors as one of `products`, of `reduce`, stand at another place of
/// the kernel, where its factors are not grouped?
static bool standElsewhere(ReduceOp reduce, ArrayRef<Operation *> products) {
  SmallVector<SmallVector<void *>> tensors;
  for (Operation *product : products)
    tensors.push_back(tensorsOf(product->getResult(0)));
  return reduce->getParentOfType<KernelOp>()
      ->walk([&](arith::MulFOp other) {
        return !reduce->isAncestor(other) && !isTermOfSum(other) &&
                       llvm::is_contained(tensors, tensorsOf(other))
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static Indices without(const Indices &all, const Indices &others) {
  Indices rest;
  for (Value index : all)
    if (!others.contains(index))
      rest.insert(index);
  return rest;
}

static bool meets(const Indices &a, const Indices &b) {
  return llvm::any_of(a, [&](Value index) { return b.contains(index); });
}

/// The positions of the two factors that the operands are made around.
static std::optional<std::pair<size_t, size_t>> findSeeds(ArrayRef<Factor> factors) {
  std::optional<std::pair<size_t, size_t>> best;
  size_t most = 0;
  for (size_t a = 0; a < factors.size(); ++a)
    for (size_t b = a + 1; b < factors.size(); ++b) {
      const size_t worth = factors[a].indices.size() + factors[b].indices.size();
      if (worth > most && !without(factors[a].indices, factors[b].indices).empty() &&
          !without(factors[b].indices, factors[a].indices).empty()) {
        most = worth;
        best = {a, b};
      }
    }
  return best;
}

bool tk::groupFactors(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumAccumulators() != 1 ||
      reduce.getKind(0) != ReduceKind::Sum || reduce.getPrecision() == Precision::Exact)
    return false;
  YieldOp yield = reduce.getYield();
  Value term = yield.getValues()[0];
  auto whole = term.getDefiningOp<arith::MulFOp>();
  if (!whole || !term.getType().isF32())
    return false;
  const Indices left = outerIndices(reduce, whole.getLhs()),
                right = outerIndices(reduce, whole.getRhs());
  if (!without(left, right).empty() && !without(right, left).empty())
    return false;
  SmallVector<Factor> factors;
  SmallVector<Operation *> products;
  collectFactors(reduce, term, factors, products);
  if (standElsewhere(reduce, products))
    return false;
  auto seeds = findSeeds(factors);
  if (factors.size() < 3 || factors.size() > mostFactors || !seeds)
    return false;
  const Indices ofFirst = without(factors[seeds->first].indices, factors[seeds->second].indices),
                ofSecond = without(factors[seeds->second].indices, factors[seeds->first].indices);
  OpBuilder builder(yield);
  SmallVector<Value> sides[2];
  for (const Factor &factor : factors) {
    const bool isFirst = meets(factor.indices, ofFirst), isSecond = meets(factor.indices, ofSecond);
    if (isFirst && isSecond)
      return false;
    sides[isSecond].push_back(factor.value);
  }
  Value operands[2];
  for (unsigned side : {0U, 1U})
    for (Value value : sides[side])
      operands[side] =
          operands[side]
              ? Value(arith::MulFOp::create(builder, term.getLoc(), operands[side], value))
              : value;
  Value product = arith::MulFOp::create(builder, term.getLoc(), operands[0], operands[1]);
  note(reduce, passName, Verdict::Derived,
       "the factors of the " + describe(reduce) +
           " are multiplied in the order that makes two "
           "operands of them");
  yield->setOperand(0, product);
  return true;
}
