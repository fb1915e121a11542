//===- SquaredDistances.cpp - parts of sums of squares --------------------===//
//
// A sum of squares about a point that another reduction gives (a variance about its mean) would
// have to wait for all of that. About the mean m_p of a part's own n_p terms it does not:
//
//   sum_p of (x - g)^2 = sum_p of (x - m_p)^2 + n_p (m_p - g)^2        for any g,
//
// since the terms' distances from their mean sum up to 0. Nothing cancels, however large the mean.
//
//   %v = reduce [sum] ["r"] from (0) to (%R) {(x[r] - %g)^2}
//     =>
//   %m, %q = tk.compute ["r.chunk"] in (..) {m = (reduce x[r]) / n;  reduce (x[r] - m)^2}
//   %v = reduce [sum] ["r.chunk"] {q[r.chunk] + n (m[r.chunk] - %g)^2}
//
//===----------------------------------------------------------------------===//
#include "passes/fusion/SplitReductions.h"

#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

std::optional<SquaredDistance> tk::matchSquaredDistance(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getKind(0) != ReduceKind::Sum || reduce.getNumIndices() != 1)
    return std::nullopt;
  auto square = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  auto difference = square ? square.getLhs().getDefiningOp<arith::SubFOp>() : nullptr;
  if (!difference || square.getRhs() != square.getLhs() ||
      difference->getBlock() != reduce.getBlock())
    return std::nullopt;
  auto isPoint = [&](Value value) { return !Dependence(reduce.getIndex(0)).on(value); };
  SquaredDistance distance{difference.getLhs(), difference.getRhs()};
  if (isPoint(distance.term))
    std::swap(distance.term, distance.point);
  if (!isPoint(distance.point) || distance.point.getParentBlock() == reduce.getBlock())
    return std::nullopt;
  return distance;
}

/// How many terms a part has, as a number of type `type`.
static Value termsOf(Value first, Value end, Type type, OpBuilder &builder, Location loc) {
  Value count = arith::SubIOp::create(builder, loc, end, first);
  count = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), count);
  return arith::SIToFPOp::create(builder, loc, type, count);
}

Value tk::splitSquaredDistance(ReduceOp reduce, ComputeOp compute, const Parts &parts) {
  SquaredDistance distance = *matchSquaredDistance(reduce);
  Location loc = reduce.getLoc();
  Type type = distance.term.getType();
  auto name = cast<StringAttr>(reduce.getIndexNames()[0]).getValue();
  Operation *partial = createPartial(
      reduce, compute, parts, {".means", ".squares"},
      [&](OpBuilder &body, Value number, IRMapping &mapping) -> SmallVector<Value> {
        auto [first, end] = parts.boundsOf(number, body, loc);
        for (Value input : getInputs(reduce))
          if (input != distance.point)
            cloneSlice(body, input, compute.getBlock(), mapping);
        auto sum = ReduceOp::create(
            body, loc, ReduceKind::Sum, ArrayRef<StringRef>{name}, ValueRange{first},
            ValueRange{end}, type, [&](OpBuilder &inner, Location, ValueRange indices) {
              IRMapping own = mapping;
              own.map(reduce.getIndex(0), indices.front());
              return cloneSlice(inner, distance.term, reduce.getBlock(), own);
            });
        Value mean = arith::DivFOp::create(body, loc, sum.getResult(0),
                                           termsOf(first, end, type, body, loc));
        mapping.map(distance.point, mean);
        auto squares = cast<ReduceOp>(body.clone(*reduce, mapping));
        squares.getLowerMutable()[0].set(first);
        squares.getUpperMutable()[0].set(end);
        return {mean, squares.getResult(0)};
      });
  OpBuilder builder(reduce);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  std::string chunkName = chunkNameOf(reduce);
  auto combined = ReduceOp::create(
      builder, loc, ReduceKind::Sum, ArrayRef<StringRef>{chunkName}, ValueRange{zero},
      ValueRange{parts.count}, type, [&](OpBuilder &inner, Location, ValueRange indices) -> Value {
        SmallVector<Value> own(compute.getBlock()->getArguments());
        SmallVector<Value> at = withChunk(own, Value(indices.front()), parts.how);
        auto [first, end] = parts.boundsOf(indices.front(), inner, loc);
        Value mean = LoadOp::create(inner, loc, partial->getResult(0), at, Value());
        Value squares = LoadOp::create(inner, loc, partial->getResult(1), at, Value());
        Value away = arith::SubFOp::create(inner, loc, mean, distance.point);
        away = arith::MulFOp::create(inner, loc, away, away);
        away = arith::MulFOp::create(inner, loc, away, termsOf(first, end, type, inner, loc));
        return arith::AddFOp::create(inner, loc, squares, away);
      });
  return combined.getResult(0);
}
