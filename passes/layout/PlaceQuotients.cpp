//===- PlaceQuotients.cpp - quotients of the places of windows ------------===//
//
// Replaces divisions by an argument of the kernel by multiplications with its reciprocal. The
// launch computes the reciprocal and passes it as an argument.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/PlaceQuotients.h"

#include "passes/layout/MemoryAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

void tk::multiplyByReciprocals(FuncOp function, LaunchArguments &arguments) {
  constexpr int64_t one = 1 << 16;
  DenseMap<Value, Value> reciprocals;
  SmallVector<Operation *> divisions;
  function.walk([&](Operation *op) {
    if (!isa<FloorDivOp, FloorModOp>(op) || !op->getResult(0).getType().isIndex() ||
        !op->getParentOfType<scf::ForOp>() || !isa<BlockArgument>(op->getOperand(1)))
      return;
    std::optional<ScalarRange> x = rangeOfScalar(op->getOperand(0)),
                               d = rangeOfScalar(op->getOperand(1));
    if (x && d && x->least >= 0 && d->most >= 1 && (x->most + 1) * d->most < one)
      divisions.push_back(op);
  });
  LaunchOp launch = arguments.getLaunch();
  for (Operation *op : divisions) {
    auto divisor = cast<BlockArgument>(op->getOperand(1));
    Location loc = op->getLoc();
    Value &reciprocal = reciprocals[divisor];
    if (!reciprocal) {
      OpBuilder host(launch);
      auto constant = [&](int64_t value) -> Value {
        return arith::ConstantIndexOp::create(host, loc, value);
      };
      Value size = launch.getArgs()[divisor.getArgNumber()];
      size = arith::MaxSIOp::create(host, loc, size, constant(1));
      Value sum = arith::AddIOp::create(host, loc, size, constant(one - 1));
      reciprocal =
          arguments.addIndex(FloorDivOp::create(host, loc, host.getIndexType(), sum, size),
                             (function.getArgName(divisor.getArgNumber()) + "_reciprocal").str());
    }
    OpBuilder builder(op);
    Value quotient = arith::MulIOp::create(builder, loc, op->getOperand(0), reciprocal);
    quotient = arith::DivSIOp::create(builder, loc, quotient,
                                      arith::ConstantIndexOp::create(builder, loc, one));
    if (isa<FloorModOp>(op)) {
      quotient = arith::MulIOp::create(builder, loc, quotient, divisor);
      quotient = arith::SubIOp::create(builder, loc, op->getOperand(0), quotient);
    }
    op->getResult(0).replaceAllUsesWith(quotient);
    op->erase();
  }
}
