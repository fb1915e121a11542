//===- LoopSteps.cpp - where loops stand ----------------------------------===//
#include "passes/memory/LoopSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

Value tk::createStepBehind(OpBuilder &builder, Location loc, Value lower, Value end, Value step) {
  Value terms = arith::SubIOp::create(builder, loc, end, lower);
  terms =
      arith::MaxSIOp::create(builder, loc, terms, arith::ConstantIndexOp::create(builder, loc, 0));
  Value count = arith::CeilDivSIOp::create(builder, loc, terms, step);
  Value done = arith::MulIOp::create(builder, loc, count, step);
  return arith::AddIOp::create(builder, loc, lower, done);
}
