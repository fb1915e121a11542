//===- ReductionSteps.cpp - what a reduction of each kind does ------------===//
#include "passes/lowering/cpu/LinalgEmitter.h"
#include "passes/lowering/cpu/ScalarExpand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

bool tk::cpu::isUnsignedTerm(Value term) {
  auto load = term.getDefiningOp<LoadOp>();
  return load &&
         cast<RankedTensorType>(load.getTensor().getType()).getElementType().isUnsignedInteger();
}

SmallVector<Value> tk::cpu::reductionIdentity(OpBuilder &b, Location loc, ReduceKind kind,
                                              Type type, Type resultType, bool isUnsigned) {
  ScalarBuilder s(b, loc);
  auto extremum = [&](bool lowest) -> Value {
    if (isa<FloatType>(type)) {
      double infinity = std::numeric_limits<double>::infinity();
      return s.real(lowest ? -infinity : infinity, type);
    }
    unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    APInt value =
        isUnsigned ? (lowest ? APInt::getMinValue(width) : APInt::getMaxValue(width))
                   : (lowest ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  };
  auto number = [&](int64_t value) {
    return isa<FloatType>(type) ? s.real(double(value), type) : s.integer(value, type);
  };
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Any:
    return {number(0)};
  case ReduceKind::Prod:
    return {number(1)};
  case ReduceKind::All:
    return {s.integer(type.isInteger(1) ? -1 : 1, type)};
  case ReduceKind::Max:
    return {extremum(true)};
  case ReduceKind::Min:
    return {extremum(false)};
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin:
    // An index of -1 marks that nothing was seen; it is replaced by the first term.
    return {extremum(kind == ReduceKind::ArgMax), s.integer(-1, resultType)};
  }
  llvm_unreachable("kind of reduction");
}

SmallVector<Value> tk::cpu::reductionStep(OpBuilder &b, Location loc, ReduceKind kind,
                                          ValueRange old, Value term, Value at, bool isUnsigned) {
  bool isFloat = isa<FloatType>(term.getType());
  auto fast = arith::FastMathFlags::reassoc;
  switch (kind) {
  case ReduceKind::Sum:
    if (isFloat)
      return {arith::AddFOp::create(b, loc, old[0], term, fast)};
    return {arith::AddIOp::create(b, loc, old[0], term)};
  case ReduceKind::Prod:
    if (isFloat)
      return {arith::MulFOp::create(b, loc, old[0], term, fast)};
    return {arith::MulIOp::create(b, loc, old[0], term)};
  case ReduceKind::Any:
    return {arith::OrIOp::create(b, loc, old[0], term)};
  case ReduceKind::All:
    return {arith::AndIOp::create(b, loc, old[0], term)};
  case ReduceKind::Max:
    if (isFloat)
      return {arith::MaximumFOp::create(b, loc, old[0], term)};
    if (isUnsigned)
      return {arith::MaxUIOp::create(b, loc, old[0], term)};
    return {arith::MaxSIOp::create(b, loc, old[0], term)};
  case ReduceKind::Min:
    if (isFloat)
      return {arith::MinimumFOp::create(b, loc, old[0], term)};
    if (isUnsigned)
      return {arith::MinUIOp::create(b, loc, old[0], term)};
    return {arith::MinSIOp::create(b, loc, old[0], term)};
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin: {
    ScalarBuilder s(b, loc);
    bool isMax = kind == ReduceKind::ArgMax;
    Value x = isMax ? old[0] : term, y = isMax ? term : old[0];
    Value better;
    if (isFloat) {
      // A NaN is the extremum, as it is the value of max; the first one stays.
      Value isNew = arith::AndIOp::create(
          b, loc, s.isNan(term),
          arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, old[0], old[0]));
      better = s.bitOr(s.less(x, y), isNew);
    } else {
      auto predicate = isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
      better = arith::CmpIOp::create(b, loc, predicate, x, y);
    }
    Value none = s.equal(old[1], s.integer(-1, old[1].getType()));
    better = s.bitOr(better, none);
    Value place = arith::IndexCastOp::create(b, loc, old[1].getType(), at);
    return {s.select(better, term, old[0]), s.select(better, place, old[1])};
  }
  }
  llvm_unreachable("kind of reduction");
}
