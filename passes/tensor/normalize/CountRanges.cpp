//===- CountRanges.cpp - counts of the terms of ranges --------------------===//
//
// Part of tk-simplify. A mean over a range divides by a sum that counts the terms, of which each is
// a mask as a number. The ends of the range say how many there are:
//
//   tk.reduce [sum] ["k"] from(0) to(%N) {extui (%lo <= %k and %k < %hi)}
//     →  max(min(%N, %hi) - max(0, %lo), 0)
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/Simplify.h"

#include "passes/analysis/Conditions.h"
#include "passes/tensor/normalize/RangeEnds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

bool tk::countRange(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getKind(0) != ReduceKind::Sum)
    return false;
  auto number = reduce.getYield().getValues()[0].getDefiningOp<arith::ExtUIOp>();
  if (!number || !number.getIn().getType().isInteger(1))
    return false;
  SmallVector<Value> conditions;
  addParts<arith::AndIOp>(number.getIn(), conditions);
  Dependence varying(reduce.getBlock()->getArguments());
  SmallVector<RangeEnd> found;
  for (Value condition : conditions) {
    std::optional<RangeEnd> end = matchRangeEnd(reduce, condition, varying);
    if (!end || (end->value && readsTensor(end->value)))
      return false;
    found.push_back(*end);
  }
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  SmallVector<Value> begins(reduce.getLower()), ends(reduce.getUpper());
  for (const RangeEnd &end : found) {
    Value at = end.at.create(builder, loc, reduce.getBlock());
    Value &bound = (end.isBegin ? begins : ends)[end.position];
    bound = end.isBegin ? arith::MaxSIOp::create(builder, loc, bound, at).getResult()
                        : arith::MinSIOp::create(builder, loc, bound, at).getResult();
  }
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0), count;
  for (auto [begin, end] : llvm::zip_equal(begins, ends)) {
    Value length = arith::SubIOp::create(builder, loc, end, begin);
    length = arith::MaxSIOp::create(builder, loc, length, zero);
    length = arith::IndexCastOp::create(builder, loc, reduce.getResult(0).getType(), length);
    count = count ? arith::MulIOp::create(builder, loc, count, length).getResult() : length;
  }
  reduce.getResult(0).replaceAllUsesWith(count);
  reduce.erase();
  return true;
}
