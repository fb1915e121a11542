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
//   %s = tk.reduce [sum] ["k"] {divf (mulf %x[m, k], %w[k, n]), %d[k]}
//     =>
//   %s = tk.reduce [sum] ["k"] {mulf (divf %x[m, k], %d[k]), %w[k, n]}
//
// 1. Take the element of the sum apart into f32 factors and divisors. The pattern declines if the
//    element is the product of two such operands as it is, or if the sum is exact.
// 2. Two factors are seeds if each has an index that the other one lacks. The seeds with the most
//    indices are taken.
// 3. The pattern declines if a product of the same tensors stands at another place of the kernel,
// but
//    as the term of a sum: it may be a value with one name. An operation may receive both values,
//    which would differ in the last bits (passes/analysis/ValueCopies.h).
// 4. A factor with an index that one seed has alone joins that seed. All others join the first
//    operand. The pattern declines if a factor has such indices of both.
// 5. An operand is divided by its divisors one by one, after its factors are multiplied. The
// product
//    of divisors could be 0 or infinite. The pattern declines if an operand has divisors alone: a
//    reciprocal of f32 has fewer bits from 2^126 on.
//
// The frontend groups the factors of sums with operands of 16 or 8 bits, and rounds the operands.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/GroupFactors.h"
#include "passes/machine/limits/Operands.h"

#include "passes/analysis/Notes.h"
#include "passes/analysis/OuterIndices.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-simplify";
using namespace limits::group_factors;

namespace {
using Indices = OuterIndices;

struct Factor {
  Value value;
  Indices indices; ///< from outside of the sum
  bool divides;    ///< a divisor of the element
};
} // namespace

/// Appends the factors and divisors of `value`, in `reduce`, and the operations that they are taken
/// from. `divides`: the element is divided by `value`.
static void collectFactors(ReduceOp reduce, Value value, SmallVectorImpl<Factor> &factors,
                           SmallVectorImpl<Operation *> &products, bool divides = false) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::MulFOp, arith::DivFOp>(op) && op->getBlock() == reduce.getBlock()) {
    products.push_back(op);
    collectFactors(reduce, op->getOperand(0), factors, products, divides);
    return collectFactors(reduce, op->getOperand(1), factors, products,
                          divides != isa<arith::DivFOp>(op));
  }
  factors.push_back({value, outerIndices(reduce, value), divides});
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
    if (isa<arith::MulFOp, arith::DivFOp>(user)) {
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
      ->walk([&](Operation *other) {
        return isa<arith::MulFOp, arith::DivFOp>(other) && !reduce->isAncestor(other) &&
                       !isTermOfSum(other) &&
                       llvm::is_contained(tensors, tensorsOf(other->getResult(0)))
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
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

/// True if `term` is the product of two values, each with an index that the other one lacks.
static bool hasTwoOperands(ReduceOp reduce, Value term) {
  auto whole = term.getDefiningOp<arith::MulFOp>();
  if (!whole)
    return false;
  const Indices left = outerIndices(reduce, whole.getLhs()),
                right = outerIndices(reduce, whole.getRhs());
  return !without(left, right).empty() && !without(right, left).empty();
}

/// The product of `factors`, divided by those of them that divide.
static Value createOperand(OpBuilder &builder, Location loc, ArrayRef<Factor> factors) {
  Value operand;
  for (const Factor &factor : factors)
    if (!factor.divides)
      operand = operand ? Value(arith::MulFOp::create(builder, loc, operand, factor.value))
                        : factor.value;
  for (const Factor &factor : factors)
    if (factor.divides)
      operand = arith::DivFOp::create(builder, loc, operand, factor.value);
  return operand;
}

bool tk::groupFactors(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumAccumulators() != 1 ||
      reduce.getKind(0) != ReduceKind::Sum || reduce.getPrecision() == Precision::Exact)
    return false;
  YieldOp yield = reduce.getYield();
  Value term = yield.getValues()[0];
  if (!isa_and_nonnull<arith::MulFOp, arith::DivFOp>(term.getDefiningOp()) ||
      !term.getType().isF32() || hasTwoOperands(reduce, term))
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
  SmallVector<Factor> sides[2];
  for (const Factor &factor : factors) {
    const bool isFirst = meets(factor.indices, ofFirst), isSecond = meets(factor.indices, ofSecond);
    if (isFirst && isSecond)
      return false;
    sides[isSecond].push_back(factor);
  }
  for (ArrayRef<Factor> side : sides)
    if (llvm::all_of(side, [](const Factor &factor) { return factor.divides; }))
      return false;
  OpBuilder builder(yield);
  Value left = createOperand(builder, term.getLoc(), sides[0]);
  Value right = createOperand(builder, term.getLoc(), sides[1]);
  Value product = arith::MulFOp::create(builder, term.getLoc(), left, right);
  note(reduce, passName, Verdict::Derived,
       "the factors of the " + describe(reduce) +
           " are multiplied in the order that makes two "
           "operands of them");
  yield->setOperand(0, product);
  return true;
}
