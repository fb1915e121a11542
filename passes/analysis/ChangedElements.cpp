//===- ChangedElements.cpp - elements in place that change ----------------===//
#include "passes/analysis/ChangedElements.h"

#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/TileReductions.h"

#include "dialects/tkgpu/TkGpuPlan.h"

using namespace mlir;
using namespace tk;

/// The parameter that result `r` of `compute` overwrites in place; null if there is none.
static Value overwrittenBy(KernelOp kernel, ComputeOp compute, unsigned r) {
  if (!gpu::getPlan(compute).inPlace)
    return {};
  size_t place = kernel.getResultNames().size();
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments()))
    if (kernel.getParam(i).getInout() &&
        kernel.getReturn().getResults()[place++] == compute.getResult(r))
      return param;
  return {};
}

/// Is `value` the element of `param` that result `r` overwrites, converted or not?
static bool isOverwritten(Value value, Value param, ComputeOp compute, unsigned r) {
  if (auto extension = value.getDefiningOp<arith::ExtFOp>())
    value = extension.getIn();
  auto load = value.getDefiningOp<LoadOp>();
  if (!load || load.getTensor() != param || load.getPad())
    return false;
  SmallVector<Value> own;
  for (unsigned p : compute.getIndicesOf(r))
    own.push_back(compute.getIndex(p));
  return llvm::equal(load.getIndices(), own);
}

bool tk::readsOwnElements(KernelOp kernel, ComputeOp compute) {
  Value param = compute.getNumResults() == 1 ? overwrittenBy(kernel, compute, 0) : Value();
  bool areOwn = param != nullptr;
  if (param)
    compute.getBody().walk([&](LoadOp load) {
      areOwn &= load.getTensor() != param || isOverwritten(load, param, compute, 0);
    });
  return areOwn;
}

std::optional<ChangedElement> tk::getChangedElement(KernelOp kernel, ComputeOp compute,
                                                    unsigned r) {
  Value param = overwrittenBy(kernel, compute, r), value = compute.getYield().getValues()[r];
  auto rounding = value.getDefiningOp<arith::TruncFOp>();
  auto choice = (rounding ? rounding.getIn() : value).getDefiningOp<arith::SelectOp>();
  if (!param || !choice || !isOverwritten(choice.getFalseValue(), param, compute, r) ||
      getTileReduction(compute, r))
    return std::nullopt;
  const SmallVector<unsigned> positions = compute.getIndicesOf(r);
  if (positions.empty() ||
      Dependence{ValueRange{compute.getIndex(positions.back())}}.on(choice.getCondition()))
    return std::nullopt;
  return ChangedElement{choice, rounding};
}

Value tk::getConditionOfChange(KernelOp kernel, ComputeOp compute) {
  Value condition;
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    std::optional<ChangedElement> changed = getChangedElement(kernel, compute, r);
    if (!changed || (condition && changed->choice.getCondition() != condition) ||
        compute.getIndicesOf(r) != compute.getIndicesOf(0))
      return {};
    condition = changed->choice.getCondition();
  }
  return condition;
}

SmallVector<Value> tk::indicesOfChange(KernelOp kernel, ComputeOp compute) {
  Value condition = getConditionOfChange(kernel, compute);
  if (!condition)
    return {};
  SmallVector<Value> indices;
  for (BlockArgument index : getIterationIndices(condition))
    if (index.getOwner() == compute.getBlock())
      indices.push_back(index);
  return indices;
}

BlockArgument tk::asIndexOf(ComputeOp compute, Value value) {
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    if (cast.getIn().getType().isIndex() && cast.getType().isInteger(64))
      value = cast.getIn();
  auto index = dyn_cast<BlockArgument>(value);
  return index && index.getOwner() == compute.getBlock() ? index : BlockArgument();
}

std::optional<ChangedPlace> tk::getChangedPlace(KernelOp kernel, ComputeOp compute) {
  Value condition = getConditionOfChange(kernel, compute);
  auto equal = condition ? condition.getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!equal || equal.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  for (auto [side, other] :
       {std::pair(equal.getLhs(), equal.getRhs()), std::pair(equal.getRhs(), equal.getLhs())}) {
    BlockArgument index = asIndexOf(compute, side);
    if (!index)
      continue;
    bool isOwn = llvm::all_of(getIterationIndices(other), [&](BlockArgument at) {
      return at.getOwner() == compute.getBlock() && at != index;
    });
    if (isOwn && !asIndexOf(compute, other))
      return ChangedPlace{index.getArgNumber(), other};
  }
  return std::nullopt;
}
