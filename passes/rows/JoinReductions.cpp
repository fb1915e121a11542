//===- JoinReductions.cpp - two dependent reductions in one exchange ------===//
//
// A variance is reduced about a mean, and exponentials are reduced relative to a maximum. The
// threads of a row synchronise for the first reduction and again for the second one. Either pair
// can be combined from pairs of partial results, in one exchange.
//
// 1. The pass takes reductions of f32 tiles of one axis in kernels without matrix products. Each
//    element has one thread, and all warps share the row. There must be at least 8 warps, or long
//    rows: fewer warps synchronise soon.
// 2. Pattern `moments`: a sum, and the sum of squared differences of its elements from a scalar c,
//    both follow from `tkgpu.moments`. The squares about c are those about the mean plus n (mean -
//    c)^2, whatever c is.
// 3. Pattern `differences`: the sum of the differences of a row's elements from c, which the
//    gradient of a norm needs, follows from the moments as well. It is n (mean - c).
// 4. Pattern `maxima`: a maximum, and the sum of exponentials relative to it, follow from
//    `tkgpu.weights`, if the exponentials need only be exact for 16 bits. The exponentials of each
//    warp are used again, times one number a warp. Quotients by the sum become products with its
//    reciprocal.
// 5. Patterns `means` and `next-rows` take clusters whose blocks carry sums of columns. A sum about
//    a mean becomes sums that do not need it (SeparateMeans.cpp). The next row's sums are exchanged
//    while this row is computed (OverlapExchanges.cpp).
// 6. A thread holds its elements as f32 meanwhile. Rows of more than 32 elements a thread are
//    declined, unless they are read from thread-private staging. They are then read in chunks, and
//    once more for the exponentials.
// 7. In a cluster, a reduction in a branch or an inner loop is declined: the blocks exchange only
//    where all execute it.
//
// Before: %s = reduce <sum> %x; %c = %s / n; %d = %x - %c; %q = reduce <sum> (%d * %d)
// After:  %mean, %squares = moments %x; %s = %mean * n; %c = %s / n; %d = %mean - %c;
//         %q = %squares + n * (%d * %d)
//
// Before: %m = reduce <max> %x; %e = exp_diff %x, %m; %s = reduce <sum> %e; %y = %e * %f
// After:  %m, %s, %w, %g = weights %x; %y = %w * (%g * %f)
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Rows.h"
#include "passes/numerics/ApproximateExps.h"
#include "passes/rows/OverlapExchanges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tk {
#define GEN_PASS_DEF_JOINREDUCTIONS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::join_reductions;

/// Does every element of a row have one thread, in many warps, which meet there?
static bool isShared(gpu::ReduceOp reduce, FuncOp function) {
  auto row = cast<RankedTensorType>(reduce.getSource().getType());
  LayoutAttr layout = getLayout(row);
  if (!layout || row.getRank() != 1 || !row.getElementType().isF32())
    return false;
  bool isLong = layout.getNumRegisters() > mostElements;
  if (isLong && !readsPrivate(reduce.getSource()))
    return false;
  AxisBits bits = axisBits(layout, 0);
  Operation *parent = reduce->getParentOp();
  bool isInStep =
      parent == function || (isa<scf::ForOp>(parent) && parent->getParentOp() == function);
  return bits.lanes == 31 && bits.warps + uint64_t(1) == function.getNumWarps() &&
         (function.getNumWarps() >= leastWarps || isLong) && (isInStep || !function.isSpread());
}

/// The scalar that is subtracted from every element of `row` in `difference`; null: none is.
static Value subtrahend(Value difference, Value row) {
  auto sub = difference.getDefiningOp<arith::SubFOp>();
  auto spread = sub ? sub.getRhs().getDefiningOp<BroadcastOp>() : BroadcastOp();
  return spread && sub.getLhs() == row && !isTile(spread.getSource()) ? spread.getSource()
                                                                      : Value();
}

