//===- MaskRanges.cpp - masks of which ranges are known -------------------===//
#include "passes/analysis/MaskRanges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

static Value createWithin(OpBuilder &builder, Location loc, Value index, Value begin, Value end) {
  Value from =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, index, begin).getResult();
  Value to = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, index, end).getResult();
  return arith::AndIOp::create(builder, loc, from, to);
}

Value tk::createMask(OpBuilder &builder, Location loc, const MaskRanges &ranges) {
  Value all = createWithin(builder, loc, ranges.index, ranges.allBegin, ranges.allEnd);
  Value some = createWithin(builder, loc, ranges.index, ranges.begin, ranges.end);
  some = arith::AndIOp::create(builder, loc, some, ranges.holds);
  return arith::OrIOp::create(builder, loc, all, some);
}

/// Reads `index >= begin and index < end`.
static bool matchWithin(Value condition, Value &index, Value &begin, Value &end) {
  auto both = condition.getDefiningOp<arith::AndIOp>();
  auto from = both ? both.getLhs().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  auto to = both ? both.getRhs().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!from || !to || from.getPredicate() != arith::CmpIPredicate::sge ||
      to.getPredicate() != arith::CmpIPredicate::slt || from.getLhs() != to.getLhs())
    return false;
  index = from.getLhs();
  begin = from.getRhs();
  end = to.getRhs();
  return true;
}

std::optional<MaskRanges> tk::matchMask(Value condition) {
  auto either = condition.getDefiningOp<arith::OrIOp>();
  auto some = either ? either.getRhs().getDefiningOp<arith::AndIOp>() : arith::AndIOp();
  MaskRanges ranges;
  Value index;
  if (!some || !matchWithin(either.getLhs(), ranges.index, ranges.allBegin, ranges.allEnd) ||
      !matchWithin(some.getLhs(), index, ranges.begin, ranges.end) || index != ranges.index)
    return std::nullopt;
  ranges.holds = some.getRhs();
  return ranges;
}
