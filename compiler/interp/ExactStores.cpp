//===- ExactStores.cpp - results that are exact but for their rounding ----===//
//
// A value is exact if it follows from inputs by operations that round nothing, or nothing but what
// the program says: loads, choices, comparisons, signs, extrema, integers, and conversions. Such a
// value is what the naive program says, bit for bit.
//
//===----------------------------------------------------------------------===//
#include "compiler/interp/Tolerance.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tk::interp {

/// Is `op` a second rounding of an integer, which canonicalisation leaves out? f16 and f8 hold no
/// integer that f32 rounds.
static bool roundsIntegerAgain(Operation *op) {
  auto narrow = dyn_cast<arith::TruncFOp>(op);
  return narrow && narrow.getType().isBF16() && narrow.getIn().getType().isF32() &&
         isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(narrow.getIn().getDefiningOp());
}

/// Does an operation on floats give a result that is exact, or rounded once from the exact one to a
/// type that the program names?
static bool isExactOnFloats(Operation *op) {
  return isa<arith::ConstantOp, arith::SelectOp, arith::CmpFOp, arith::ExtFOp, arith::TruncFOp,
             arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp, arith::NegFOp,
             arith::MaximumFOp, arith::MinimumFOp, math::AbsFOp, math::FloorOp, math::CeilOp,
             math::RoundEvenOp, math::TruncOp, math::CopySignOp, LoadOp>(op);
}

static bool selectsTerms(ReduceKind kind) {
  return kind != ReduceKind::Sum && kind != ReduceKind::Prod;
}

/// Are the operation's results exact if its operands, and what its regions yield, are?
static bool isExactOperation(Operation *op) {
  auto hasFloats = [](auto types) {
    return llvm::any_of(types, [](Type type) { return isa<FloatType>(type); });
  };
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return llvm::all_of(llvm::seq(reduce.getNumAccumulators()), [&](unsigned k) {
      return selectsTerms(reduce.getKind(k)) || !isa<FloatType>(reduce.getResult(k).getType());
    });
  if (auto scan = dyn_cast<ScanOp>(op))
    return selectsTerms(scan.getKind()) || !isa<FloatType>(scan.getType());
  return isExactOnFloats(op) ||
         (!hasFloats(op->getOperandTypes()) && !hasFloats(op->getResultTypes()));
}

bool isStoredExactly(KernelOp kernel, unsigned result) {
  llvm::SetVector<Value> values;
  values.insert(kernel.getReturn().getResults()[result]);
  for (size_t next = 0; next < values.size(); ++next) {
    Value value = values[next];
    Operation *op = value.getDefiningOp();
    if (!op) // a parameter, or an index
      continue;
    if (auto compute = dyn_cast<ComputeOp>(op)) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      values.insert(compute.getYield().getValues()[number]);
      continue;
    }
    if (!isExactOperation(op) || roundsIntegerAgain(op))
      return false;
    values.insert_range(op->getOperands());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (block.mightHaveTerminator())
          values.insert_range(block.getTerminator()->getOperands());
  }
  return true;
}

} // namespace tk::interp
