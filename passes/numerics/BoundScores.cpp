//===- BoundScores.cpp - softmaxes of bounded scores -----------------------===//
//
// The maximum under which a softmax takes its weights keeps them in range, and cancels: any other
// reference will do that leaves no weight too large and not all of them too small. A score with a
// soft cap, c tanh(x), is within c of 0 whatever x is. So in an online reduction whose first
// accumulator is a maximum and the others sums of approximate weights under it,
//
//   1. scores are split into summands: capped ones, whose caps add up to no more than kLargestCap;
//      those that are the same for the whole range; and at most one that rises or falls with the
//      index, as a bias by distance does. That one is largest at an end of the range.
//   2. The reference r is the sum of what each is at most, or a little less: the greatest score is
//      less than twice the cap below, since the term at that end is of the range. Scores under a
//      choice against -inf may be any of the others, so that nothing may rise or fall there.
//   3. The maximum is no longer computed, and sums are no longer corrected for it.
//   4. Rows 8 apart, which one thread has of a product's sums, share what is left of their
//      references once what rises or falls is taken from it, the greater one, where they are close:
//      then what is added to a score depends on its column alone. Weights only become smaller by
//      that.
//
//   %m, %z, %o = reduce [max, sum, sum] {            %r = c + max(b(lower), b(upper - 1))
//     %s = c tanh(..) + b(%j)                        %z, %o = reduce [sum, sum] {
//     %w = exp_diff %s, %m_run                  →      %w = exp_diff %s, %r
//     yield %s, %w, bf16(%w) v                         yield %w, bf16(%w) v
//   } rescale { exp_diff %old, %new, .. }            } rescale { 1 }
//
// A literal says how large the cap is, or what the launch checks or finds of a parameter. Weights
// of up to 2^65 need bf16's range. Results have 16 bits (areQuotientsNarrow).
//
//===----------------------------------------------------------------------===//
#include "passes/numerics/BoundScores.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarCases.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/numerics/ApproximateExps.h"
#include "passes/numerics/FreeReferences.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

/// Scores within a cap c take weights from exp(-kDepth) on, or from exp(-2 c), and up to
/// exp(2 c - kDepth): 2^-79 and 2^65 where c is kLargestCap.
static constexpr double kDepth = 55;

/// References of rows are made one where they differ by no more than this: another factor of 2^-23
/// of the weights.
static constexpr double kClose = 16;

namespace {

class ScoreBounding {
public:
  ScoreBounding(KernelOp kernel, tk::ReduceOp reduction)
      : kernel(kernel), reduction(reduction), builder(reduction),
        onTerm(reduction.getBlock()->getArguments()) {}

  /// With `isPlan` weights are not marked yet.
  bool analyse(bool isPlan = false);
  void apply();

private:
  /// A summand, perhaps a product that a multiply-add has in it.
  struct Summand {
    Value value, factor;
    bool isNegative = false;
  };

  /// Is it the same for the whole range?
  bool isConstant(Value value) { return !onTerm.on(value); }
  bool areWeights(bool isPlan);
  bool areUnscaled();
  bool split(Value score, bool isNegative);
  bool addSummand(const Summand &summand);
  bool isMonotone(Value value);
  bool isCap(const Summand &summand);
  std::optional<double> largestSize(Value factor);
  Value at(Value value, Value index);
  Value at(const Summand &summand, Value index);
  Value buildReference();
  BlockArgument findRow(Value reference);
  Value shareAmongRows(Value reference);
  void buildReduction(Value reference);

  KernelOp kernel;
  tk::ReduceOp reduction;
  OpBuilder builder;
  Dependence onTerm; ///< on the index, or on what accumulators have become
  bool isMasked = false;
  double cap = 0;
  SmallVector<Value> caps; ///< above 0, or constants; null: 1
  SmallVector<Summand> constants;
  std::optional<Summand> rising;
  bool isShared = false; ///< the reference, among rows
  SmallVector<ExpDiffOp> weights;
};

} // namespace

