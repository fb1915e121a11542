//===- SquaredDistances.cpp - parts of sums of squares --------------------===//
//
// A sum of squares about a value that another reduction computes (a variance about its mean) would
// have to wait for that reduction. About the mean m_p of a part's own n_p elements it need not
// wait:
//
//   sum_p of (x - g)^2 = sum_p of (x - m_p)^2 + n_p (m_p - g)^2        for any g,
//
// because the elements' distances from their mean add up to 0. The part need not be read twice
// either. With the distances d = x - s from a sample s,
//
//   m_p = s + (sum_p of d) / n_p        sum_p of (x - m_p)^2 = sum_p of d^2 - (sum_p of d)^2 / n_p.
//
// The sample is the mean of the part's first k elements. (m_p - s)^2 is then at most n_p / k times
// the variance of the elements, for all values. The difference therefore loses at most log2(n_p /
// k) bits, and none if the elements are in no order. The magnitude of the mean does not matter. The
// parts are combined through their sums t_p, from which %g usually follows, too.
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
#include "passes/machine/limits/Splits.h"
#include "passes/tensor/split/SplitReductions.h"

#include "passes/analysis/ScalarExpr.h"
#include "passes/tensor/normalize/Simplify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tk;

using namespace limits::squared_distances;

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
  if (!distance || distance->point.getParentBlock() == reduce.getBlock())
    return std::nullopt;
  return distance;
}

namespace {
/// The terms that a sum takes in: the bounds of its indices.
struct Terms {
  SmallVector<Value> lower, upper;

  /// How many values the index at `i` has.
  Value lengthOf(unsigned i, OpBuilder &builder, Location loc) const {
    return arith::SubIOp::create(builder, loc, upper[i], lower[i]);
  }
  /// How many terms there are. Of several indices one may have no values, while there are parts of
  /// another.
  Value count(OpBuilder &builder, Location loc) const {
    Value all = lengthOf(0, builder, loc);
    for (unsigned i = 1; i < lower.size(); ++i)
      all = arith::MulIOp::create(builder, loc, all, lengthOf(i, builder, loc));
    return all;
  }
  /// The same as a number of type `type`, at least 1.
  Value countAs(Type type, OpBuilder &builder, Location loc) const {
    Value all = count(builder, loc);
    if (lower.size() > 1)
      all = arith::MaxSIOp::create(builder, loc, all,
                                   arith::ConstantIndexOp::create(builder, loc, 1));
    all = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), all);
    return arith::SIToFPOp::create(builder, loc, type, all);
  }
  /// The first few of them: neighbours along the last index.
  Terms sample(OpBuilder &builder, Location loc) const {
    Terms few = *this;
    for (unsigned i = 0; i < lower.size(); ++i) {
      int64_t most = i + 1 == lower.size() ? sampleLength : 1;
      Value length = arith::ConstantIndexOp::create(builder, loc, most);
      Value end = arith::AddIOp::create(builder, loc, lower[i], length);
      few.upper[i] = arith::MinSIOp::create(builder, loc, end, upper[i]);
    }
    return few;
  }
};
} // namespace

/// What part `number` of the sum takes in, where `mapping` knows the bounds of the whole.
static Terms termsOfPart(ReduceOp reduce, const Parts &parts, Value number, IRMapping &mapping,
                         OpBuilder &builder, Location loc) {
  Terms terms;
  auto [first, end] = parts.boundsOf(number, builder, loc);
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i) {
    bool isDivided = i == parts.how.position;
    terms.lower.push_back(isDivided ? first : mapping.lookupOrDefault(reduce.getLower()[i]));
    terms.upper.push_back(isDivided ? end : mapping.lookupOrDefault(reduce.getUpper()[i]));
  }
  return terms;
}

SplitDistance tk::splitSquaredDistance(ReduceOp reduce, ComputeOp compute, const Parts &parts) {
  SquaredDistance distance = *matchSquaredDistance(reduce);
  Location loc = reduce.getLoc();
  Type type = distance.term.getType();
  SmallVector<StringRef> names;
  for (Attribute name : reduce.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  Operation *partial = createPartial(
      reduce, compute, parts, {".sums", ".squares"},
      [&](OpBuilder &body, Value number, IRMapping &mapping) -> SmallVector<Value> {
        for (Value input : getInputs(reduce))
          if (input != distance.point)
            cloneSlice(body, input, compute.getBlock(), mapping);
        Terms terms = termsOfPart(reduce, parts, number, mapping, body, loc);
        auto inOrder = [&](ReduceOp sum) -> Value {
          if (parts.how.isAlong)
            moveIndex(sum, parts.how.position, 0);
          return sum.getResult(0);
        };
        auto sumOf = [&](const Terms &some, Value point) -> Value {
          return inOrder(ReduceOp::create(
              body, loc, ReduceKind::Sum, names, some.lower, some.upper, type,
              [&](OpBuilder &inner, Location, ValueRange indices) -> Value {
                IRMapping own = mapping;
                own.map(reduce.getBlock()->getArguments(), indices);
                Value term = cloneSlice(inner, distance.term, reduce.getBlock(), own);
                return point ? arith::SubFOp::create(inner, loc, term, point).getResult() : term;
              }));
        };
        Terms few = terms.sample(body, loc);
        Value sample = sumOf(few, {});
        sample = arith::DivFOp::create(body, loc, sample, few.countAs(type, body, loc));
        Value shifted = sumOf(terms, sample), sum = sumOf(terms, {});
        mapping.map(distance.point, sample);
        auto about = cast<ReduceOp>(body.clone(*reduce, mapping));
        about.getLowerMutable().assign(terms.lower);
        about.getUpperMutable().assign(terms.upper);
        Value away = arith::DivFOp::create(body, loc, shifted, terms.countAs(type, body, loc));
        Value excess = arith::MulFOp::create(body, loc, shifted, away);
        Value squares = arith::SubFOp::create(body, loc, inOrder(about), excess);
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
        IRMapping same;
        Terms terms = termsOfPart(reduce, parts, indices.front(), same, inner, loc);
        Value sum = LoadOp::create(inner, loc, partial->getResult(0), at, Value());
        Value squares = LoadOp::create(inner, loc, partial->getResult(1), at, Value());
        Value count = terms.countAs(type, inner, loc);
        Value mean = arith::DivFOp::create(inner, loc, sum, count);
        Value away = arith::SubFOp::create(inner, loc, mean, distance.point);
        away = arith::MulFOp::create(inner, loc, away, away);
        away = arith::MulFOp::create(inner, loc, away, count);
        Value all = arith::AddFOp::create(inner, loc, squares, away);
        if (reduce.getNumIndices() == 1)
          return all;
        Value none = arith::ConstantIndexOp::create(inner, loc, 0);
        Value some = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::sgt,
                                           terms.count(inner, loc), none);
        Value nothing = arith::ConstantOp::create(inner, loc, inner.getZeroAttr(type));
        return arith::SelectOp::create(inner, loc, some, all, nothing);
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
