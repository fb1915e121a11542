//===- PackedFactors.cpp - operands computed from packed numbers ----------===//
#include "passes/analysis/PackedFactors.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/IntegerRanges.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

/// The operations inside the compute op of `reduce` that `values` need.
static llvm::SetVector<Operation *> getNeeded(ValueRange values, ReduceOp reduce) {
  auto compute = reduce->getParentOfType<ComputeOp>();
  llvm::SetVector<Operation *> needed;
  SmallVector<Value> work(values);
  while (!work.empty())
    if (Operation *op = work.pop_back_val().getDefiningOp();
        op && compute->isProperAncestor(op) && needed.insert(op))
      llvm::append_range(work, op->getOperands());
  return needed;
}

bool tk::isUnpacked(Value factor, ReduceOp reduce) {
  return llvm::any_of(getNeeded(factor, reduce), [&](Operation *op) {
    // A value that is loaded decides where a table is read.
    if (auto load = dyn_cast<LoadOp>(op))
      return llvm::any_of(getNeeded(load.getIndices(), reduce), llvm::IsaPred<LoadOp>);
    return isa<FloorModOp>(op) && isa<BlockArgument>(op->getOperand(0)) &&
           getConstantIndex(op->getOperand(1)).has_value();
  });
}

Value tk::findPackedFactor(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumIndices() != 1 || reduce.getNumAccumulators() != 1 ||
      !isMatrixProduct(reduce))
    return {};
  auto product = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  if (!product)
    return {};
  Value found;
  for (Value operand : product->getOperands()) {
    Value factor = withoutExtension(operand);
    if (!factor.getType().isF16() && !factor.getType().isBF16())
      return {};
    if (factor.getDefiningOp<LoadOp>() || !isUnpacked(factor, reduce))
      continue;
    if (found)
      return {};
    found = factor;
  }
  return found;
}

/// Does the index of `reduce`, and an index around it that `other` lacks, select `factor`?
static bool hasOwnIndex(ReduceOp reduce, Value factor, Value other) {
  bool isOwn = false, isInner = false;
  const SmallVector<BlockArgument> beside = getIterationIndices(other);
  for (BlockArgument index : getIterationIndices(factor)) {
    isInner |= index == reduce.getIndex(0);
    isOwn |= index.getOwner() != reduce.getBlock() && !llvm::is_contained(beside, index);
  }
  return isOwn && isInner;
}

Value tk::findPackedInteger(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumIndices() != 1 || reduce.getNumAccumulators() != 1 ||
      reduce.getKind(0) != ReduceKind::Sum)
    return {};
  auto product = reduce.getYield().getValues()[0].getDefiningOp<arith::MulIOp>();
  if (!product || !product.getType().isInteger(32))
    return {};
  for (auto [plain, factor] : {std::pair(product.getLhs(), product.getRhs()),
                               std::pair(product.getRhs(), product.getLhs())}) {
    auto extension = plain.getDefiningOp<arith::ExtSIOp>();
    auto load = extension ? extension.getIn().getDefiningOp<LoadOp>() : LoadOp();
    if (!load || !load.getType().isSignlessInteger(8) || !isUnpacked(factor, reduce))
      continue;
    std::optional<IntegerRange> range = getIntegerRange(factor);
    if (range && range->least >= INT8_MIN && range->greatest <= INT8_MAX &&
        hasOwnIndex(reduce, plain, factor) && hasOwnIndex(reduce, factor, plain))
      return factor;
  }
  return {};
}

bool tk::isUnpackedInParts(KernelOp kernel, ReduceOp reduce, Value factor, int64_t unit) {
  const int64_t divisor = getSizeFact(kernel, reduce.getUpper()[0]).divisor;
  if (!isUnpacked(withoutExtension(factor), reduce) || divisor % unit != 0)
    return false;
  Value k = reduce.getIndex(0);
  return llvm::all_of(getSlice(factor, reduce.getBlock()), [&](Operation *op) {
    if (op->getNumRegions() != 0)
      return false;
    if (!llvm::is_contained(op->getOperands(), k) || isa<LoadOp>(op))
      return true;
    if (!isa<FloorDivOp, FloorModOp>(op) || op->getOperand(0) != k)
      return false;
    std::optional<int64_t> run = getConstantIndex(op->getOperand(1));
    return run && *run > 0 && unit % *run == 0;
  });
}