/// Is the maximum of use for nothing but weights that are summed, rounded to bf16 or not?
bool ScoreBounding::areWeights(bool isPlan) {
  Value score = reduction.getYield().getValues().front();
  for (Operation *user : reduction.getRunning(0).getUsers()) {
    auto weight = dyn_cast<ExpDiffOp>(user);
    if (!weight || !(isPlan || gpu::hasMode(weight, gpu::MathMode::Approx)) ||
        weight.getA() != score || weight->getBlock() != reduction.getBlock())
      return false;
    weights.push_back(weight);
    for (Operation *use : weight->getUsers()) {
      auto narrow = dyn_cast<arith::TruncFOp>(use);
      if (use != reduction.getYield() && !(narrow && narrow.getType().isBF16()))
        return false;
    }
  }
  return !weights.empty() && reduction.getResult(0).use_empty();
}

/// Do other accumulators see nothing of each other, nor anything but the maximum in their factors?
bool ScoreBounding::areUnscaled() {
  const unsigned count = reduction.getNumAccumulators();
  Block &rescale = reduction.getRescale().front();
  auto factors = cast<YieldOp>(rescale.getTerminator()).getValues();
  for (unsigned k = 1; k < count; ++k) {
    auto factor = factors[k - 1].getDefiningOp<ExpDiffOp>();
    if (reduction.getKind(k) != ReduceKind::Sum || !factor ||
        factor.getA() != rescale.getArgument(0) || factor.getB() != rescale.getArgument(count - 1))
      return false;
    if (k + 1 < count && !reduction.getRunning(k).use_empty())
      return false;
  }
  return true;
}

/// The largest size of a factor that is known to be above 0; nothing if none is known.
std::optional<double> ScoreBounding::largestSize(Value factor) {
  APFloat literal(0.0f);
  if (matchPattern(factor, m_ConstantFloat(&literal)))
    return literal.isFinite() ? std::optional<double>(std::abs(literal.convertToDouble()))
                              : std::nullopt;
  if (!isa<BlockArgument>(factor) || factor.getParentBlock()->getParentOp() != kernel)
    return std::nullopt;
  const AssumedNumber known = assumedOf(factor);
  return known.isPositive ? known.largest : std::nullopt;
}

/// Is it a hyperbolic tangent times a factor of known size? Then that joins the caps.
bool ScoreBounding::isCap(const Summand &summand) {
  Value tanh = summand.value, factor = summand.factor;
  if (auto product = tanh.getDefiningOp<arith::MulFOp>(); product && !factor)
    tanh = product.getLhs(), factor = product.getRhs();
  if (factor && !tanh.getDefiningOp<math::TanhOp>())
    std::swap(tanh, factor);
  if (!tanh.getDefiningOp<math::TanhOp>() || (factor && !isConstant(factor)))
    return false;
  std::optional<double> size = factor ? largestSize(factor) : 1.0;
  if (!size)
    return false;
  cap += *size;
  caps.push_back(factor);
  return true;
}

/// Does `value` rise or fall with the index all the way? Rounding leaves it so.
bool ScoreBounding::isMonotone(Value value) {
  if (value == reduction.getIndex(0))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != reduction.getBlock())
    return false;
  if (isa<arith::SIToFPOp, arith::IndexCastOp, arith::NegFOp>(op))
    return isMonotone(op->getOperand(0));
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::AddIOp, arith::SubIOp, arith::MulIOp>(
          op))
    return isConstant(op->getOperand(0))
               ? isMonotone(op->getOperand(1))
               : isConstant(op->getOperand(1)) && isMonotone(op->getOperand(0));
  return false;
}

bool ScoreBounding::addSummand(const Summand &summand) {
  if (isCap(summand))
    return true;
  const bool isValueConstant = isConstant(summand.value);
  if (isValueConstant && (!summand.factor || isConstant(summand.factor))) {
    constants.push_back(summand);
    return true;
  }
  const bool rises =
      summand.factor ? (isValueConstant ? isMonotone(summand.factor)
                                        : isConstant(summand.factor) && isMonotone(summand.value))
                     : isMonotone(summand.value);
  if (!rises || rising)
    return false;
  rising = summand;
  return true;
}

