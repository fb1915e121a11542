//===- DecayWeights.cpp - weights that decay with distance ----------------===//
//
// The algorithm and its restrictions are in FormRecurrences.cpp.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/DecayWeights.h"

#include "passes/analysis/ScanDecays.h"
#include "passes/analysis/ScanPosition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

namespace {
/// `index` and `place`, so many times each, and a number.
struct LinearForm {
  int64_t index = 0, place = 0, number = 0;
};
} // namespace

static std::optional<LinearForm> linearOf(Value value, Value index, Value place) {
  if (value == index)
    return LinearForm{1, 0, 0};
  if (value == place)
    return LinearForm{0, 1, 0};
  if (std::optional<int64_t> number = getConstantIntValue(value))
    return LinearForm{0, 0, *number};
  APFloat real(0.0);
  if (matchPattern(value, m_ConstantFloat(&real)) && real.isInteger())
    return LinearForm{0, 0, static_cast<int64_t>(real.convertToDouble())};
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::SIToFPOp, arith::IndexCastOp>(op))
    return linearOf(op->getOperand(0), index, place);
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::AddFOp, arith::SubFOp>(op))
    return std::nullopt;
  std::optional<LinearForm> a = linearOf(op->getOperand(0), index, place);
  std::optional<LinearForm> b = linearOf(op->getOperand(1), index, place);
  if (!a || !b)
    return std::nullopt;
  const int64_t sign = isa<arith::SubIOp, arith::SubFOp>(op) ? -1 : 1;
  return LinearForm{a->index + sign * b->index, a->place + sign * b->place,
                    a->number + sign * b->number};
}

/// `number` as a multiple of the distance, and what it is more.
std::optional<DecayWeights::Distance> DecayWeights::distanceOf(Value number) {
  std::optional<LinearForm> form = linearOf(number, reduce.getIndex(0), place);
  if (!form || form->index == 0 || form->index != -form->place)
    return std::nullopt;
  return Distance{isBackward ? form->index : form->place, form->number};
}

bool DecayWeights::match(Value term, bool isIncluded, bool needsWeight) {
  if (!collect(term, false) || (needsWeight && weights.empty()) ||
      (testsDistance && !hasDistance()))
    return false;
  // The nearest term would have a quotient of powers as its weight.
  return llvm::none_of(weights, [&](const Weight &weight) {
    const int64_t steps = isIncluded && !hasDistance() ? 0 : weight.distance.steps;
    return weight.base && steps + weight.distance.offset < 0;
  });
}

/// Takes the distance as a factor.
bool DecayWeights::matchDistance(Value value) {
  std::optional<Distance> distance = distanceOf(value);
  if (!distance || distance->offset != 0 || std::abs(distance->steps) != 1)
    return false;
  isNegated = distance->steps < 0;
  return ++numDistances == 1;
}

/// Is `condition` that the distance is not 0?
bool DecayWeights::isDistanceTest(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::ne ||
      !isConstantIntValue(compare.getRhs(), 0))
    return false;
  std::optional<Distance> distance = distanceOf(compare.getLhs());
  return distance && distance->offset == 0;
}

bool DecayWeights::collect(Value value, bool isDivisor) {
  if (!onPlace.on(value)) {
    elements.push_back({value, isDivisor});
    return true;
  }
  if (!onIndex.on(value)) {
    ofPlace.push_back({value, isDivisor});
    return true;
  }
  // Products alone need factors of a narrower type.
  if (auto wide = value.getDefiningOp<arith::ExtFOp>())
    if (auto rounded = wide.getIn().getDefiningOp<arith::TruncFOp>();
        rounded && rounded->hasAttr(roundedFactorAttr) &&
        rounded.getIn().getType() == wide.getType())
      return collect(rounded.getIn(), isDivisor);
  if (auto choice = value.getDefiningOp<arith::SelectOp>();
      choice && condition && choice.getCondition() == condition && isZero(choice.getFalseValue()))
    return !isDivisor && collect(choice.getTrueValue(), isDivisor);
  if (auto choice = value.getDefiningOp<arith::SelectOp>();
      choice && isZero(choice.getFalseValue()) && isDistanceTest(choice.getCondition())) {
    testsDistance = true;
    return !isDivisor && collect(choice.getTrueValue(), isDivisor);
  }
  if (auto product = value.getDefiningOp<arith::MulFOp>())
    return collect(product.getLhs(), isDivisor) && collect(product.getRhs(), isDivisor);
  if (auto quotient = value.getDefiningOp<arith::DivFOp>())
    return collect(quotient.getLhs(), isDivisor) && collect(quotient.getRhs(), !isDivisor);
  return !isDivisor && (matchDistance(value) || matchWeight(value));
}

