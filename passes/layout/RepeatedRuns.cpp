//===- RepeatedRuns.cpp - loads of which neighbours share elements --------===//
#include "passes/layout/RepeatedRuns.h"

#include "passes/layout/AxisInfo.h"
#include "passes/layout/RunIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

std::optional<RepeatedRun> tk::repeatedRun(Value index, SmallVectorImpl<Value> &starts) {
  if (auto add = index.getDefiningOp<arith::AddIOp>())
    for (auto [part, base] :
         {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
      if (Value start = splatSource(base)) {
        starts.push_back(start);
        return repeatedRun(part, starts);
      }
  auto quotient = index.getDefiningOp<FloorDivOp>();
  if (!quotient)
    return std::nullopt;
  Value scalar = splatSource(quotient.getRhs());
  std::optional<int64_t> times = constantIndex(scalar ? scalar : quotient.getRhs());
  if (!times || *times < 2 || !llvm::isPowerOf2_64(*times))
    return std::nullopt;
  return RepeatedRun{quotient, *times};
}

std::optional<int64_t> tk::repeatsOfRun(Value index, int64_t length, AxisInfo &info,
                                        SmallVectorImpl<Value> &starts) {
  SmallVector<Value> outside, begins;
  std::optional<RepeatedRun> repeated = repeatedRun(index, outside);
  if (!repeated || length % repeated->times != 0 ||
      !isRun(repeated->quotient.getLhs(), begins, /*fromConstants=*/true) ||
      llvm::any_of(begins,
                   [&](Value begin) { return info.divisibilityOf(begin) % repeated->times != 0; }))
    return std::nullopt;
  starts = outside;
  OpBuilder builder(repeated->quotient);
  Location loc = repeated->quotient.getLoc();
  for (Value begin : begins)
    starts.push_back(
        FloorDivOp::create(builder, loc, begin.getType(), begin,
                           arith::ConstantIndexOp::create(builder, loc, repeated->times)));
  return repeated->times;
}

Value tk::quotientOfPlaces(Value index, AxisInfo &info) {
  auto type = cast<RankedTensorType>(index.getType());
  SmallVector<Value> starts;
  std::optional<int64_t> times = repeatsOfRun(index, type.getDimSize(0), info, starts);
  if (!times)
    return {};
  OpBuilder builder(index.getContext());
  builder.setInsertionPointAfterValue(index);
  Location loc = index.getLoc();
  Value places = IotaOp::create(builder, loc, type, IntegerAttr());
  auto divisor = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(type, builder.getIntegerAttr(type.getElementType(), *times)));
  Value all = FloorDivOp::create(builder, loc, type, places, divisor);
  for (Value start : starts) {
    Value spread = BroadcastOp::create(builder, loc, type, start, builder.getDenseI64ArrayAttr({}));
    all = arith::AddIOp::create(builder, loc, spread, all);
  }
  return all;
}
