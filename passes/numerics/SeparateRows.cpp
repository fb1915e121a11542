//===- SeparateRows.cpp - what rows of scores have in common ---------------===//
//
// A bias by distance, slope * (j - i), is a part that depends on the column and one that depends on
// the row. Of scores that serve a maximum and approximate weights under it, the row's part need not
// be added to any: the maximum of the sums is the sum with the maximum, and weights are the same
// under a maximum without it.
//
//   1. Of each maximum along a row, what is added to the scores last is split into terms by sums,
//      differences and products with scalars. Where a tile begins along the columns is a scalar, so
//      that it goes to the rows: what is left of the columns is small, and the same in each tile.
//   2. The rows' terms are added to the maximum, and taken from it before the weights.
//
//   %x = fma(%s, %c, mulf(%slope, subf(broadcast(%at + %j), broadcast(%i))))
//   %m = max(%old, reduce <max> %x)                  exp_diff(%x, broadcast(%m))
//     →  %r = mulf(%slope, subf(%at, %i));  %x = fma(%s, %c, broadcast(mulf(%slope, %j)))
//        %m = max(%old, reduce <max> %x + %r)        exp_diff(%x, broadcast(%m - %r))
//
// Weights under a reference that is no maximum (BoundScores.cpp) have the second half alone. Such a
// reference is the same in all steps of a loop: what the terms have of the step is a scalar, which
// is all that a step has to take from it. Of two places only their distance is one, since products
// with places may be far larger than what is left of them.
//
//   exp_diff(%x, broadcast(%b - mulf(%slope, subf(%at, %i))))        where %i = %tile + %n
//     →  %f = %b + mulf(%slope, %n)                                  before the loop
//        exp_diff(%x, broadcast(%f - broadcast(%slope * (%at - %tile))))
//
// A score has two operations less. Their errors are of the size of those before: one of 2^-24 of
// the bias.
//
//===----------------------------------------------------------------------===//
#include "passes/numerics/SeparateRows.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/numerics/ApproximateExps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tk;

namespace {

/// A sum of what depends on columns and what depends on rows; each a tile of one axis, null: 0.
struct Terms {
  Value column, row;
};

/// A sum of a tile that is the same in all steps of a loop and a scalar that is not; null: 0.
struct StepTerms {
  Value fixed, moving;
};

class RowSeparation {
public:
  /// Of scores and their maximum along the rows, if that is computed.
  RowSeparation(Value scores, gpu::ReduceOp maximum)
      : scores(scores), maximum(maximum), builder(scores.getContext()) {}

  bool analyse();
  void apply();

private:
  bool findSum();
  bool areWeights();
  /// The terms of a tile of the scores' shape, computed before the sum; nothing if it does not
  /// separate.
  std::optional<Terms> split(Value value);
  Terms splitColumns(Value columns);
  Value combine(Operation *op, Value a, Value b);
  /// `factor` with the sign of `part`, which loses it: a difference the other way round.
  Value takeSign(Value factor, Value &part);
  Value spread(Value scalar, int64_t size);
  /// Is `value` the same in all steps of the loop around the scores?
  bool isFixed(Value value);
  /// The terms of a tile of rows; nothing if it does not separate.
  std::optional<StepTerms> splitSteps(Value rows);
  Value distance(Location loc, Value place, Value from);
  Value restOf(Value bound);

  RankedTensorType getTile() { return cast<RankedTensorType>(scores.getType()); }

  Value scores;
  gpu::ReduceOp maximum;
  OpBuilder builder;
  arith::SelectOp mask; ///< around the sum in masked tiles, if there is one
  scf::IfOp branch;     ///< which chooses between masked and whole tiles
  Operation *sum = nullptr;
  unsigned bias = 0; ///< operand of the sum
  Terms terms;       ///< of the bias
  SmallVector<ExpDiffOp> weights;
};

} // namespace

/// Finds the sum that the scores are, behind the mask of partial tiles.
bool RowSeparation::findSum() {
  Value score = scores;
  branch = score.getDefiningOp<scf::IfOp>();
  if (branch) {
    if (branch.getNumResults() != 1 || branch.elseBlock()->getOperations().size() != 1)
      return false;
    mask = branch.thenYield().getOperand(0).getDefiningOp<arith::SelectOp>();
    APFloat other(0.0f);
    score = branch.elseYield().getOperand(0);
    if (!mask || mask.getTrueValue() != score || !mask->hasOneUse() ||
        !matchPattern(mask.getFalseValue(), m_ConstantFloat(&other)) || !other.isInfinity() ||
        !score.hasNUses(2))
      return false;
  }
  sum = score.getDefiningOp();
  return isa_and_nonnull<math::FmaOp, arith::AddFOp>(sum) &&
         sum->getBlock() == scores.getParentBlock();
}

