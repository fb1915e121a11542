//===- WidenIndices.cpp - indices as wide integers ------------------------===//
//
// Offsets in small tensors have 32 bits, and so have all indices. What is computed from indices to
// be used as a number need not be an offset of anything: where it may not fit, each index becomes
// an integer of 64 bits before it is computed with.
//
//   index_cast(muli %i, 7777777777) : index to i64  →  muli(index_cast %i, 7777777777 : i64)
//
// Where an index that is compared, read at or counted to may not fit, all of a function's have 64.
//
//===----------------------------------------------------------------------===//
#include "passes/numerics/WidenIndices.h"

#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tk;

/// What an index has room for. One whose range is not known counts as so small that sums and
/// differences of a few fit, as those of indices of small tensors do.
static constexpr double largestIndex = std::numeric_limits<int32_t>::max();
static constexpr double unknownIndex = 1 << 28;

static bool isArithmetic(Operation *op) {
  return isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MinSIOp,
                         arith::MaxSIOp, FloorDivOp, FloorModOp>(op);
}

/// At most how large an index value within `kernel` is, whatever its sign; one that nothing is
/// known of counts as `unknown`.
static double largestSize(KernelOp kernel, Value value, double unknown) {
  if (std::optional<int64_t> constant = getConstantIndex(value))
    return std::abs(static_cast<double>(*constant));
  Operation *op = value.getDefiningOp();
  auto operand = [&](unsigned number) {
    return largestSize(kernel, op->getOperand(number), unknown);
  };
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return operand(0) + operand(1);
  if (isa_and_nonnull<arith::MulIOp>(op))
    return operand(0) * operand(1);
  if (isa_and_nonnull<FloorDivOp, FloorModOp>(op))
    if (std::optional<int64_t> by = getConstantIndex(op->getOperand(1)); by && *by > 0)
      return isa<FloorDivOp>(op) ? operand(0) / static_cast<double>(*by) + 1
                                 : static_cast<double>(*by);
  if (isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp, FloorDivOp, FloorModOp>(op))
    return std::max(operand(0), operand(1));
  std::optional<int64_t> upper;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    unsigned number = argument.getArgNumber();
    if (auto compute = dyn_cast<ComputeOp>(owner))
      upper = getSizeFact(kernel, compute.getExtents()[number]).upper;
    else if (auto reduce = dyn_cast<ReduceOp>(owner);
             reduce && number < reduce.getNumIndices() &&
             getConstantIndex(reduce.getLower()[number]).value_or(-1) >= 0)
      upper = getSizeFact(kernel, reduce.getUpper()[number]).upper;
    else if (isa<KernelOp>(owner))
      upper = getSizeFact(kernel, value).upper;
  }
  return upper ? static_cast<double>(*upper) : unknown;
}

/// `index` computed with 64 bits.
static Value widen(OpBuilder &builder, Location loc, Value index) {
  if (std::optional<int64_t> constant = getConstantIndex(index))
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(*constant));
  Operation *op = index.getDefiningOp();
  if (!isArithmetic(op))
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(widen(builder, loc, operand));
  OperationState state(loc, op->getName(), operands, {builder.getI64Type()});
  return builder.create(state)->getResult(0);
}

/// Is an index that is computed on the way to `value` possibly too large for 32 bits?
static bool mayOverflow(KernelOp kernel, Value value, double unknown) {
  if (largestSize(kernel, value, unknown) > largestIndex)
    return true;
  Operation *op = value.getDefiningOp();
  return isArithmetic(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
           return mayOverflow(kernel, operand, unknown);
         });
}

void tk::widenIndices(KernelOp kernel, ComputeOp compute) {
  SmallVector<arith::IndexCastOp> casts;
  compute.getBody().walk([&](arith::IndexCastOp cast) {
    if (cast.getIn().getType().isIndex() && cast.getType().isInteger(64) &&
        mayOverflow(kernel, cast.getIn(), unknownIndex))
      casts.push_back(cast);
  });
  for (arith::IndexCastOp cast : casts) {
    if (!cast.getIn().getDefiningOp() || getConstantIndex(cast.getIn()))
      continue;
    OpBuilder builder(cast);
    Value wide = widen(builder, cast.getLoc(), cast.getIn());
    cast.replaceAllUsesWith(wide);
    cast.erase();
  }
}

bool tk::fitIndices(KernelOp kernel, ComputeOp compute) {
  // Sizes that are not known are those of small tensors, and so are products of a few.
  auto fits = [&](Value value) {
    return !value.getType().isIndex() || !mayOverflow(kernel, value, /*unknown=*/1);
  };
  return !compute
              .walk([&](Operation *op) {
                bool isUsed = isa<LoadOp, arith::CmpIOp, ReduceOp, ScanOp>(op);
                return isUsed && !llvm::all_of(op->getOperands(), fits) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
              })
              .wasInterrupted();
}
