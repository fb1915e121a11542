//===- DeclinedProducts.cpp - notes on sums of products -------------------===//
//
// A sum of products that is no contraction has neither the matrix unit nor tiles of CUDA cores. If
// it is large, it takes up to 200 times as long as a contraction: a note says why it is none.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/DeclinedProducts.h"
#include "passes/machine/limits/Splits.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-contractions";
using namespace limits::declined_products;

/// How many terms `reduce` has in all results together; 0 if that is not known.
static double countTerms(ComputeOp compute, ReduceOp reduce) {
  auto kernel = compute->getParentOfType<KernelOp>();
  double count = 1;
  auto multiply = [&](Value extent) {
    std::optional<int64_t> upper = getSizeFact(kernel, extent).upper;
    count *= static_cast<double>(upper.value_or(0));
  };
  llvm::for_each(compute.getExtents(), multiply);
  llvm::for_each(reduce.getUpper(), multiply);
  for (ReduceOp around : getEnclosingReductions(reduce))
    llvm::for_each(around.getUpper(), multiply);
  return count;
}

namespace {
/// The factors of a term.
struct Factors {
  SmallVector<Value> values;
  bool hasCondition = false;

  void add(Value term) {
    Operation *op = term.getDefiningOp();
    if (isa_and_nonnull<arith::MulFOp>(op)) {
      add(op->getOperand(0));
      add(op->getOperand(1));
    } else if (isa_and_nonnull<arith::DivFOp, arith::NegFOp>(op)) {
      add(op->getOperand(0));
    } else if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
      hasCondition = true;
      add(select.getTrueValue());
    } else {
      values.push_back(term);
    }
  }
};
} // namespace

/// The indices around `reduce` that `value` depends on.
static llvm::SetVector<Value> indicesAround(ReduceOp reduce, Value value) {
  llvm::SetVector<Value> indices;
  for (BlockArgument index : getIterationIndices(value))
    if (!reduce.getBody().isAncestor(index.getParentRegion()))
      indices.insert(index);
  return indices;
}

static bool hasOther(const llvm::SetVector<Value> &a, const llvm::SetVector<Value> &b) {
  return llvm::any_of(a, [&](Value index) { return !b.contains(index); });
}

/// True of two factors that are rows and columns: either has an index that the other lacks.
static bool areSides(ReduceOp reduce, Value a, Value b) {
  Dependence varies(reduce.getBlock()->getArguments());
  const auto ofA = indicesAround(reduce, a), ofB = indicesAround(reduce, b);
  return varies.on(a) && varies.on(b) && hasOther(ofA, ofB) && hasOther(ofB, ofA);
}

/// Why the product of `factors` has no two operands.
static StringRef reasonOf(ReduceOp reduce, const Factors &factors, Value left, Value right) {
  if (reduce.getPrecision() == Precision::Exact)
    return "an exact sum multiplies its factors as they are written";
  if (factors.hasCondition)
    return "a condition depends on indices of one operand, and the elements that it leaves out of "
           "the other one may be NaN";
  const auto ofLeft = indicesAround(reduce, left), ofRight = indicesAround(reduce, right);
  for (Value factor : factors.values) {
    const auto indices = indicesAround(reduce, factor);
    const bool isLeft =
        llvm::any_of(ofLeft, [&](Value i) { return !ofRight.contains(i) && indices.contains(i); });
    const bool isRight =
        llvm::any_of(ofRight, [&](Value i) { return !ofLeft.contains(i) && indices.contains(i); });
    if (isLeft && isRight)
      return "one factor has indices of the rows and of the columns";
  }
  if (factors.values.size() == 2)
    return "an operand is computed in f32, and not rounded to 16 bits";
  return "it has more than two factors, and those that are multiplied to one operand are rounded "
         "only beside operands that are stored in 16 or 8 bits";
}

/// Notes that the sum of `term` is no contraction if it has rows and columns.
static void noteProduct(ReduceOp reduce, Value term) {
  Factors factors;
  factors.add(term);
  for (auto [n, left] : llvm::enumerate(factors.values))
    for (Value right : ArrayRef(factors.values).drop_front(n + 1))
      if (areSides(reduce, left, right)) {
        note(reduce, passName, Verdict::Declined,
             "the " + describe(reduce) +
                 " is no contraction: " + reasonOf(reduce, factors, left, right));
        return;
      }
}

void tk::noteDeclinedProducts(ComputeOp compute) {
  compute.walk([&](ReduceOp reduce) {
    // Of a sum over groups of terms, each a contraction that is scaled, the contraction counts.
    if (!reduce.getBlock()->getOps<ReduceOp>().empty())
      return;
    for (auto [n, term] : llvm::enumerate(reduce.getYield().getValues()))
      if (reduce.getKind(n) == ReduceKind::Sum && (!reduce.isOnline() || reduce.standsAlone(n)) &&
          isa<FloatType>(term.getType()) && !isMatrixProductIn(reduce, term) &&
          countTerms(compute, reduce) > largeSum)
        noteProduct(reduce, term);
  });
}
