//===- SeparateProducts.cpp - sums of several matrix products -------------===//
//
// Part of tk-simplify. A sum of added or subtracted products, such as the real part of a complex
// product, is no contraction. The sum of each product is one:
//
//   %s = tk.reduce [sum] ["k"] {subf (mulf %a, %b), (mulf %c, %d)}
//     =>
//   %x = tk.reduce [sum] ["k"] {mulf %a, %b}
//   %y = tk.reduce [sum] ["k"] {mulf %c, %d}
//   %s = subf %x, %y
//
// An integer factor that is computed, and that the 16 bits of the factor beside it hold, is
// converted to these: halves of a byte, each times another element, are two contractions.
//
// A summand that is no product gets a sum of its own, too, if it lacks the index of the rows or
// that of the columns: `sum[k](x[m, k] * w[k, n] + p[m, k])` is a contraction and a sum of each
// row. The sums are large enough that this takes less time.
//
// The result is the same sum in another order. tk-online-reductions carries the sums in one loop
// again, and tk-tile gives them one tile.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/SeparateProducts.h"
#include "passes/machine/limits/Operands.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/IntegerRanges.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/OuterIndices.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ValueCopies.h"
#include "passes/machine/CostModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-simplify";

using namespace limits::separate_products;

namespace {
/// One of the products that a term consists of.
struct SignedProduct {
  Value value;
  bool isNegative;
};
} // namespace

/// Takes `term` of `reduce` apart into summands; false if it has none.
static bool collectProducts(ReduceOp reduce, Value term, bool isNegative,
                            SmallVectorImpl<SignedProduct> &products) {
  Operation *op = term.getDefiningOp();
  if (!op || op->getBlock() != reduce.getBlock())
    return false;
  if (isa<arith::NegFOp>(op))
    return collectProducts(reduce, op->getOperand(0), !isNegative, products);
  bool isDifference = isa<arith::SubFOp, arith::SubIOp>(op);
  if (isDifference || isa<arith::AddFOp, arith::AddIOp>(op))
    return collectProducts(reduce, op->getOperand(0), isNegative, products) &&
           collectProducts(reduce, op->getOperand(1), isNegative != isDifference, products);
  products.push_back({term, isNegative});
  return true;
}

/// The two factors of `summand` if it is a matrix product, but for literals beside the factors.
static std::optional<std::pair<Value, Value>> getFactors(ReduceOp reduce, Value summand) {
  if (isMatrixProductIn(reduce, summand)) {
    Operation *product = summand.getDefiningOp();
    return std::pair(product->getOperand(0), product->getOperand(1));
  }
  SmallVector<Value> work = {summand}, factors;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (auto product = next.getDefiningOp<arith::MulFOp>())
      llvm::append_range(work, product->getOperands());
    else if (!matchPattern(next, m_Constant()))
      factors.push_back(next);
  }
  Dependence varying(reduce.getBlock()->getArguments());
  if (factors.size() != 2 || !llvm::all_of(factors, [&](Value factor) {
        return withoutExtension(factor).getDefiningOp<LoadOp>() && varying.on(factor);
      }))
    return std::nullopt;
  return std::pair(factors[0], factors[1]);
}

/// Has each of `factors` an index of its own?
static bool hasRowsAndColumns(ReduceOp reduce, std::pair<Value, Value> factors) {
  const OuterIndices ofA = outerIndices(reduce, factors.first),
                     ofB = outerIndices(reduce, factors.second);
  return !without(ofA, ofB).empty() && !without(ofB, ofA).empty();
}

/// The type of 16 bits that holds all numbers of `factor`, an integer that is converted to f32, and
/// that the factor beside it is stored in; null if there is none.
static Type narrowTypeOf(Value factor, Value beside) {
  auto converted = factor.getDefiningOp<arith::SIToFPOp>();
  auto stored = beside.getDefiningOp<arith::ExtFOp>();
  if (!converted || !stored || !factor.getType().isF32())
    return {};
  Type type = stored.getIn().getType();
  if (!type.isF16() && !type.isBF16())
    return {};
  const int64_t most = int64_t(1) << cast<FloatType>(type).getFPMantissaWidth();
  std::optional<IntegerRange> range = getIntegerRange(converted.getIn());
  return range && range->least >= -most && range->greatest <= most ? type : Type();
}

