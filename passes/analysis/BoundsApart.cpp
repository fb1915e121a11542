//===- BoundsApart.cpp - accesses in statements of their own --------------===//
#include "passes/analysis/BoundsApart.h"

#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

/// Is `index` the last one of an axis whose extent is one of `extents`?
static bool isLastOf(Value index, Value extent, ValueRange extents) {
  auto last = index.getDefiningOp<arith::SubIOp>();
  return last && isConstantIntValue(last.getRhs(), 1) && last.getLhs() == extent &&
         llvm::is_contained(extents, extent);
}

/// Are both numbers of the program, and the index the smaller one?
static bool isConstantWithin(Value index, Value extent) {
  std::optional<int64_t> at = getConstantIndex(index), end = getConstantIndex(extent);
  return at && end && *at >= 0 && *at < *end;
}

bool tk::isInBoundsApart(Operation *op, Dependence &onOthers, ValueRange kept) {
  auto kernel = op->getParentOfType<KernelOp>();
  WalkResult result = op->walk([&](LoadOp load) {
    auto isSafeAt = [&](Value index, unsigned axis) {
      if (onOthers.on(index))
        return false;
      if (isConstantWithin(index, getExtents(kernel, load.getTensor())[axis]))
        return true;
      return !getIterationIndices(index).empty() ||
             (!kept.empty() && isLastOf(index, getExtents(kernel, load.getTensor())[axis], kept));
    };
    bool isSafe = load.getPad() ||
                  llvm::all_of(llvm::enumerate(load.getIndices()),
                               [&](auto entry) { return isSafeAt(entry.value(), entry.index()); });
    return isSafe ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}
