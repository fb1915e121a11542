//===- RangeEnds.cpp - comparisons that bound an index --------------------===//
#include "passes/tensor/normalize/RangeEnds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

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

/// An index of a reduction, rounded down to a multiple of a number: `number * (index / number)`, or
/// its opposite.
namespace {
struct RoundedIndex {
  BlockArgument index;
  int64_t sign, number;
};
} // namespace

static std::optional<RoundedIndex> matchRounded(ReduceOp reduce, const IndexProduct &product) {
  if (product.factors.size() != 1)
    return std::nullopt;
  auto index = dyn_cast<BlockArgument>(product.factors.front().value);
  Value divisor = product.factors.front().divisor;
  const int64_t number =
      divisor ? getConstantIntValue(divisor).value_or(0) : std::abs(product.number);
  if (!index || index.getOwner() != reduce.getBlock() ||
      index.getArgNumber() >= reduce.getNumIndices() || number < 1 ||
      std::abs(product.number) != number || (!divisor && number != 1))
    return std::nullopt;
  return RoundedIndex{index, product.number > 0 ? 1 : -1, number};
}

std::optional<std::pair<RangeEnd, RangeEnd>> tk::matchEquation(ReduceOp reduce, Value condition,
                                                               Dependence &varying) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || !compare.getLhs().getType().isIndex() || compare.getPredicate() != P::eq)
    return std::nullopt;
  IndexSum difference(compare.getLhs());
  difference.add(IndexSum(compare.getRhs()), -1);
  RangeEnd begin, end;
  begin.isBegin = begin.isImplied = end.isImplied = true;
  std::optional<RoundedIndex> rounded;
  IndexSum rest;
  for (const IndexProduct &product : difference.getProducts()) {
    if (!rounded) {
      rounded = matchRounded(reduce, product);
      if (rounded)
        continue;
    }
    for (const IndexFactor &factor : product.factors)
      if (varying.on(factor.value) || (factor.divisor && varying.on(factor.divisor)))
        return std::nullopt;
    rest.addProduct(product);
  }
  if (!rounded || rounded->number == 1)
    return std::nullopt;
  // sign * (index - remainder) + rest is 0, and the remainder less than the number.
  begin.position = end.position = rounded->index.getArgNumber();
  begin.at.add(rest, -rounded->sign);
  end.at.add(rest, -rounded->sign).add(rounded->number);
  return std::pair(begin, end);
}
