//===- BlockTerms.cpp - accesses that rest on a range's terms -------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/StrideAxes.h"
#include "passes/numerics/ConvertIndices.h"
#include "passes/tiling/BlockProgram.h"
#include "passes/tiling/PartLocations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// Is there an access that the launch checks only where a range up to `bound` is not empty?
static bool isCheckedIfNotEmpty(KernelOp kernel, Value bound) {
  ScalarEquality equality;
  for (AssumeOp assume : kernel.getBody().getOps<AssumeOp>()) {
    SmallVector<Value> cases = {assume.getCondition()};
    while (assume.getBounds() && !cases.empty()) {
      Operation *op = cases.pop_back_val().getDefiningOp();
      if (isa_and_nonnull<arith::OrIOp>(op))
        llvm::append_range(cases, op->getOperands());
      if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
          compare && compare.getPredicate() == arith::CmpIPredicate::sle &&
          equality.equal(compare.getLhs(), bound))
        return true;
    }
  }
  return false;
}

/// May what is read in bounds only where the range has terms be computed where it has none? Where
/// the launch checks an access only if there are terms, and where no more is known of an extent
/// than that it is not 0 because there are.
static bool restsOnTerms(KernelOp kernel, Value lower, Value upper, ArrayRef<Value> extents) {
  std::optional<int64_t> first = lower ? getConstantIndex(lower) : 0, end = getConstantIndex(upper);
  if (first && end && *first < *end)
    return false;
  auto isShared = [&](Value dim) {
    Dependence onDim(ValueRange{dim});
    return ((lower && onDim.on(lower)) || onDim.on(upper)) &&
           llvm::any_of(extents, [&](Value extent) { return onDim.on(extent); });
  };
  ValueRange dims = kernel.getBody().getArguments().take_front(kernel.getNumDims());
  return isCheckedIfNotEmpty(kernel, upper) || llvm::any_of(dims, isShared);
}

/// Does `op` depend on `index`, which ranges up to `extent`, or on another index that has no values
/// where that has none? Its masks then are those of a range that is empty.
static bool isEmptyWith(LoadOp op, Value index, Value extent) {
  ScalarEquality equality;
  std::function<bool(Value)> isWithin = [&](Value upper) {
    if (auto least = upper.getDefiningOp<arith::MinSIOp>())
      return isWithin(least.getLhs()) || isWithin(least.getRhs());
    return equality.equal(upper, extent);
  };
  auto startsBefore = [](Value lower) {
    std::optional<int64_t> first = getConstantIndex(lower);
    return !first || *first < 0;
  };
  for (BlockArgument own : getIterationIndices(op)) {
    if (own == index)
      return true;
    Operation *parent = own.getOwner()->getParentOp();
    const unsigned n = own.getArgNumber();
    if (auto statement = dyn_cast<ComputeOp>(parent)) {
      if (isWithin(statement.getExtents()[n]))
        return true;
    } else if (auto reduction = dyn_cast<tk::ReduceOp>(parent)) {
      if (!startsBefore(reduction.getLower()[n]) && isWithin(reduction.getUpper()[n]))
        return true;
    } else if (auto scan = dyn_cast<ScanOp>(parent)) {
      if (!startsBefore(scan.getLower()) && isWithin(scan.getUpper()))
        return true;
    }
  }
  return false;
}

/// Is the program of a block run also where index `p` has no values? Results that are not over it
/// are written nevertheless, and the block's loop begins behind what does not vary in it.
bool BlockProgram::runsWithout(unsigned p) {
  SizeFact fact = getSizeFact(kernel, compute.getExtents()[p]);
  if (countsTiles(p) || (fact.exact && *fact.exact > 0))
    return false;
  if (schedule.getLoop() == p)
    return true;
  return llvm::any_of(llvm::seq(compute.getNumResults()),
                      [&](unsigned r) { return !llvm::is_contained(indicesInTile(r), p); });
}

/// Does `op` stand in a reduction over an index, or over one of the statement, on which it does not
/// depend, and is what it reads in bounds only where that has terms? It is computed outside of the
/// loop, whether or not there are.
bool BlockProgram::needsTerms(LoadOp op, ArrayRef<Value> extents) {
  for (Operation *parent = op->getParentOp(); parent != compute; parent = parent->getParentOp()) {
    auto reduction = dyn_cast<tk::ReduceOp>(parent);
    if (!reduction)
      continue;
    for (unsigned n = 0; n < reduction.getNumIndices(); ++n) {
      Dependence onIndex(ValueRange{reduction.getIndex(n)});
      if (!onIndex.on(op) &&
          restsOnTerms(kernel, reduction.getLower()[n], reduction.getUpper()[n], extents))
        return true;
    }
  }
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    Value extent = compute.getExtents()[p];
    if (!isEmptyWith(op, compute.getIndex(p), extent) && runsWithout(p) &&
        restsOnTerms(kernel, Value(), extent, extents))
      return true;
  }
  return false;
}
