//===- SquaredDistances.cpp - parts of sums of squares --------------------===//
//
// A sum of squares about a point that another reduction gives (a variance about its mean) would
// have to wait for all of that. About the mean m_p of a part's own n_p terms it does not:
//
//   sum_p of (x - g)^2 = sum_p of (x - m_p)^2 + n_p (m_p - g)^2        for any g,
//
// since the terms' distances from their mean sum up to 0. Nor has a part to be read twice: with the
// distances d = x - s from a sample s,
//
//   m_p = s + (sum_p of d) / n_p        sum_p of (x - m_p)^2 = sum_p of d^2 - (sum_p of d)^2 / n_p.
//
// The sample is the mean of the part's first k terms. Then (m_p - s)^2 is at most n_p / k times the
// terms' variance, whatever they are, so that the difference loses log2(n_p / k) bits at worst, and
// none where the terms are in no order: nothing depends on how large the mean is.
// Where parts meet, it is their sums t_p that matter, of which %g usually follows, too.
//
//   %v = reduce [sum] ["r"] from (0) to (%R) {(x[r] - %g)^2}
//     =>
//   %t, %q = tk.compute ["r.chunk"] in (..) {
//     s = (reduce from the first to the kth x[r]) / k
//     a = reduce x[r] - s;  b = reduce (x[r] - s)^2
//     reduce x[r], b - a (a / n) }
//   %v = reduce [sum] ["r.chunk"] {q[r.chunk] + n (t[r.chunk] / n - %g)^2}
//
//===----------------------------------------------------------------------===//
#include "passes/fusion/SplitReductions.h"

#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tk;

/// How many terms of a part the sample is the mean of: what a block reads at once.
static constexpr int64_t sampleLength = 64;

std::optional<SquaredDistance> tk::matchDistanceInTerm(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getKind(0) != ReduceKind::Sum)
    return std::nullopt;
  auto square = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  auto difference = square ? square.getLhs().getDefiningOp<arith::SubFOp>() : nullptr;
  if (!difference || square.getRhs() != square.getLhs() ||
      difference->getBlock() != reduce.getBlock())
    return std::nullopt;
  Dependence onIndices(reduce.getBlock()->getArguments());
  auto isPoint = [&](Value value) { return !onIndices.on(value); };
  SquaredDistance distance{difference.getLhs(), difference.getRhs()};
  if (isPoint(distance.term))
    std::swap(distance.term, distance.point);
  if (!isPoint(distance.point))
    return std::nullopt;
  return distance;
}

std::optional<SquaredDistance> tk::matchSquaredDistance(ReduceOp reduce) {
  std::optional<SquaredDistance> distance = matchDistanceInTerm(reduce);
  if (!distance || reduce.getNumIndices() != 1 ||
      distance->point.getParentBlock() == reduce.getBlock())
    return std::nullopt;
  return distance;
}

/// How many terms a part has, as a number of type `type`.
static Value termsOf(Value first, Value end, Type type, OpBuilder &builder, Location loc) {
  Value count = arith::SubIOp::create(builder, loc, end, first);
  count = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), count);
  return arith::SIToFPOp::create(builder, loc, type, count);
}

