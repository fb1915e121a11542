//===- LinalgToLoops.cpp - linalg on buffers as loops ---------------------===//
//
// MLIR's lowering of linalg reads every input in the innermost loop. LLVM cannot prove that a store
// in the loop does not change such an input. It then repeats the read, and all computations that
// depend on it, for each element.
//
// 1. Lower each linalg operation to a nest of `scf.for` with MLIR's rewriting.
// 2. Move reads of inputs whose indices are invariant in the innermost loop in front of that loop.
//    No store in the loop overwrites them: bufferization shares a buffer between a result and an
//    input only if both are indexed alike and no dimension is reduced.
//
//   for i, j: y[i, j] = y[i, j] * x[i]   =>   for i: { a = x[i]; for j: y[i, j] = y[i, j] * a }
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/CpuPasses.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

namespace tk {
#define GEN_PASS_DEF_LINALGTOLOOPS
#include "passes/lowering/cpu/CpuPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

/// Reads of `inputs` that are the same in all of `loop` move before it. Returns how many.
static unsigned hoistReads(scf::ForOp loop, ArrayRef<Value> inputs) {
  unsigned count = 0;
  moveLoopInvariantCode(loop); // what the reads are indexed by
  for (auto load : llvm::make_early_inc_range(loop.getBody()->getOps<memref::LoadOp>())) {
    if (!llvm::is_contained(inputs, load.getMemRef()) ||
        !llvm::all_of(load.getOperands(),
                      [&](Value operand) { return loop.isDefinedOutsideOfLoop(operand); }))
      continue;
    load->moveBefore(loop);
    ++count;
  }
  return count;
}

namespace {
struct LinalgToLoops : ::tk::impl::LinalgToLoopsBase<LinalgToLoops> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops) {
      if (!op.hasPureBufferSemantics()) {
        op.emitError("expected a linalg operation on buffers, got one on tensors");
        return signalPassFailure();
      }
      SmallVector<Value> inputs = op.getDpsInputs();
      llvm::erase_if(inputs,
                     [&](Value input) { return llvm::is_contained(op.getDpsInits(), input); });
      rewriter.setInsertionPoint(op);
      FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, op);
      if (failed(loops)) {
        op.emitError("a linalg operation of this form has no loops");
        return signalPassFailure();
      }
      rewriter.eraseOp(op);
      if (!loops->empty())
        numHoisted += hoistReads(cast<scf::ForOp>(loops->back()), inputs);
    }
  }
};
} // namespace
