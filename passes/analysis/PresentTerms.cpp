//===- PresentTerms.cpp - terms that a mask leaves out --------------------===//
//
// A weight is an exponential of a score. It is masked where the score is the -inf branch of an
// `if`. A term of a sum that has such a weight as a factor is absent there. The condition decides,
// and not the value of the weight: a weight that is too small for its type is present.
//
// The score, the weight and the product may be statements of their own. A condition is followed
// through loads of statements' results, and is written out anew where the sum is.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/PresentTerms.h"

#include "dialects/tk/TkScheduleOps.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/TileReductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tk {
namespace {

/// What a value is asked for.
enum class Role { Score, Weight };

class PresenceBuilder {
public:
  explicit PresenceBuilder(Conditions wanted) : wanted(wanted) {}

  /// The condition under which the term `value` of a sum exists, at `builder`; null if it always
  /// does.
  Value ofTerm(OpBuilder &builder, Value value) {
    conditions.clear();
    return of(builder, value, Role::Weight);
  }

private:
  /// The condition under which `value` is not masked, at `builder`; null if it never is.
  Value of(OpBuilder &builder, Value value, Role role);
  Value compute(OpBuilder &builder, Value value, Role role);
  Value ofScore(OpBuilder &builder, Operation *op);
  Value ofWeight(OpBuilder &builder, Operation *op);
  Value ofChoice(OpBuilder &builder, arith::SelectOp select, Role role);
  Value ofLoad(OpBuilder &builder, LoadOp load, Role role);
  bool isExponential(Value value);
  bool computeIsExponential(Operation *op);

  Conditions wanted;
  /// Values are shared: of those of one term, and of the statements that it reads.
  DenseMap<std::pair<Value, int>, Value> conditions;
  DenseMap<Value, bool> exponentials;
  /// By result of a statement: its condition in the statement's body.
  DenseMap<std::pair<Value, int>, Value> known;
};

} // namespace

static Value both(OpBuilder &builder, Location loc, Value a, Value b) {
  return a && b ? arith::AndIOp::create(builder, loc, a, b).getResult() : a ? a : b;
}

/// Is a reduction or a scan of `producer` needed to compute `value`?
static bool hasReduction(Value value, ComputeOp producer) {
  return llvm::any_of(getSlice(value, producer.getBlock()),
                      [](Operation *op) { return op->getNumRegions() > 0; });
}

/// Lets the copies of what `value` loads in `producer` be outside of their tensors.
static void padReads(Value value, ComputeOp producer, const IRMapping &copies) {
  for (Operation *op : getSlice(value, producer.getBlock()))
    if (auto load = dyn_cast<LoadOp>(op); load && !load.getPad()) {
      auto copy = copies.lookup(load.getResult()).getDefiningOp<LoadOp>();
      OpBuilder builder(copy);
      copy.getPadMutable().assign(
          arith::ConstantOp::create(builder, copy.getLoc(), builder.getZeroAttr(copy.getType())));
    }
}

static Value constant(OpBuilder &builder, Location loc, bool value) {
  return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
}

Value PresenceBuilder::of(OpBuilder &builder, Value value, Role role) {
  auto found = conditions.find({value, int(role)});
  if (found != conditions.end())
    return found->second;
  Value condition = compute(builder, value, role);
  conditions[{value, int(role)}] = condition;
  return condition;
}

Value PresenceBuilder::compute(OpBuilder &builder, Value value, Role role) {
  if (role == Role::Score && isNegativeInfinity(value))
    return constant(builder, value.getLoc(), false);
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (auto load = dyn_cast<LoadOp>(op))
    return ofLoad(builder, load, role);
  if (isa<arith::ExtFOp>(op))
    return of(builder, op->getOperand(0), role);
  if (isa<arith::TruncFOp>(op)) // saturated, where that has 8 bits
    return of(builder, stripClamps(op->getOperand(0), op->getResult(0).getType()), role);
  return role == Role::Score ? ofScore(builder, op) : ofWeight(builder, op);
}

Value PresenceBuilder::ofScore(OpBuilder &builder, Operation *op) {
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return ofChoice(builder, select, Role::Score);
  // -inf and a finite number are -inf.
  if (isa<arith::AddFOp>(op))
    return both(builder, op->getLoc(), of(builder, op->getOperand(0), Role::Score),
                of(builder, op->getOperand(1), Role::Score));
  if (isa<arith::SubFOp>(op))
    return of(builder, op->getOperand(0), Role::Score);
  return {};
}

/// Of both values of a choice, the one that is taken.
Value PresenceBuilder::ofChoice(OpBuilder &builder, arith::SelectOp select, Role role) {
  Value ifTrue = of(builder, select.getTrueValue(), role);
  Value ifFalse = of(builder, select.getFalseValue(), role);
  if (!ifTrue && !ifFalse)
    return {};
  Location loc = select.getLoc();
  if (!ifTrue)
    ifTrue = constant(builder, loc, true);
  if (!ifFalse)
    ifFalse = constant(builder, loc, true);
  return arith::SelectOp::create(builder, loc, select.getCondition(), ifTrue, ifFalse);
}