/// Splits a score, or what is taken from one, into its summands.
bool ScoreBounding::split(Value score, bool isNegative) {
  Operation *op = score.getDefiningOp();
  if (isConstant(score) || !op || op->getBlock() != reduction.getBlock())
    return addSummand({score, Value(), isNegative});
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    isMasked = true;
    return !isNegative && isNegativeInfinity(select.getFalseValue()) &&
           split(select.getTrueValue(), false);
  }
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    return split(op->getOperand(0), isNegative) &&
           split(op->getOperand(1), isNegative != isa<arith::SubFOp>(op));
  if (auto joined = dyn_cast<math::FmaOp>(op))
    return addSummand({joined.getA(), joined.getB(), isNegative}) &&
           split(joined.getC(), isNegative);
  return addSummand({score, Value(), isNegative});
}

bool ScoreBounding::analyse(bool isPlan) {
  if (!reduction.isOnline() || reduction.getNumIndices() != 1 ||
      reduction.getKind(0) != ReduceKind::Max)
    return false;
  Value score = reduction.getYield().getValues().front();
  // The greatest weight of a row under its maximum is 1, which is rounded to itself; under another
  // reference it has the error of 16 bits, as all others do.
  return score.getType().isF32() && areWeights(isPlan) && areQuotientsNarrow(reduction) &&
         areUnscaled() && split(score, false) && !caps.empty() && cap <= kLargestCap &&
         !(isMasked && rising);
}

/// What `value` is at another place than the reduction's index.
Value ScoreBounding::at(Value value, Value index) {
  IRMapping mapping;
  mapping.map(reduction.getIndex(0), index);
  return cloneSlice(builder, value, reduction.getBlock(), mapping);
}

Value ScoreBounding::at(const Summand &summand, Value index) {
  Location loc = reduction.getLoc();
  Value value = at(summand.value, index);
  if (summand.factor)
    value = arith::MulFOp::create(builder, loc, value, at(summand.factor, index));
  return summand.isNegative ? arith::NegFOp::create(builder, loc, value).getResult() : value;
}

Value ScoreBounding::buildReference() {
  Location loc = reduction.getLoc();
  auto add = [&](Value a, Value b) -> Value {
    return a ? arith::AddFOp::create(builder, loc, a, b).getResult() : b;
  };
  Value sum;
  for (Value each : caps) {
    APFloat literal(1.0f);
    if (!each || matchPattern(each, m_ConstantFloat(&literal)))
      each = arith::ConstantOp::create(
          builder, loc,
          builder.getF32FloatAttr(std::abs(static_cast<float>(literal.convertToDouble()))));
    sum = add(sum, each);
  }
  Value depth = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(kDepth));
  Value lower = arith::SubFOp::create(builder, loc, depth, sum);
  Value reference = arith::MinimumFOp::create(builder, loc, sum, lower);
  for (const Summand &constant : constants)
    reference = add(reference, at(constant, reduction.getLower().front()));
  if (!rising)
    return reference;
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value last = arith::SubIOp::create(builder, loc, reduction.getUpper().front(), one);
  Value ends = arith::MaximumFOp::create(builder, loc, at(*rising, reduction.getLower().front()),
                                         at(*rising, last));
  return add(reference, ends);
}

/// The statement's index that references differ by; null where there are several, or where that
/// takes a load for each.
BlockArgument ScoreBounding::findRow(Value reference) {
  auto statement = dyn_cast<ComputeOp>(reduction->getParentOp());
  BlockArgument row;
  for (BlockArgument index :
       statement ? statement.getBlock()->getArguments() : MutableArrayRef<BlockArgument>()) {
    Dependence onIndex{ValueRange(index)};
    bool isLoaded = llvm::any_of(getSlice(reference, reduction->getBlock()), [&](Operation *op) {
      return isa<LoadOp>(op) && onIndex.on(op->getResult(0));
    });
    if (isLoaded || !onIndex.on(reference))
      continue;
    if (row)
      return {};
    row = index;
  }
  return row;
}