bool DecayWeights::matchWeight(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<math::ExpOp, math::Exp2Op>(op))
    return matchExponential(op);
  auto power = dyn_cast_or_null<math::PowFOp>(op);
  if (!power || onIndex.on(power.getLhs()) || onPlace.on(power.getLhs()))
    return false;
  std::optional<Distance> distance = distanceOf(power.getRhs());
  if (!distance || distance->steps < 1)
    return false;
  weights.push_back({power, power.getLhs(), *distance, {}, {}});
  return true;
}

bool DecayWeights::matchExponential(Operation *op) {
  SmallVector<Addend> addends, own;
  if (!collectAddends(op->getOperand(0), {}, addends) || !pairAddends(addends, own))
    return false;
  weights.push_back({op, Value(), {}, addends, own});
  return true;
}

/// Adds the addends of an exponent, each with the sign and the factors around it.
bool DecayWeights::collectAddends(Value value, Addend around, SmallVectorImpl<Addend> &addends) {
  Operation *op = value.getDefiningOp();
  around.distance = distanceOf(value);
  if (around.distance || !onIndex.on(value) || !onPlace.on(value)) {
    around.value = value;
    addends.push_back(around);
    return true;
  }
  if (!op)
    return false;
  Addend negated = around;
  negated.isNegative = !around.isNegative;
  if (isa<arith::NegFOp>(op))
    return collectAddends(op->getOperand(0), negated, addends);
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    return collectAddends(op->getOperand(0), around, addends) &&
           collectAddends(op->getOperand(1), isa<arith::SubFOp>(op) ? negated : around, addends);
  auto isFixed = [&](Value v) { return !onIndex.on(v) && !onPlace.on(v); };
  for (unsigned side : {0, 1}) {
    const bool isQuotient = isa<arith::DivFOp>(op);
    if ((!isQuotient && !isa<arith::MulFOp>(op)) || (isQuotient && side == 0) ||
        !isFixed(op->getOperand(side)))
      continue;
    around.factors.push_back({op->getOperand(side), isQuotient});
    return collectAddends(op->getOperand(1 - side), around, addends);
  }
  return false;
}

/// Leaves the values at the place, if each has one at the index that it is taken from, and moves
/// other values at the index to `elements`.
bool DecayWeights::pairAddends(SmallVectorImpl<Addend> &addends,
                               SmallVectorImpl<Addend> &elements) {
  SmallVector<Addend> kept;
  for (const Addend &addend : addends)
    (addend.distance || onPlace.on(addend.value) ? kept : elements).push_back(addend);
  ScalarEquality equality;
  equality.identify(place, reduce.getIndex(0));
  auto areEqual = [&](auto both) {
    const auto &[a, b] = both;
    return a.isDivisor == b.isDivisor && equality.equal(a.value, b.value);
  };
  for (const Addend &addend : kept) {
    if (addend.distance)
      continue;
    auto *pair = llvm::find_if(elements, [&](const Addend &other) {
      return other.isNegative != addend.isNegative &&
             other.factors.size() == addend.factors.size() &&
             llvm::all_of(llvm::zip_equal(addend.factors, other.factors), areEqual) &&
             equality.equal(addend.value, other.value);
    });
    if (pair == elements.end())
      return false;
    elements.erase(pair);
  }
  addends = kept;
  return true;
}

/// `value` where the index and the place are `index`.
Value DecayWeights::cloneAt(OpBuilder &at, Value value, Value index) {
  IRMapping mapping(outer);
  mapping.map(reduce.getIndex(0), index);
  mapping.map(place, index);
  return cloneFrom(at, value, place.getOwner()->getParentOp(), mapping);
}

