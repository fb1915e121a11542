//===- RangeEnds.cpp - comparisons that bound an index --------------------===//
#include "passes/tensor/normalize/RangeEnds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

using P = arith::CmpIPredicate;

static P swapSides(P predicate) {
  switch (predicate) {
  case P::slt:
    return P::sgt;
  case P::sle:
    return P::sge;
  case P::sgt:
    return P::slt;
  default:
    return P::sle;
  }
}

/// Is `product` the index `index` itself, or its opposite?
static bool isIndex(const IndexProduct &product, BlockArgument index) {
  return product.factors.size() == 1 && product.factors.front().value == index &&
         !product.factors.front().divisor && std::abs(product.number) == 1;
}

std::optional<RangeEnd> tk::matchRangeEnd(ReduceOp reduce, Value condition, Dependence &varying) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || !compare.getLhs().getType().isIndex() ||
      !llvm::is_contained({P::slt, P::sle, P::sgt, P::sge}, compare.getPredicate()))
    return std::nullopt;
  IndexSum difference(compare.getLhs());
  difference.add(IndexSum(compare.getRhs()), -1);
  RangeEnd end;
  end.condition = condition;
  int64_t sign = 0;
  IndexSum rest;
  for (const IndexProduct &product : difference.getProducts()) {
    auto indices = reduce.getBlock()->getArguments().take_front(reduce.getNumIndices());
    const auto *index = llvm::find_if(
        indices, [&](BlockArgument candidate) { return isIndex(product, candidate); });
    if (index != indices.end() && sign == 0) {
      sign = product.number;
      end.position = index->getArgNumber();
      continue;
    }
    for (const IndexFactor &factor : product.factors)
      if (varying.on(factor.value) || (factor.divisor && varying.on(factor.divisor)))
        return std::nullopt;
    rest.addProduct(product);
  }
  if (sign == 0)
    return std::nullopt;
  // sign * index + rest is compared with 0, so that index is with -sign * rest.
  const P predicate = sign > 0 ? compare.getPredicate() : swapSides(compare.getPredicate());
  end.isBegin = predicate == P::sge || predicate == P::sgt;
  end.at.add(rest, -sign);
  const bool isNext = predicate == P::sgt || predicate == P::sle;
  if (isNext)
    end.at.add(1);
  BlockArgument index = reduce.getIndex(end.position);
  if (!isNext && (compare.getLhs() == index || compare.getRhs() == index))
    end.value = compare.getLhs() == index ? compare.getRhs() : compare.getLhs();
  return end;
}