SplitDistance tk::splitSquaredDistance(ReduceOp reduce, ComputeOp compute, const Parts &parts) {
  SquaredDistance distance = *matchSquaredDistance(reduce);
  Location loc = reduce.getLoc();
  Type type = distance.term.getType();
  auto name = cast<StringAttr>(reduce.getIndexNames()[0]).getValue();
  Operation *partial = createPartial(
      reduce, compute, parts, {".sums", ".squares"},
      [&](OpBuilder &body, Value number, IRMapping &mapping) -> SmallVector<Value> {
        auto [first, end] = parts.boundsOf(number, body, loc);
        for (Value input : getInputs(reduce))
          if (input != distance.point)
            cloneSlice(body, input, compute.getBlock(), mapping);
        auto sumOf = [&](Value upper, Value point) -> Value {
          auto sum = ReduceOp::create(
              body, loc, ReduceKind::Sum, ArrayRef<StringRef>{name}, ValueRange{first},
              ValueRange{upper}, type,
              [&](OpBuilder &inner, Location, ValueRange indices) -> Value {
                IRMapping own = mapping;
                own.map(reduce.getIndex(0), indices.front());
                Value term = cloneSlice(inner, distance.term, reduce.getBlock(), own);
                return point ? arith::SubFOp::create(inner, loc, term, point).getResult() : term;
              });
          return sum.getResult(0);
        };
        Value length = arith::ConstantIndexOp::create(body, loc, sampleLength);
        Value sampleEnd = arith::AddIOp::create(body, loc, first, length);
        sampleEnd = arith::MinSIOp::create(body, loc, sampleEnd, end);
        Value sample = sumOf(sampleEnd, {});
        sample =
            arith::DivFOp::create(body, loc, sample, termsOf(first, sampleEnd, type, body, loc));
        Value shifted = sumOf(end, sample), sum = sumOf(end, {});
        mapping.map(distance.point, sample);
        auto about = cast<ReduceOp>(body.clone(*reduce, mapping));
        about.getLowerMutable()[0].set(first);
        about.getUpperMutable()[0].set(end);
        Value away =
            arith::DivFOp::create(body, loc, shifted, termsOf(first, end, type, body, loc));
        Value excess = arith::MulFOp::create(body, loc, shifted, away);
        Value squares = arith::SubFOp::create(body, loc, about.getResult(0), excess);
        Value zero = arith::ConstantOp::create(body, loc, body.getZeroAttr(type));
        squares = arith::MaximumFOp::create(body, loc, squares, zero);
        return {sum, squares};
      });
  OpBuilder builder(reduce);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  std::string chunkName = chunkNameOf(reduce, parts.how);
  auto combined = ReduceOp::create(
      builder, loc, ReduceKind::Sum, ArrayRef<StringRef>{chunkName}, ValueRange{zero},
      ValueRange{parts.count}, type, [&](OpBuilder &inner, Location, ValueRange indices) -> Value {
        SmallVector<Value> own(compute.getBlock()->getArguments());
        SmallVector<Value> at = withChunk(own, Value(indices.front()), parts.how);
        auto [first, end] = parts.boundsOf(indices.front(), inner, loc);
        Value sum = LoadOp::create(inner, loc, partial->getResult(0), at, Value());
        Value squares = LoadOp::create(inner, loc, partial->getResult(1), at, Value());
        Value count = termsOf(first, end, type, inner, loc);
        Value mean = arith::DivFOp::create(inner, loc, sum, count);
        Value away = arith::SubFOp::create(inner, loc, mean, distance.point);
        away = arith::MulFOp::create(inner, loc, away, away);
        away = arith::MulFOp::create(inner, loc, away, count);
        return arith::AddFOp::create(inner, loc, squares, away);
      });
  return {combined.getResult(0), cast<ComputeOp>(partial)};
}

bool tk::replaceBySums(ComputeOp partial, ComputeOp distances) {
  ScalarEquality equality;
  if (!equality.equal(partial.getExtents(), distances.getExtents()))
    return false;
  for (auto [a, b] :
       llvm::zip_equal(partial.getBlock()->getArguments(), distances.getBlock()->getArguments()))
    equality.identify(a, b);
  if (!equality.equal(partial.getYield().getValues(),
                      distances.getYield().getValues().take_front()))
    return false;
  if (partial->isBeforeInBlock(distances)) {
    IRRewriter rewriter(partial->getContext());
    if (failed(moveOperationDependencies(rewriter, distances, partial)))
      return false;
    distances->moveBefore(partial);
  }
  partial->getResult(0).replaceAllUsesWith(distances->getResult(0));
  partial.erase();
  return true;
}
