//===- ApproximateNarrow.cpp - functions whose results are rounded --------===//
//
// What is rounded to 16 bits or fewer needs no quotient that is right to the last bit of f32, nor
// the error function's relative accuracy near 0 where 1 is added to it. Both cost several times as
// much as the hardware's approximations, beside a product more than all else that is done with it.
//   1. A value is narrow if it has uses, and each is a rounding to 16 bits or fewer, or a sum,
//      difference, product, quotient, negation, extremum or choice that is narrow.
//   2. An f32 quotient that is narrow may have an error of 2 ulp.
//   3. An f32 error function may have an absolute error of 2^-22 if all that is done with it is to
//      add a constant of at least 1/2 in size, with narrow sums: of them that is 4 ulp.
//   4. An f32 exponential that is narrow may be the instruction for 2^x where its argument is a
//      difference: what that was rounded by shows in the result as much as the instruction's error
//      of 2^-22. Of other arguments results near 1 may be exact until 1 is taken off.
//
//   %e = math.erf %x                          %e = math.erf %x {approx}
//   %s = arith.addf %e, %one             →    ...
//   %q = arith.divf %s, %y                    %q = arith.divf %s, %y {approx}
//   %r = arith.truncf %q : f32 to bf16
//
//===----------------------------------------------------------------------===//
#include "passes/tiling/ApproximateNarrow.h"

#include "passes/tiling/ApproximateExps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

/// The least constant beside which an absolute error of 2^-22 is one of 4 ulp.
static constexpr double leastAddend = 0.5;

static bool isNarrow(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<arith::TruncFOp>(user))
      return user->getResult(0).getType().getIntOrFloatBitWidth() <= 16;
    if (isa<arith::SelectOp>(user) && use.getOperandNumber() == 0)
      return false;
    return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp,
               arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
               arith::SelectOp>(user) &&
           isNarrow(user->getResult(0));
  });
}

/// Is all that is done with `value` to add a constant that is not small, and is that narrow?
static bool isAddedToConstant(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
    auto add = dyn_cast<arith::AddFOp>(user);
    FloatAttr constant;
    return add &&
           matchPattern(add.getLhs() == value ? add.getRhs() : add.getLhs(),
                        m_Constant(&constant)) &&
           std::abs(constant.getValueAsDouble()) >= leastAddend && isNarrow(add);
  });
}

void tk::markNarrowFunctions(ComputeOp compute) {
  auto mark = [](Operation *op) { op->setAttr(approxAttrName, UnitAttr::get(op->getContext())); };
  compute.getBody().walk([&](Operation *op) {
    if (op->getNumResults() != 1 || !op->getResult(0).getType().isF32())
      return;
    if (isa<arith::DivFOp>(op) && isNarrow(op->getResult(0)))
      mark(op);
    if (isa<math::ExpOp>(op) && op->getOperand(0).getDefiningOp<arith::SubFOp>() &&
        isNarrow(op->getResult(0)))
      mark(op);
    if (isa<math::ErfOp>(op) && isAddedToConstant(op->getResult(0)))
      mark(op);
  });
}
