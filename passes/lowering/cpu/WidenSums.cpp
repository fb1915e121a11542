//===- WidenSums.cpp - f32 sums accumulated in f64 ------------------------===//
//
// The loops of the CPU target add one element after the other, so the error of an f32 sum would
// grow with the number of its elements. This pass accumulates f32 sums in f64, and rounds once.
//
// 1. Widen the accumulator of each f32 sum, and of each running sum of a scan, to f64.
// 2. In an online reduction, widen the running values and the factors of the rescale region as
//    well.
// 3. Round the result to f32.
//
// The pass leaves matrix products in f32. They are added in blocks (LinalgContraction.cpp).
//
//   %s = tk.reduce [sum] ... { tk.yield %x : f32 } : f32
//     =>
//   %w = tk.reduce [sum] ... { %e = arith.extf %x; tk.yield %e : f64 } : f64
//   %s = arith.truncf %w : f64 to f32
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/BodyAnalysis.h"
#include "passes/lowering/cpu/CpuPasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk {
#define GEN_PASS_DEF_WIDENSUMS
#include "passes/lowering/cpu/CpuPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

/// Makes an f32 an f64, of which uses at the insertion point and behind it get the f32.
static void widenValue(OpBuilder &builder, Value value) {
  Type narrow = value.getType();
  value.setType(builder.getF64Type());
  Operation *rounded = arith::TruncFOp::create(builder, value.getLoc(), narrow, value);
  value.replaceAllUsesExcept(rounded->getResult(0), rounded);
}

/// Makes an operand of a terminator an f64.
static void widenOperand(Operation *terminator, unsigned number) {
  OpBuilder builder(terminator);
  Value wide = builder.createOrFold<arith::ExtFOp>(terminator->getLoc(), builder.getF64Type(),
                                                   terminator->getOperand(number));
  terminator->setOperand(number, wide);
}

static void widenSum(ReduceOp reduce, unsigned k) {
  const unsigned count = reduce.getNumAccumulators();
  widenOperand(reduce.getYield(), k);
  OpBuilder builder(reduce);
  builder.setInsertionPointAfter(reduce);
  widenValue(builder, reduce.getResult(k));
  if (count == 1)
    return;
  Block &rescale = reduce.getRescale().front();
  if (k > 0)
    widenOperand(rescale.getTerminator(), k - 1);
  if (k + 1 == count)
    return;
  builder.setInsertionPointToStart(reduce.getBlock());
  widenValue(builder, reduce.getRunning(k));
  builder.setInsertionPointToStart(&rescale);
  for (unsigned argument : {k, count - 1 + k})
    widenValue(builder, rescale.getArgument(argument));
}

static bool isNarrowSum(ReduceKind kind, Type type) {
  return kind == ReduceKind::Sum && type.isF32();
}

namespace {
struct WidenSums : ::tk::impl::WidenSumsBase<WidenSums> {
  void runOnOperation() override {
    SmallVector<ComputeOp> computes;
    getOperation().walk([&](ComputeOp compute) { computes.push_back(compute); });
    for (ComputeOp compute : computes)
      if (failed(widen(compute)))
        return signalPassFailure();
  }

  LogicalResult widen(ComputeOp compute) {
    SmallVector<std::pair<ReduceOp, unsigned>> sums;
    SmallVector<ScanOp> scans;
    compute.walk([&](ReduceOp reduce) {
      for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k)
        if (isNarrowSum(reduce.getKind(k), reduce.getResult(k).getType()))
          sums.push_back({reduce, k});
    });
    compute.walk([&](ScanOp scan) {
      if (isNarrowSum(scan.getKind(), scan.getType()))
        scans.push_back(scan);
    });
    if (sums.empty() && scans.empty())
      return success();
    // Which sums are products does not depend on the machine.
    FailureOr<cpu::BodyAnalysis> analysis =
        cpu::BodyAnalysis::create(compute, cpu::CpuMachine::avx2());
    if (failed(analysis))
      return failure();
    llvm::erase_if(
        sums, [&](auto &sum) { return analysis->contractionOf(sum.first, sum.second) != nullptr; });
    for (auto [reduce, k] : sums)
      widenSum(reduce, k);
    for (ScanOp scan : scans) {
      widenOperand(scan.getYield(), 0);
      OpBuilder builder(scan);
      builder.setInsertionPointAfter(scan);
      widenValue(builder, scan.getResult());
    }
    numWidened += sums.size() + scans.size();
    return success();
  }
};
} // namespace