Value ScoreBounding::shareAmongRows(Value reference) {
  BlockArgument row = findRow(reference);
  if (!row)
    return reference;
  Location loc = reduction.getLoc();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value run = FloorDivOp::create(builder, loc, row.getType(), row, index(kSharedApart));
  Value isLater = FloorModOp::create(builder, loc, row.getType(), run, index(2));
  Value back = arith::MulIOp::create(builder, loc, isLater, index(kSharedApart));
  Value first = arith::SubIOp::create(builder, loc, row, back);
  Value second = arith::AddIOp::create(builder, loc, first, index(kSharedApart));
  // Of each row, less what rises or falls at one place for both.
  Value rest = arith::SubFOp::create(builder, loc, reference, at(*rising, first));
  auto of = [&](Value other) {
    IRMapping mapping;
    mapping.map(row, other);
    mapping.map(first, first);
    return cloneSlice(builder, rest, reduction->getBlock(), mapping);
  };
  Value greater = arith::MaximumFOp::create(builder, loc, of(first), of(second));
  Value more = arith::SubFOp::create(builder, loc, greater, rest);
  Value close = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(kClose));
  Value isClose = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLE, more, close);
  Value shared = arith::AddFOp::create(builder, loc, reference, more);
  isShared = true;
  return arith::SelectOp::create(builder, loc, isClose, shared, reference);
}

/// The reduction without its first accumulator, under `reference`.
void ScoreBounding::buildReduction(Value reference) {
  Location loc = reduction.getLoc();
  const unsigned count = reduction.getNumAccumulators();
  SmallVector<Type> types(llvm::drop_begin(reduction.getResultTypes()));
  auto plain = tk::ReduceOp::create(
      builder, loc, types, builder.getArrayAttr(reduction.getKinds().getValue().drop_front()),
      reduction.getIndexNames(), reduction.getLower(), reduction.getUpper(),
      reduction.getPrecisionAttr());
  for (ExpDiffOp weight : weights) {
    weight.getBMutable().assign(reference);
    if (isShared)
      gpu::addMode(weight, gpu::MathMode::SharedRows);
  }
  plain.getBody().takeBody(reduction.getBody());
  Block *body = plain.getBlock();
  body->eraseArgument(plain.getNumIndices());
  body->getTerminator()->eraseOperand(0);
  if (count > 2) {
    Block *rescale = builder.createBlock(&plain.getRescale());
    for (unsigned copy = 0; copy < 2; ++copy)
      for (Type type : ArrayRef<Type>(types).drop_back())
        rescale->addArgument(type, loc);
    SmallVector<Value> ones;
    for (Type type : ArrayRef<Type>(types).drop_front())
      ones.push_back(arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, 1.0)));
    YieldOp::create(builder, loc, ones);
  }
  for (unsigned k = 1; k < count; ++k)
    reduction.getResult(k).replaceAllUsesWith(plain.getResult(k - 1));
  reduction.erase();
}

void ScoreBounding::apply() {
  note(reduction, "tk-tile", Verdict::Derived,
       describe(reduction) +
           " is not computed: the soft cap bounds the scores, and exponentials are "
           "relative to one value");
  Value reference = buildReference();
  buildReduction(rising ? shareAmongRows(reference) : reference);
}

bool tk::areScoresBounded(KernelOp kernel, tk::ReduceOp reduction) {
  return ScoreBounding(kernel, reduction).analyse(/*isPlan=*/true);
}

void tk::boundScores(KernelOp kernel, ComputeOp compute) {
  SmallVector<tk::ReduceOp> reductions;
  compute.getBody().walk([&](tk::ReduceOp reduction) { reductions.push_back(reduction); });
  for (tk::ReduceOp reduction : reductions)
    if (ScoreBounding bounding(kernel, reduction); bounding.analyse())
      bounding.apply();
}