/// Are the scores of use for nothing but the maximum and approximate weights?
bool RowSeparation::areWeights() {
  for (Operation *user : scores.getUsers()) {
    auto weight = dyn_cast<ExpDiffOp>(user);
    auto bound = weight ? weight.getB().getDefiningOp<gpu::BroadcastOp>() : nullptr;
    if (weight && weight.getA() == scores && gpu::hasMode(weight, gpu::MathMode::Approx) && bound &&
        bound.getDims() == ArrayRef<int64_t>{0})
      weights.push_back(weight);
    else if (user != maximum)
      return false;
  }
  return !weights.empty();
}

Value RowSeparation::spread(Value scalar, int64_t size) {
  auto type = RankedTensorType::get({size}, scalar.getType());
  return gpu::BroadcastOp::create(builder, scores.getLoc(), type, scalar, ArrayRef<int64_t>{});
}

/// A sum or difference of terms, of which one may be 0.
Value RowSeparation::combine(Operation *op, Value a, Value b) {
  if (!b || (!a && isa<arith::AddFOp>(op)))
    return a ? a : b;
  if (!a)
    return arith::NegFOp::create(builder, op->getLoc(), b);
  if (isa<arith::AddFOp>(op))
    return arith::AddFOp::create(builder, op->getLoc(), a, b);
  return arith::SubFOp::create(builder, op->getLoc(), a, b);
}

Value RowSeparation::takeSign(Value factor, Value &part) {
  auto negated = part.getDefiningOp<arith::NegFOp>();
  if (!negated)
    return factor;
  part = negated.getOperand();
  return builder.createOrFold<arith::NegFOp>(negated.getLoc(), factor);
}

/// Where the tile begins goes to the rows.
Terms RowSeparation::splitColumns(Value columns) {
  if (auto add = columns.getDefiningOp<arith::AddFOp>())
    for (unsigned side : {0u, 1u})
      if (gpu::splatSource(add->getOperand(side))) {
        Value start = add->getOperand(side).getDefiningOp<gpu::BroadcastOp>().getSource();
        return {add->getOperand(1 - side), spread(start, getTile().getDimSize(0))};
      }
  return {columns, Value()};
}

std::optional<Terms> RowSeparation::split(Value value) {
  Operation *op = value.getDefiningOp();
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  if (auto broadcast = dyn_cast_or_null<gpu::BroadcastOp>(op)) {
    Value source = broadcast.getSource();
    if (!isa<RankedTensorType>(source.getType()))
      return Terms{Value(), spread(source, shape[0])};
    if (broadcast.getDims().size() != 1)
      return std::nullopt;
    return broadcast.getDims().front() == 0 ? Terms{Value(), source} : splitColumns(source);
  }
  if (isa_and_nonnull<arith::AddFOp, arith::SubFOp>(op)) {
    std::optional<Terms> a = split(op->getOperand(0)), b = split(op->getOperand(1));
    if (!a || !b)
      return std::nullopt;
    return Terms{combine(op, a->column, b->column), combine(op, a->row, b->row)};
  }
  if (auto product = dyn_cast_or_null<arith::MulFOp>(op)) {
    const unsigned scalar = gpu::splatSource(product.getLhs()) ? 0 : 1;
    if (!gpu::splatSource(product->getOperand(scalar)))
      return std::nullopt;
    Value factor = product->getOperand(scalar).getDefiningOp<gpu::BroadcastOp>().getSource();
    std::optional<Terms> terms = split(product->getOperand(1 - scalar));
    if (!terms)
      return std::nullopt;
    for (Value *part : {&terms->column, &terms->row})
      if (*part) {
        Value factorOf = takeSign(factor, *part);
        Value factors = spread(factorOf, cast<RankedTensorType>(part->getType()).getDimSize(0));
        *part = arith::MulFOp::create(builder, product.getLoc(), factors, *part);
      }
    return terms;
  }
  return std::nullopt;
}

bool RowSeparation::isFixed(Value value) {
  auto loop = scores.getDefiningOp()->getParentOfType<scf::ForOp>();
  if (!loop || loop.isDefinedOutsideOfLoop(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && isPure(op) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isFixed(operand); });
}

/// place - from, without rounding where both are integers.
Value RowSeparation::distance(Location loc, Value place, Value from) {
  auto to = place.getDefiningOp<arith::SIToFPOp>(), at = from.getDefiningOp<arith::SIToFPOp>();
  if (!to || !at || to.getIn().getType() != at.getIn().getType())
    return arith::SubFOp::create(builder, loc, place, from);
  Value apart = arith::SubIOp::create(builder, loc, to.getIn(), at.getIn());
  return arith::SIToFPOp::create(builder, loc, place.getType(), apart);
}