/// Is `value` computed from an exponential that is no weight under a maximum, as those of gradients
/// are, through products?
bool PresenceBuilder::isExponential(Value value) {
  auto [place, isNew] = exponentials.try_emplace(value, false);
  if (!isNew)
    return place->second;
  const bool result = computeIsExponential(value.getDefiningOp());
  exponentials[value] = result;
  return result;
}

bool PresenceBuilder::computeIsExponential(Operation *op) {
  if (!op)
    return false;
  if (auto load = dyn_cast<LoadOp>(op)) {
    auto producer = load.getTensor().getDefiningOp<ComputeOp>();
    unsigned r = producer ? cast<OpResult>(load.getTensor()).getResultNumber() : 0;
    return producer && isExponential(producer.getYield().getValues()[r]);
  }
  if (isa<math::ExpOp, math::Exp2Op>(op))
    return true;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isZero(select.getFalseValue()) && isExponential(select.getTrueValue());
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::NegFOp, arith::DivFOp, DivOrZeroOp>(op))
    return isExponential(op->getOperand(0));
  if (isa<arith::MulFOp>(op))
    return isExponential(op->getOperand(0)) || isExponential(op->getOperand(1));
  return false;
}

Value PresenceBuilder::ofWeight(OpBuilder &builder, Operation *op) {
  Location loc = op->getLoc();
  auto ofOperand = [&](unsigned n) { return of(builder, op->getOperand(n), Role::Weight); };
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    // A weight or nothing: what takes weights out does not bring masked ones back.
    if (isZero(select.getFalseValue())) {
      Value present = ofOperand(1);
      return isExponential(select.getTrueValue())
                 ? both(builder, loc, select.getCondition(), present)
                 : present;
    }
    return isZero(select.getTrueValue()) ? ofOperand(2) : ofChoice(builder, select, Role::Weight);
  }
  if (isa<ExpDiffOp, gpu::ScaledExpDiffOp>(op))
    return of(builder, op->getOperand(0), Role::Score);
  if (isa<arith::MulFOp>(op)) {
    Value a = ofOperand(0);
    return both(builder, loc, a, ofOperand(1));
  }
  if (isa<arith::NegFOp, arith::DivFOp, DivOrZeroOp>(op))
    return ofOperand(0);
  if (isa<arith::AddFOp, arith::SubFOp>(op)) {
    Value a = ofOperand(0), b = a ? ofOperand(1) : Value();
    return b ? arith::OrIOp::create(builder, loc, a, b).getResult() : Value();
  }
  return {};
}

Value PresenceBuilder::ofLoad(OpBuilder &builder, LoadOp load, Role role) {
  auto producer = load.getTensor().getDefiningOp<ComputeOp>();
  // A padded weight is 0 where it is outside. What the condition reads there does not matter then.
  const bool isPadded = load.getPad() != nullptr;
  if (!producer || (isPadded && !(role == Role::Weight && isZero(load.getPad()))))
    return {};
  unsigned r = cast<OpResult>(load.getTensor()).getResultNumber();
  if (getTileReduction(producer, r))
    return {};
  auto [place, isNew] = known.try_emplace({load.getTensor(), int(role)}, Value());
  if (isNew) {
    OpBuilder inside(producer.getYield());
    Value present = of(inside, producer.getYield().getValues()[r], role);
    known[{load.getTensor(), int(role)}] = present;
  }
  Value present = known.lookup({load.getTensor(), int(role)});
  if (!present || (wanted == Conditions::OfElements && hasReduction(present, producer)))
    return {};
  IRMapping mapping;
  for (auto [axis, index] : llvm::zip_equal(producer.getIndicesOf(r), load.getIndices()))
    mapping.map(producer.getIndex(axis), index);
  Value condition = cloneFrom(builder, present, producer, mapping);
  if (isPadded)
    padReads(present, producer, mapping);
  return condition;
}

/// Is the term a weight and no product with one? A masked one is 0 by itself.
static bool isWeightAlone(Value term) {
  while (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(term.getDefiningOp()))
    term = term.getDefiningOp()->getOperand(0);
  return isa_and_nonnull<ExpDiffOp, gpu::ScaledExpDiffOp>(term.getDefiningOp());
}

PresentTerms addPresentTerms(Operation *root, Conditions wanted) {
  PresentTerms result;
  PresenceBuilder presence(wanted);
  SmallVector<ReduceOp> reduces;
  root->walk([&](ReduceOp reduce) { reduces.push_back(reduce); });
  for (ReduceOp reduce : reduces) {
    SmallVector<Value> conditions;
    for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k) {
      Value term = reduce.getYield().getValues()[k];
      OpBuilder builder(reduce.getYield());
      const bool isSum = reduce.getKind(k) == ReduceKind::Sum && isa<FloatType>(term.getType()) &&
                         !isWeightAlone(term);
      conditions.push_back(isSum ? presence.ofTerm(builder, term) : Value());
    }
    if (llvm::any_of(conditions, [](Value condition) { return condition != nullptr; }))
      result[reduce] = conditions;
  }
  return result;
}

} // namespace tk
