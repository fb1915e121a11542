//===- ExpandCopies.cpp - copies of buffers as linalg operations ----------===//
//
// Bufferization may insert `memref.copy`. MLIR lowers a copy between strided buffers to a call of
// its runtime library, on which kernels must not depend. This pass replaces every copy by a linalg
// operation, which tk-linalg-to-loops turns into loops.
//
//   memref.copy %a, %b    =>    linalg.generic ins(%a) outs(%b) { yield %in }
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/CpuPasses.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace tk {
#define GEN_PASS_DEF_EXPANDCOPIES
#include "passes/lowering/cpu/CpuPasses.h.inc"
} // namespace tk

using namespace mlir;

namespace {
struct ExpandCopies : ::tk::impl::ExpandCopiesBase<ExpandCopies> {
  void runOnOperation() override {
    getOperation().walk([](memref::CopyOp copy) {
      OpBuilder builder(copy);
      linalg::makeMemRefCopyOp(builder, copy.getLoc(), copy.getSource(), copy.getTarget());
      copy.erase();
    });
  }
};
} // namespace