std::optional<StepTerms> RowSeparation::splitSteps(Value rows) {
  Operation *op = rows.getDefiningOp();
  if (isFixed(rows))
    return StepTerms{rows, Value()};
  if (Value scalar = gpu::splatSource(rows))
    return StepTerms{Value(), scalar};
  if (isa_and_nonnull<arith::SubFOp>(op)) {
    // A step's place less that of a row, or the other way round: their distance is that to where
    // the tile begins, less the row in it.
    const unsigned of = gpu::splatSource(op->getOperand(0)) ? 0 : 1;
    Value place = gpu::splatSource(op->getOperand(of));
    auto row = op->getOperand(1 - of).getDefiningOp<arith::AddFOp>();
    if (!place || !row)
      return std::nullopt;
    for (unsigned side : {0u, 1u})
      if (Value tile = gpu::splatSource(row->getOperand(side));
          tile && isFixed(row->getOperand(1 - side))) {
        Value inTile = row->getOperand(1 - side), apart = distance(op->getLoc(), place, tile);
        Value &negated = of == 0 ? inTile : apart;
        negated = arith::NegFOp::create(builder, op->getLoc(), negated);
        return StepTerms{inTile, apart};
      }
    return std::nullopt;
  }
  if (auto product = dyn_cast_or_null<arith::MulFOp>(op))
    for (unsigned side : {0u, 1u})
      if (Value factor = gpu::splatSource(product->getOperand(side)); factor && isFixed(factor)) {
        std::optional<StepTerms> terms = splitSteps(product->getOperand(1 - side));
        if (!terms || !terms->fixed || !terms->moving)
          return std::nullopt;
        Value ofRows = takeSign(factor, terms->fixed), ofStep = takeSign(factor, terms->moving);
        return StepTerms{arith::MulFOp::create(builder, op->getLoc(),
                                               spread(ofRows, getTile().getDimSize(0)),
                                               terms->fixed),
                         arith::MulFOp::create(builder, op->getLoc(), ofStep, terms->moving)};
      }
  return std::nullopt;
}

/// `bound` without the rows' terms.
Value RowSeparation::restOf(Value bound) {
  Location loc = scores.getLoc();
  if (!maximum && isFixed(bound))
    if (std::optional<StepTerms> steps = splitSteps(terms.row);
        steps && steps->fixed && steps->moving) {
      Value fixed = arith::SubFOp::create(builder, loc, bound, steps->fixed);
      return arith::SubFOp::create(builder, loc, fixed,
                                   spread(steps->moving, getTile().getDimSize(0)));
    }
  return arith::SubFOp::create(builder, loc, bound, terms.row);
}

bool RowSeparation::analyse() {
  auto tile = dyn_cast<RankedTensorType>(scores.getType());
  if (!tile || tile.getRank() != 2 || !tile.getElementType().isF32() ||
      (maximum && (maximum.getKind() != ReduceKind::Max || maximum.getAxis() != 1)) || !findSum() ||
      !areWeights())
    return false;
  // What is computed here in vain, canonicalisation leaves out.
  builder.setInsertionPoint(sum);
  const unsigned last = sum->getNumOperands() - 1;
  for (bias = isa<math::FmaOp>(sum) ? last : 0; bias <= last; ++bias)
    if (std::optional<Terms> found = split(sum->getOperand(bias));
        found && found->row && found->column) {
      terms = *found;
      return true;
    }
  return false;
}

void RowSeparation::apply() {
  RankedTensorType type = getTile();
  sum->setOperand(bias, gpu::BroadcastOp::create(builder, sum->getLoc(), type, terms.column,
                                                 ArrayRef<int64_t>{1}));
  if (maximum) {
    builder.setInsertionPointAfter(maximum);
    auto whole = arith::AddFOp::create(builder, maximum.getLoc(), maximum.getResult(), terms.row);
    maximum.getResult().replaceAllUsesExcept(whole, whole);
  }
  for (ExpDiffOp weight : weights) {
    auto bound = weight.getB().getDefiningOp<gpu::BroadcastOp>();
    builder.setInsertionPoint(weight);
    weight.getBMutable().assign(gpu::BroadcastOp::create(
        builder, weight.getLoc(), type, restOf(bound.getSource()), ArrayRef<int64_t>{0}));
  }
}

void tk::separateRows(gpu::FuncOp func) {
  llvm::MapVector<Value, gpu::ReduceOp> scores;
  func.walk([&](Operation *op) {
    if (auto reduce = dyn_cast<gpu::ReduceOp>(op); reduce && reduce.getKind() == ReduceKind::Max)
      scores[reduce.getSource()] = reduce;
    if (auto weight = dyn_cast<ExpDiffOp>(op))
      scores.insert({weight.getA(), gpu::ReduceOp()});
  });
  for (auto [score, maximum] : scores)
    if (RowSeparation separation(score, maximum); separation.analyse())
      separation.apply();
}
