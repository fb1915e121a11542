//===- ExpandScalars.cpp - scalar operations in terms of arith ------------===//
//
// LLVM vectorises loops of plain arithmetic, but not loops with calls. This pass replaces each
// scalar operation that arith lacks, or that would become a call, by the operations of
// ScalarExpand.h. Examples are polynomials for `exp` and `log` in f32, integer arithmetic for
// conversions of bf16 and f8, and arith for the scalar operations of the tk dialect.
//
//   %e = math.exp %x : f32    =>    range reduction, polynomial and scaling by a power of two
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/CpuPasses.h"
#include "passes/lowering/cpu/ScalarExpand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tk {
#define GEN_PASS_DEF_EXPANDSCALARS
#include "passes/lowering/cpu/CpuPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

namespace {
struct ExpandScalars : ::tk::impl::ExpandScalarsBase<ExpandScalars> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (op->getNumResults() != 1 || op->getNumRegions() != 0 ||
          !op->getResult(0).getType().isIntOrIndexOrFloat())
        return;
      OpBuilder builder(op);
      Value expanded = cpu::expandScalar(builder, op, op->getOperands());
      if (!expanded)
        return;
      op->getResult(0).replaceAllUsesWith(expanded);
      op->erase();
    });
  }
};
} // namespace