/// Is `term` a matrix product once an integer factor that 16 bits hold is converted to them?
static bool isIntegerProduct(ReduceOp reduce, Value term) {
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (!product || product->getBlock() != reduce.getBlock())
    return false;
  const std::pair<Value, Value> factors(product.getLhs(), product.getRhs());
  Dependence varying(reduce.getBlock()->getArguments());
  return (narrowTypeOf(factors.first, factors.second) ||
          narrowTypeOf(factors.second, factors.first)) &&
         varying.on(factors.first) && varying.on(factors.second) &&
         hasRowsAndColumns(reduce, factors);
}

/// Converts the integer factors of `summands` to the 16 bits that hold them, where each is a matrix
/// product then.
static void narrowIntegers(ReduceOp reduce, ArrayRef<SignedProduct> summands) {
  if (!llvm::all_of(summands, [&](const SignedProduct &summand) {
        return isMatrixProductIn(reduce, summand.value) || isIntegerProduct(reduce, summand.value);
      }))
    return;
  for (const SignedProduct &summand : summands) {
    if (isMatrixProductIn(reduce, summand.value))
      continue;
    Operation *product = summand.value.getDefiningOp();
    OpBuilder builder(product);
    for (unsigned n : {0, 1})
      if (Type type = narrowTypeOf(product->getOperand(n), product->getOperand(1 - n))) {
        auto converted = product->getOperand(n).getDefiningOp<arith::SIToFPOp>();
        Value narrow = arith::SIToFPOp::create(builder, product->getLoc(), type, converted.getIn());
        product->setOperand(
            n, arith::ExtFOp::create(builder, product->getLoc(), converted.getType(), narrow));
        break;
      }
  }
}

/// Is a sum of `rest` alone one of fewer results than that of the product of `factors`: does it
/// lack the indices that one factor alone has?
static bool hasFewResults(ReduceOp reduce, std::pair<Value, Value> factors, Value rest) {
  const OuterIndices ofA = outerIndices(reduce, factors.first),
                     ofB = outerIndices(reduce, factors.second),
                     ofRest = outerIndices(reduce, rest);
  return !meets(without(ofA, ofB), ofRest) || !meets(without(ofB, ofA), ofRest);
}

/// Whether contractions and sums of the other summands take less time than one loop of pairs.
static bool pays(ReduceOp reduce, size_t others) {
  auto compute = dyn_cast<ComputeOp>(reduce->getParentOp());
  auto kernel = reduce->getParentOfType<KernelOp>();
  if (!compute || !kernel)
    return false;
  double terms = 1;
  for (Value extent : compute.getExtents())
    terms *= guessSize(kernel, extent);
  for (Value extent : reduce.getUpper())
    terms *= guessSize(kernel, extent);
  return (pairTerm - contractionTerm) * terms > 2 * cost::launch * static_cast<double>(others);
}

/// Does `value` have the same value for all terms of `reduce`, whose number does not vary?
static bool isConstantIn(ReduceOp reduce, Value value) {
  return !Dependence(reduce.getBlock()->getArguments()).on(value) &&
         llvm::all_of(reduce->getOperands(),
                      [](Value bound) { return getIterationIndices(bound).empty(); });
}

