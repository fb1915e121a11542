//===- BlockProducts.cpp - matrix products of the blocks of a row ---------===//
//
// Part of tk-divide-indices.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/ranges/BlockProducts.h"

#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

namespace {
/// How a factor of a product uses an index: by quotients and remainders of one number alone?
struct BlockUse {
  std::optional<int64_t> size;
  bool hasQuotient = false, hasRest = false, hasOther = false;
};
} // namespace

static BlockUse useOf(Value factor, BlockArgument index) {
  BlockUse use;
  SmallVector<Value> work = {factor};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    use.hasOther |= value == index;
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    std::optional<int64_t> by = isa<FloorDivOp, FloorModOp>(op) && op->getOperand(0) == index
                                    ? getConstantIntValue(op->getOperand(1))
                                    : std::nullopt;
    if (!by) {
      llvm::append_range(work, getInputs(op));
      continue;
    }
    use.hasOther |= *by < 2 || (use.size && use.size != by);
    use.size = by;
    (isa<FloorDivOp>(op) ? use.hasQuotient : use.hasRest) = true;
  }
  return use;
}

std::optional<int64_t> tk::findBlocks(ReduceOp reduce, BlockArgument index) {
  Operation *product = reduce.getYield().getValues()[0].getDefiningOp();
  for (auto [one, other] : {std::pair(0U, 1U), std::pair(1U, 0U)}) {
    const BlockUse ofOne = useOf(product->getOperand(one), index),
                   ofOther = useOf(product->getOperand(other), index);
    if (!ofOne.hasOther && !ofOther.hasOther && ofOne.hasQuotient && !ofOne.hasRest &&
        ofOther.hasRest && ofOne.size == ofOther.size)
      return ofOne.size;
  }
  return std::nullopt;
}