Value DecayWeights::scaled(OpBuilder &at, const Addend &addend, Value value) {
  Location loc = reduce.getLoc();
  for (const Factor &factor : addend.factors) {
    Value own = cloneAt(at, factor.value, reduce.getIndex(0));
    value = factor.isDivisor ? arith::DivFOp::create(at, loc, value, own).getResult()
                             : arith::MulFOp::create(at, loc, value, own).getResult();
  }
  return addend.isNegative ? arith::NegFOp::create(at, loc, value).getResult() : value;
}

/// What the running sum that `load` reads at `place` has more at `to` than at `before`: its term.
/// Null if it reads something else.
static Value termOfRunningSum(OpBuilder &at, LoadOp load, ValueRange indices, Value place,
                              bool isBackward, Value to, Value before) {
  auto producer = load ? load.getTensor().getDefiningOp<ComputeOp>() : ComputeOp();
  if (!producer || load.getPad())
    return {};
  const unsigned number = cast<OpResult>(load.getTensor()).getResultNumber();
  IRMapping mapping;
  for (auto [n, index] : llvm::zip_equal(producer.getIndicesOf(number), indices))
    mapping.map(producer.getIndex(n), index);
  Value stored = producer.getYield().getValues()[number];
  if (auto same = stored.getDefiningOp<LoadOp>()) {
    SmallVector<Value> own;
    for (Value index : same.getIndices())
      own.push_back(mapping.lookupOrNull(index));
    return llvm::is_contained(own, Value())
               ? Value()
               : termOfRunningSum(at, same, own, place, isBackward, to, before);
  }
  auto scan = stored.getDefiningOp<ScanOp>();
  if (!scan || scan.getKind() != ReduceKind::Sum || hasDecays(scan) ||
      !isConstantIntValue(scan.getLower(), 0))
    return {};
  std::optional<IndexOrMirror> position = getScanPosition(scan, producer);
  if (!position || position->isMirrored || mapping.lookupOrNull(position->index) != place)
    return {};
  for (Value index : indices)
    if (index != place && Dependence(ValueRange{place}).on(index))
      return {};
  mapping.map(scan.getBlock()->getArgument(0), isBackward ? before : to);
  Value term = cloneFrom(at, scan.getYield().getValues()[0], producer, mapping);
  return isBackward ? arith::NegFOp::create(at, load.getLoc(), term).getResult() : term;
}

/// An addend of the exponent of one step.
Value DecayWeights::stepOf(OpBuilder &at, const Addend &addend, Value to, Value before) {
  auto load = addend.value.getDefiningOp<LoadOp>();
  Value term =
      load ? termOfRunningSum(at, load, load.getIndices(), place, isBackward, to, before) : Value();
  if (!term)
    term = arith::SubFOp::create(at, reduce.getLoc(), cloneAt(at, addend.value, to),
                                 cloneAt(at, addend.value, before));
  return scaled(at, addend, term);
}

Value DecayWeights::powerOf(OpBuilder &at, const Weight &weight, int64_t exponent) {
  if (exponent == 0)
    return {};
  Value base = cloneAt(at, weight.base, reduce.getIndex(0));
  if (exponent == 1)
    return base;
  Value number = arith::ConstantOp::create(
      at, reduce.getLoc(), at.getFloatAttr(base.getType(), static_cast<double>(exponent)));
  return math::PowFOp::create(at, reduce.getLoc(), base, number);
}

/// A weight of as many steps of distances as `steps` says, and of one step of other values, if
/// `before` is another place than `to`; null if it is 1. With an index also of the value there.
Value DecayWeights::weightOf(OpBuilder &at, const Weight &weight,
                             llvm::function_ref<int64_t(Distance)> steps, Value to, Value before,
                             Value index) {
  Location loc = reduce.getLoc();
  if (weight.base)
    return powerOf(at, weight, steps(weight.distance));
  Value sum;
  auto add = [&](Value own) {
    sum = sum ? arith::AddFOp::create(at, loc, sum, own).getResult() : own;
  };
  for (const Addend &addend : weight.addends) {
    Value own;
    if (!addend.distance) {
      own = to == before ? Value() : stepOf(at, addend, to, before);
    } else if (int64_t number = steps(*addend.distance)) {
      own = arith::ConstantOp::create(
          at, loc, at.getFloatAttr(weight.op->getResult(0).getType(), static_cast<double>(number)));
      own = scaled(at, addend, own);
    }
    if (own)
      add(own);
  }
  for (const Addend &addend : weight.elements)
    if (index)
      add(scaled(at, addend, cloneAt(at, addend.value, index)));
  if (!sum)
    return {};
  Operation *exponential = at.clone(*weight.op);
  exponential->setOperand(0, sum);
  return exponential->getResult(0);
}

