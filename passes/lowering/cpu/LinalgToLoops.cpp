//===- LinalgToLoops.cpp - linalg on buffers as loops ---------------------===//
//
//  1. Every linalg operation becomes a nest of scf.for, by upstream's rewriting.
//  2. What an input holds at a point that is the same in all of the innermost loop is read before
//     that loop. Nothing in the loop overwrites it: bufferisation lets a result take the place of
//     an input only where both are indexed alike and no dimension is reduced. LLVM cannot know
//     that, and would read it, and compute all that follows from it, once for every element.
//
//   for i, j: y[i, j] = y[i, j] * x[i]        for i: { a = x[i]; for j: y[i, j] = y[i, j] * a }
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
