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
// The result is the same sum in another order. tk-online-reductions carries the sums in one loop
// again, and tk-tile gives them one tile.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/SeparateProducts.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ValueCopies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-simplify";

/// More sums than this have no registers together.
static constexpr size_t mostProducts = 4;

namespace {
/// One of the products that a term consists of.
struct SignedProduct {
  Value value;
  bool isNegative;
};
} // namespace

/// Takes `term` of `reduce` apart into matrix products; false if it has anything else in it.
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
  return isMatrixProductIn(reduce, term);
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
    Value sum = sumOf(builder, reduce, product.value);
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
