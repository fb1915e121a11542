//===- OffsetRanges.cpp - ranges between offsets that tensors hold --------===//
#include "passes/analysis/OffsetRanges.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tk {

bool isLoadedBound(Value bound) {
  Operation *op = bound.getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadOp>(op))
    return !getIterationIndices(load).empty();
  return isa_and_nonnull<arith::MaxSIOp, arith::MinSIOp, arith::IndexCastOp, arith::ExtSIOp,
                         arith::SubIOp>(op) &&
         llvm::any_of(op->getOperands(), isLoadedBound);
}

std::optional<double> meanOfRanges(ComputeOp compute, Value limit) {
  double rows = 1;
  for (Value extent : compute.getExtents()) {
    const int64_t upper = getUpperBound(extent);
    if (upper < 0)
      return std::nullopt;
    rows *= double(std::max<int64_t>(upper, 1));
  }
  const int64_t terms = getUpperBound(limit);
  return terms < 0 ? std::nullopt : std::optional(double(terms) / rows);
}

std::optional<double> meanOfShifted(ReduceOp reduce) {
  auto compute = dyn_cast<ComputeOp>(reduce->getParentOp());
  auto least = compute && reduce.getNumIndices() == 1
                   ? reduce.getUpper()[0].getDefiningOp<arith::MinSIOp>()
                   : arith::MinSIOp();
  auto length = least ? least.getLhs().getDefiningOp<arith::SubIOp>() : arith::SubIOp();
  if (!length || !isLoadedBound(length.getLhs()) || !isLoadedBound(length.getRhs()))
    return std::nullopt;
  return meanOfRanges(compute, least.getRhs());
}

} // namespace tk
