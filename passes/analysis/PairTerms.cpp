//===- PairTerms.cpp - terms of two values --------------------------------===//
#include "passes/analysis/PairTerms.h"

#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tk;

namespace {
struct Splitter {
  Value m, n, k;
  PairTerm result;

  /// Adds what `value` is computed by; is it a function of the two loaded values?
  bool add(Value value) {
    SmallVector<BlockArgument> indices = getIterationIndices(value);
    const bool isOverM = llvm::is_contained(indices, m), isOverN = llvm::is_contained(indices, n);
    Operation *op = value.getDefiningOp();
    if (!isOverM && !isOverN && !llvm::is_contained(indices, k)) {
      if (isa_and_nonnull<arith::ConstantOp>(op))
        result.body.insert(op);
      return true;
    }
    if (auto load = dyn_cast_or_null<LoadOp>(op)) {
      if (isOverM == isOverN || !llvm::is_contained(indices, k))
        return false;
      LoadOp &known = isOverM ? result.a : result.b;
      if (known && known != load)
        return false;
      known = load;
      return true;
    }
    if (!op || op->getNumRegions() > 0 || op->getNumResults() != 1 ||
        !op->hasTrait<OpTrait::Elementwise>())
      return false;
    for (Value operand : op->getOperands())
      if (!add(operand))
        return false;
    result.body.insert(op);
    return true;
  }
};
} // namespace

bool tk::isZeroOfZeros(PairTerm &pair) {
  return isZeroOfZeros({pair.a.getResult(), pair.b.getResult()}, pair.body.getArrayRef());
}

bool tk::isZeroOfZeros(ArrayRef<Value> elements, ArrayRef<Operation *> body) {
  llvm::DenseMap<Value, Attribute> known;
  for (Value element : elements)
    known[element] = Builder(element.getContext()).getZeroAttr(element.getType());
  Attribute last;
  for (Operation *op : body) {
    auto operands =
        llvm::map_to_vector(op->getOperands(), [&](Value v) { return known.lookup(v); });
    // Folding may change the operation that it is asked of.
    Operation *copy = op->clone();
    SmallVector<OpFoldResult> results;
    last = {};
    if (succeeded(copy->fold(operands, results)) && results.size() == 1) {
      auto operand = dyn_cast<Value>(results.front());
      last = operand ? known.lookup(operand) : cast<Attribute>(results.front());
    }
    copy->destroy();
    known[op->getResult(0)] = last;
  }
  auto value = dyn_cast_or_null<FloatAttr>(last);
  return value && value.getValue().isPosZero();
}

std::optional<PairTerm> tk::getPairTerm(Value term, Value m, Value n, Value k) {
  Splitter splitter{m, n, k, {}};
  if (!splitter.add(term) || !splitter.result.a || !splitter.result.b)
    return std::nullopt;
  return std::move(splitter.result);
}