/// May the summands of `reduce` be summed one by one: are they matrix products, or few besides?
static bool canSeparate(ReduceOp reduce, ArrayRef<SignedProduct> summands) {
  if (llvm::all_of(summands, [&](const SignedProduct &summand) {
        return isMatrixProductIn(reduce, summand.value);
      }))
    return true;
  SmallVector<std::pair<Value, Value>> products;
  SmallVector<Value> others; ///< that vary in the sum
  for (const SignedProduct &summand : summands) {
    auto factors = getFactors(reduce, summand.value);
    if (factors && hasRowsAndColumns(reduce, *factors))
      products.push_back(*factors);
    else if (!isConstantIn(reduce, summand.value))
      others.push_back(summand.value);
  }
  if (products.empty() || reduce.getPrecision() == Precision::Exact ||
      !isa<FloatType>(reduce.getResult(0).getType()))
    return false;
  for (Value other : others) {
    for (Operation *op : getSlice(other, reduce.getBlock()))
      if (op->getNumRegions() > 0)
        return false;
    if (!llvm::all_of(products,
                      [&](auto factors) { return hasFewResults(reduce, factors, other); }))
      return false;
  }
  return pays(reduce, others.size());
}

/// The sum of so many times `value` as `reduce` has terms. It is 0 if there are none, also of
/// infinity.
static Value sumOfConstant(OpBuilder &builder, ReduceOp reduce, Value value) {
  Location loc = reduce.getLoc();
  Value count = arith::ConstantIndexOp::create(builder, loc, 1);
  Value none = arith::ConstantIndexOp::create(builder, loc, 0);
  for (auto [lower, upper] : llvm::zip_equal(reduce.getLower(), reduce.getUpper())) {
    Value length = arith::SubIOp::create(builder, loc, upper, lower);
    length = arith::MaxSIOp::create(builder, loc, length, none);
    count = arith::MulIOp::create(builder, loc, count, length);
  }
  Value number = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), count);
  number = arith::SIToFPOp::create(builder, loc, value.getType(), number);
  IRMapping mapping;
  Value own = cloneSlice(builder, value, reduce.getBlock(), mapping);
  Value total = arith::MulFOp::create(builder, loc, number, own);
  Value hasTerms = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, count, none);
  return arith::SelectOp::create(builder, loc, hasTerms, total,
                                 createIdentity(builder, loc, ReduceKind::Sum, value.getType()));
}

/// The sum of `product` alone, over the ranges of `reduce`.
static Value sumOf(OpBuilder &builder, ReduceOp reduce, Value product) {
  IRMapping mapping;
  auto sum = cast<ReduceOp>(builder.clone(*reduce, mapping));
  sum->removeDiscardableAttr(computationsAttrName); // which is of all products' sum
  sum.getYield()->setOperand(0, mapping.lookup(product));
  return sum.getResult(0);
}

bool tk::separateProducts(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumAccumulators() != 1 || reduce.getKind(0) != ReduceKind::Sum)
    return false;
  SmallVector<SignedProduct> products;
  if (!collectProducts(reduce, reduce.getYield().getValues()[0], false, products) ||
      products.size() < 2 || products.size() > mostProducts)
    return false;
  narrowIntegers(reduce, products);
  if (!canSeparate(reduce, products))
    return false;
  // What is subtracted comes last; of the opposite of products alone the sign leaves the sum.
  SmallVector<SignedProduct> ordered;
  for (bool isNegative : {false, true})
    for (const SignedProduct &product : products)
      if (product.isNegative == isNegative)
        ordered.push_back(product);
  if (ordered.front().isNegative)
    return false;
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  bool isFloat = isa<FloatType>(reduce.getResult(0).getType());
  Value total;
  for (const SignedProduct &product : ordered) {
    Value sum = isa<FloatType>(product.value.getType()) && isConstantIn(reduce, product.value)
                    ? sumOfConstant(builder, reduce, product.value)
                    : sumOf(builder, reduce, product.value);
    if (!total)
      total = sum;
    else if (!product.isNegative)
      total = createCombination(builder, loc, ReduceKind::Sum, total, sum);
    else
      total = isFloat ? Value(arith::SubFOp::create(builder, loc, total, sum))
                      : Value(arith::SubIOp::create(builder, loc, total, sum));
  }
  if (Attribute number = joinComputations(reduce))
    total.getDefiningOp()->setAttr(computationsAttrName, number);
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " becomes several contractions, one for each product");
  reduce.getResult(0).replaceAllUsesWith(total);
  reduce.erase();
  return true;
}
