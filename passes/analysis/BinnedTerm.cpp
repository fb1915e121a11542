//===- BinnedTerm.cpp - terms of sums by a key ----------------------------===//
#include "passes/analysis/BinnedTerm.h"

#include "passes/analysis/Conditions.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"

using namespace mlir;
using namespace tk;

/// Is `value` the index, or a conversion of it?
static bool isIndex(Value value, Value index) {
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  return value == index;
}

std::optional<BinnedTerm> tk::matchBinnedTerm(ComputeOp compute, ReduceOp reduce, unsigned k) {
  Value element = reduce.getYield().getValues()[k], condition;
  if (reduce.getKind(k) != ReduceKind::Sum || !reduce.standsAlone(k) ||
      compute.getNumIndices() == 0 ||
      !(element.getType().isInteger(32) || element.getType().isF32()))
    return std::nullopt;
  // A choice of 1 or 0 is folded to a conversion.
  BinnedTerm term;
  if (auto select = element.getDefiningOp<arith::SelectOp>();
      select && isIdentity(select.getFalseValue(), ReduceKind::Sum)) {
    condition = select.getCondition();
    term.weight = select.getTrueValue();
  } else if (Operation *convert = element.getDefiningOp();
             isa_and_nonnull<arith::ExtUIOp, arith::UIToFPOp>(convert)) {
    condition = convert->getOperand(0);
  }
  if (!condition || !condition.getType().isInteger(1))
    return std::nullopt;
  Value index = compute.getIndex(compute.getNumIndices() - 1);
  SmallVector<Value> parts;
  addParts<arith::AndIOp>(condition, parts);
  for (Value part : parts) {
    auto test = part.getDefiningOp<arith::CmpIOp>();
    const bool isKey = test && test.getPredicate() == arith::CmpIPredicate::eq && !term.bin;
    if (isKey && isIndex(test.getRhs(), index))
      term.bin = test.getLhs();
    else if (isKey && isIndex(test.getLhs(), index))
      term.bin = test.getRhs();
    else
      term.conditions.push_back(part);
  }
  Dependence onIndex{ValueRange{index}};
  if (!term.bin || onIndex.on(term.bin) || (term.weight && onIndex.on(term.weight)) ||
      llvm::any_of(term.conditions, [&](Value condition) { return onIndex.on(condition); }))
    return std::nullopt;
  return term;
}
