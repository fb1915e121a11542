//===- KeepEmptyReductions.cpp - reductions without elements --------------===//
//
// A reduction without elements must return its initial value. If the body ignores the accumulator,
// as in `x or true`, bufferization regards the initial value as overwritten and does not copy it.
//
// 1. Find linalg operations with reduced dimensions whose body ignores an initial value.
// 2. Put the operation into an `scf.if` that tests whether every reduced extent is positive. The
//    other branch yields the initial value.
//
// The pass declines if all reduced extents are known to be positive.
//
//   linalg.generic ins(%x) outs(%start)     scf.if (every reduced extent > 0) {
//     { yield %true }                  =>     yield linalg.generic ...
//                                           } else { yield %start }
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/CpuPasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tk {
#define GEN_PASS_DEF_KEEPEMPTYREDUCTIONS
#include "passes/lowering/cpu/CpuPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

/// Whether some result ignores what it begins with.
static bool ignoresStart(linalg::LinalgOp op) {
  return llvm::any_of(op.getDpsInitsMutable(),
                      [&](OpOperand &init) { return !op.payloadUsesValueFromOperand(&init); });
}

/// The reduced extents that are not known to be positive.
static SmallVector<OpFoldResult> extentsInDoubt(OpBuilder &b, linalg::LinalgOp op) {
  SmallVector<OpFoldResult> extents;
  SmallVector<Range> ranges = op.createLoopRanges(b, op.getLoc());
  for (auto [range, kind] : llvm::zip(ranges, op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction && getConstantIntValue(range.size).value_or(0) <= 0)
      extents.push_back(range.size);
  return extents;
}

static void makeConditional(linalg::LinalgOp op, ArrayRef<OpFoldResult> extents) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), hasTerms;
  for (OpFoldResult extent : extents) {
    Value isPositive = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                             getValueOrCreateConstantIndexOp(b, loc, extent), zero);
    hasTerms =
        hasTerms ? arith::AndIOp::create(b, loc, hasTerms, isPositive).getResult() : isPositive;
  }
  auto choice = scf::IfOp::create(b, loc, op->getResultTypes(), hasTerms, /*withElseRegion=*/true);
  op->replaceAllUsesWith(choice.getResults());
  op->moveBefore(choice.thenBlock(), choice.thenBlock()->end());
  b.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(b, loc, op->getResults());
  b.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(b, loc, op.getDpsInits());
}

namespace {
struct KeepEmptyReductions : ::tk::impl::KeepEmptyReductionsBase<KeepEmptyReductions> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op.getNumReductionLoops() > 0 && ignoresStart(op))
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops) {
      OpBuilder b(op);
      if (SmallVector<OpFoldResult> extents = extentsInDoubt(b, op); !extents.empty())
        makeConditional(op, extents);
    }
  }
};
} // namespace
