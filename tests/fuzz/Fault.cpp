//===- Fault.cpp - a fault planted in a program ---------------------------===//
#include "tests/fuzz/Fault.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk::fuzz {

void plantFault(mlir::ModuleOp module) {
  module.walk([](mlir::Operation *op) {
    if (!mlir::isa<mlir::arith::AddFOp, mlir::arith::SubFOp, mlir::arith::MulFOp>(op) ||
        op->getOperand(0) == op->getOperand(1))
      return mlir::WalkResult::advance();
    op->setOperand(0, op->getOperand(1));
    return mlir::WalkResult::interrupt();
  });
}

} // namespace tk::fuzz