Value DecayWeights::weightAt(OpBuilder &at, unsigned n, Value to, Value index) {
  IRMapping mapping(outer);
  mapping.map(reduce.getIndex(0), index);
  mapping.map(place, to);
  return cloneFrom(at, getWeight(n), place.getOwner()->getParentOp(), mapping);
}

Value DecayWeights::weightBetween(OpBuilder &at, unsigned n, Value to, Value before) {
  const Weight &weight = weights[n];
  Location loc = reduce.getLoc();
  auto stepsOf = [&](Distance distance) -> Value {
    Value number = isBackward ? arith::SubIOp::create(at, loc, before, to)
                              : arith::SubIOp::create(at, loc, to, before);
    if (distance.steps != 1)
      number = arith::MulIOp::create(at, loc, number,
                                     arith::ConstantIndexOp::create(at, loc, distance.steps));
    number = arith::IndexCastOp::create(at, loc, at.getI64Type(), number);
    return arith::SIToFPOp::create(at, loc, getWeight(n).getType(), number);
  };
  if (weight.base) {
    Value base = cloneAt(at, weight.base, before);
    return math::PowFOp::create(at, loc, base, stepsOf(weight.distance));
  }
  Value sum;
  for (const Addend &addend : weight.addends) {
    Value own = addend.distance ? stepsOf(*addend.distance)
                                : arith::SubFOp::create(at, loc, cloneAt(at, addend.value, to),
                                                        cloneAt(at, addend.value, before))
                                      .getResult();
    own = scaled(at, addend, own);
    sum = sum ? arith::AddFOp::create(at, loc, sum, own).getResult() : own;
  }
  if (!sum)
    return {};
  Operation *exponential = at.clone(*weight.op);
  exponential->setOperand(0, sum);
  return exponential->getResult(0);
}

Value DecayWeights::ownWeight(OpBuilder &at, unsigned n, Value index) {
  return weightOf(
      at, weights[n], [](Distance distance) { return distance.offset; }, index, index, index);
}

Value DecayWeights::termAt(OpBuilder &at, Value index, Value seenFrom) {
  Location loc = reduce.getLoc();
  Value term;
  auto multiply = [&](Value factor) {
    if (factor)
      term = term ? arith::MulFOp::create(at, loc, term, factor).getResult() : factor;
  };
  for (const Factor &factor : elements)
    if (!factor.isDivisor)
      multiply(cloneAt(at, factor.value, index));
  const bool isApart = index != seenFrom;
  for (const Weight &weight : weights)
    multiply(weightOf(
        at, weight,
        [&](Distance distance) { return distance.offset + (isApart ? distance.steps : 0); },
        seenFrom, index, index));
  Type type = reduce.getResult(0).getType();
  if (!term)
    term = arith::ConstantOp::create(at, loc, at.getFloatAttr(type, 1.0));
  for (const Factor &factor : elements)
    if (factor.isDivisor)
      term = arith::DivFOp::create(at, loc, term, cloneAt(at, factor.value, index));
  return term;
}

Value DecayWeights::decayAt(OpBuilder &at, Value to, Value before) {
  Value decay;
  for (const Weight &weight : weights) {
    Value own = weightOf(at, weight, [](Distance distance) { return distance.steps; }, to, before);
    if (own)
      decay = decay ? arith::MulFOp::create(at, reduce.getLoc(), decay, own).getResult() : own;
  }
  return decay;
}

Value DecayWeights::withFactors(OpBuilder &at, Value sum) {
  for (const Factor &factor : ofPlace) {
    IRMapping mapping;
    Value own = cloneSlice(at, factor.value, reduce.getBlock(), mapping);
    sum = factor.isDivisor ? arith::DivFOp::create(at, reduce.getLoc(), sum, own).getResult()
                           : arith::MulFOp::create(at, reduce.getLoc(), sum, own).getResult();
  }
  return isNegated ? arith::NegFOp::create(at, reduce.getLoc(), sum).getResult() : sum;
}
