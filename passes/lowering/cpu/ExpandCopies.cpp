//===- ExpandCopies.cpp - copies of buffers as linalg operations ----------===//
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