/// The reduction of `row` of that kind that runs before `op`.
static gpu::ReduceOp reductionBefore(Operation *op, Value row, ReduceKind kind) {
  for (Operation *user : row.getUsers()) {
    auto reduce = dyn_cast<gpu::ReduceOp>(user);
    if (reduce && reduce.getKind() == kind && reduce->getBlock() == op->getBlock() &&
        reduce->isBeforeInBlock(op))
      return reduce;
  }
  return {};
}

/// The number of elements of `row`, which the block of `op` has, as f32.
static Value lengthOf(OpBuilder &builder, Value row, Operation *op) {
  const int64_t length = int64_t(getLayout(row.getType()).getNumRegisters()) * lanesOfWarp *
                         op->getParentOfType<FuncOp>().getNumWarps();
  return arith::ConstantOp::create(builder, op->getLoc(), builder.getF32FloatAttr(double(length)));
}

/// `squares` is the sum of the squares of differences of a row from a scalar; returns the sum that
/// it is joined to, which is no more.
static Operation *joinMoments(gpu::ReduceOp squares) {
  auto square = squares.getSource().getDefiningOp<arith::MulFOp>();
  auto sub = square && square.getLhs() == square.getRhs()
                 ? square.getLhs().getDefiningOp<arith::SubFOp>()
                 : arith::SubFOp();
  Value row = sub ? sub.getLhs() : Value();
  Value about = sub ? subtrahend(sub, row) : Value();
  gpu::ReduceOp sum = about ? reductionBefore(squares, row, ReduceKind::Sum) : gpu::ReduceOp();
  if (!sum)
    return nullptr;
  OpBuilder builder(sum);
  Location loc = squares.getLoc();
  auto moments = MomentsOp::create(builder, loc, row);
  Value count = lengthOf(builder, row, squares);
  sum.getResult().replaceAllUsesWith(arith::MulFOp::create(builder, loc, moments.getMean(), count));
  Operation *joined = sum;
  sum.erase();
  about = subtrahend(sub, row); // which may have been the sum
  builder.setInsertionPoint(squares);
  Value shift = arith::SubFOp::create(builder, loc, moments.getMean(), about);
  Value shifted = arith::MulFOp::create(builder, loc, shift, shift);
  shifted = arith::MulFOp::create(builder, loc, shifted, count);
  squares.getResult().replaceAllUsesWith(
      arith::AddFOp::create(builder, loc, moments.getSquares(), shifted));
  squares.erase();
  if (square->use_empty())
    square.erase();
  return joined;
}

/// `differences` is the sum of the differences of a row from a scalar. It follows from the row's
/// moments, if there are any: it is n (mean - scalar).
static bool joinDifferences(gpu::ReduceOp differences) {
  auto sub = differences.getSource().getDefiningOp<arith::SubFOp>();
  Value row = sub ? sub.getLhs() : Value(), about = sub ? subtrahend(sub, row) : Value();
  if (!about)
    return false;
  for (Operation *user : row.getUsers()) {
    auto moments = dyn_cast<MomentsOp>(user);
    if (!moments || moments->getBlock() != differences->getBlock() ||
        !moments->isBeforeInBlock(differences))
      continue;
    OpBuilder builder(differences);
    const Location loc = differences.getLoc();
    Value count = lengthOf(builder, row, differences);
    Value shift = arith::SubFOp::create(builder, loc, moments.getMean(), about);
    differences.getResult().replaceAllUsesWith(arith::MulFOp::create(builder, loc, shift, count));
    differences.erase();
    return true;
  }
  return false;
}

/// What `op` multiplies `exponentials` by, a tile; null if it does something else.
static Value factorOf(Operation *op, Value exponentials, OpBuilder &builder) {
  if (auto product = dyn_cast<arith::MulFOp>(op); product && product.getLhs() != product.getRhs())
    return product.getLhs() == exponentials ? product.getRhs() : product.getLhs();
  if (!isa<DivOrZeroOp, arith::DivFOp>(op) || !hasMode(op, MathMode::Approx) ||
      op->getOperand(0) != exponentials)
    return {};
  auto divisor = op->getOperand(1).getDefiningOp<BroadcastOp>();
  if (!divisor || isTile(divisor.getSource()))
    return {};
  Location loc = op->getLoc();
  Value one = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1));
  OperationState state(loc, op->getName(), {one, divisor.getSource()}, {builder.getF32Type()},
                       op->getAttrs());
  Value reciprocal = builder.create(state)->getResult(0);
  return BroadcastOp::create(builder, loc, exponentials.getType(), reciprocal, ArrayRef<int64_t>{});
}

/// Replaces what exponentials are used for by the same of the warp's own.
static void keepWeights(ExpDiffOp exponentials, WeightsOp weights) {
  OpBuilder builder(exponentials);
  Location loc = exponentials.getLoc();
  for (Operation *user : llvm::to_vector(exponentials->getUsers())) {
    builder.setInsertionPoint(user);
    Value factor = factorOf(user, exponentials, builder);
    if (!factor)
      continue;
    // Two numbers that are the same in a warp: their product is not one for each element.
    factor = arith::MulFOp::create(builder, loc, weights.getScales(), factor);
    user->getResult(0).replaceAllUsesWith(
        arith::MulFOp::create(builder, loc, weights.getWeights(), factor));
    user->erase();
  }
  if (exponentials->use_empty())
    return exponentials.erase();
  builder.setInsertionPoint(exponentials);
  Value all = arith::MulFOp::create(builder, loc, weights.getWeights(), weights.getScales());
  exponentials.replaceAllUsesWith(all);
  exponentials.erase();
}

/// `sum` is that of exponentials of a row under its maximum.
static bool joinWeights(gpu::ReduceOp sum) {
  auto exponentials = sum.getSource().getDefiningOp<ExpDiffOp>();
  if (!exponentials || !hasMode(exponentials, MathMode::Approx))
    return false;
  Value row = exponentials->getOperand(0);
  gpu::ReduceOp max = reductionBefore(sum, row, ReduceKind::Max);
  auto under = exponentials->getOperand(1).getDefiningOp<BroadcastOp>();
  if (!max || !under || under.getSource() != max.getResult())
    return false;
  OpBuilder builder(max);
  auto weights = WeightsOp::create(builder, sum.getLoc(), row);
  max.getResult().replaceAllUsesWith(weights.getMax());
  sum.getResult().replaceAllUsesWith(weights.getSum());
  max.erase();
  sum.erase();
  if (getLayout(row.getType()).getNumRegisters() <= mostElements)
    keepWeights(exponentials, weights);
  return true;
}

namespace {

struct JoinReductions : tk::impl::JoinReductionsBase<JoinReductions> {
  using JoinReductionsBase::JoinReductionsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    // Squares follow the sum that they are about.
    SmallVector<gpu::ReduceOp> sums;
    for (FuncOp function : getOperation().getOps<FuncOp>())
      function.walk([&](gpu::ReduceOp reduce) {
        if (!hasProducts(function) && reduce.getKind() == ReduceKind::Sum &&
            isShared(reduce, function))
          sums.push_back(reduce);
      });
    std::reverse(sums.begin(), sums.end());
    patterns.run("moments", [&] {
      llvm::SmallPtrSet<Operation *, 4> joined;
      llvm::erase_if(sums, [&](gpu::ReduceOp sum) {
        if (joined.contains(sum))
          return true;
        Operation *other = joinMoments(sum);
        joined.insert(other);
        numJoined += other != nullptr;
        return other != nullptr;
      });
    });
    patterns.run("differences", [&] {
      llvm::erase_if(sums, [&](gpu::ReduceOp sum) {
        const bool isJoined = joinDifferences(sum);
        numJoined += isJoined;
        return isJoined;
      });
    });
    patterns.run("maxima", [&] {
      for (gpu::ReduceOp sum : sums)
        numJoined += joinWeights(sum);
    });
    patterns.run("means", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        numJoined += separateMeans(function);
    });
    patterns.run("next-rows", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        overlapExchanges(function);
    });
  }
};

} // namespace
