//===- BlockMasks.cpp - masks of online reductions ------------------------===//
//
// Where an online reduction starts with a maximum and goes on with sums of weights under it, or
// under other maxima, only the maxima's terms need masks:
//
//   1. Outside the bounds a maximum's term is -inf. A weight of -inf is 0 whatever the maximum,
//      so that the sums' terms are their identity without masks of their own.
//   2. The mask stands in a branch that full tiles skip. One loop then takes full and partial
//   tiles:
//      half the code of two, and copies run ahead across its whole range.
//   3. Weights under a reference that is no maximum (BoundScores.cpp) are masked themselves.
//   4. A load whose index stands for a dimension need not stop at the bounds, but where the tensor
//      does: what it brings beyond them meets weights of 0. Factors that weights multiply stop
//      where a range ends by a scalar or a tensor, such as a sequence's length: what lies behind
//      the end may be NaN or infinite.
//
//     %s1 = scf.if %is_partial {                 // start + size > least upper bound of the tile
//       %in = arith.cmpi slt, %j, %upper
//       yield select %in, %s, -inf
//     } else { yield %s }
//     %m1 = max(%m, reduce max %s1);  %p = tk.exp_diff %s1, %m1
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/Conditions.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/numerics/ApproximateExps.h"
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

/// The weight that `value` is 0 with, through roundings and constant factors; null if there is
/// none.
static Operation *weightOf(Value value) {
  while (Operation *op = value ? value.getDefiningOp() : nullptr) {
    if (isa<ExpDiffOp, gpu::ScaledExpDiffOp>(op))
      return op;
    APFloat scale(0.0f);
    bool isScaled = isa<arith::MulFOp>(op) &&
                    matchPattern(op->getOperand(1), m_ConstantFloat(&scale)) && scale.isFinite();
    if (!isScaled && !isa<arith::TruncFOp, arith::ExtFOp>(op))
      return nullptr;
    value = op->getOperand(0);
  }
  return nullptr;
}

/// Is it a weight of `op` under the same reference for the whole range?
static bool isUnderReference(Operation *weight, tk::ReduceOp op) {
  return isa<ExpDiffOp>(weight) && gpu::hasMode(weight, gpu::MathMode::Approx) &&
         weight->getBlock() == op.getBlock() &&
         !op.getBody().isAncestor(weight->getOperand(1).getParentRegion());
}

/// Do masks of the maxima's terms, and of weights under a reference, make all terms vanish? Only
/// where the terms feed products: a term that is just loaded is masked by its load.
bool BlockProgram::planMasks(Reduction &reduction) {
  tk::ReduceOp op = reduction.op;
  if (!op.isOnline() || !reduction.isLoop)
    return false;
  ValueRange terms = op.getYield().getValues();
  SmallVector<Value> scores;
  llvm::SetVector<Value> weights;
  auto vanishes = [&](Value value) {
    Operation *weight = weightOf(value);
    if (!weight)
      return false;
    if (isUnderReference(weight, op))
      weights.insert(weight->getResult(0));
    return weights.contains(weight->getResult(0)) ||
           llvm::is_contained(scores, weight->getOperand(0));
  };
  bool hasDot = false;
  for (auto [k, acc] : llvm::enumerate(reduction.accumulators)) {
    if (acc.kind == ReduceKind::Max) {
      if (!isa<FloatType>(terms[k].getType()) || terms[k].getParentBlock() != op.getBlock())
        return false;
      scores.push_back(terms[k]);
      continue;
    }
    hasDot |= acc.isDot;
    if (acc.kind != ReduceKind::Sum ||
        !(acc.isDot ? vanishes(acc.a) || vanishes(acc.b) : vanishes(terms[k])))
      return false;
  }
  if (hasDot)
    reduction.maskedWeights = weights.takeVector();
  return hasDot;
}

/// The scores of all maxima, and of weights under a reference.
SmallVector<Value> BlockProgram::maskedScores(Reduction &reduction) {
  SmallVector<Value> scores;
  for (auto [k, acc] : llvm::enumerate(reduction.accumulators))
    if (acc.kind == ReduceKind::Max)
      scores.push_back(reduction.op.getYield().getValues()[k]);
  for (Value weight : reduction.maskedWeights)
    scores.push_back(weight.getDefiningOp()->getOperand(0));
  return scores;
}

/// Can the current tile reach beyond the bounds? Null where that is not known before its masks are.
Value BlockProgram::isPartial(Reduction &reduction) {
  unsigned depth = scopes.size() - 1;
  OpBuilder &b = at(depth);
  Value result;
  auto add = [&](arith::CmpIPredicate predicate, Value left, Value right) {
    Value test = arith::CmpIOp::create(b, loc, predicate, left, right);
    result = result ? arith::OrIOp::create(b, loc, result, test) : test;
  };
  for (unsigned id : reduction.axes) {
    const Axis &axis = axes[id];
    const bool hasBounds = axis.limit || axis.lower || axis.upper;
    if (hasBounds && !axis.fullTo)
      return {};
    Value start = axis.counter ? axis.counter : axis.start;
    if (axis.fullFrom)
      add(arith::CmpIPredicate::slt, start, axis.fullFrom);
    if (!axis.fullTo)
      continue;
    Value end =
        arith::AddIOp::create(b, loc, start, arith::ConstantIndexOp::create(b, loc, axis.size));
    add(arith::CmpIPredicate::sgt, end, axis.fullTo);
  }
  return result;
}

/// Evaluates `term` and masks it with what such a reduction begins with, for itself and for the
/// terms that depend on it.
void BlockProgram::maskTerm(Reduction &reduction, Value term, ReduceKind kind) {
  const bool isUnion = reduction.ranges && reduction.ranges->isWholeMask;
  TileValue value = get(isUnion ? term.getDefiningOp<arith::SelectOp>().getTrueValue() : term);
  unsigned depth = scopes.size() - 1;
  auto isMasked = [&](unsigned id) { return axes[id].limit || axes[id].lower || axes[id].upper; };
  const bool isKnown = reduction.known.has_value();
  if (!isUnion && !isKnown && llvm::none_of(reduction.axes, isMasked))
    return;
  TypedAttr identity = identityOf(kind, term.getType());
  Axes all = value.axes;
  for (unsigned id : reduction.axes) {
    if (isUnion || isKnown || isMasked(id))
      all = unite(all, {id});
    for (const std::optional<TileValue> &bound : {axes[id].lower, axes[id].upper})
      if (bound)
        all = unite(all, bound->axes);
  }
  if (isUnion || isKnown)
    all = unite(all, sorted(axesOf(isUnion ? reduction.ranges->holds : reduction.known->holds)));
  value = broadcast(value, all, depth);
  auto mask = [&](unsigned minDepth) {
    std::optional<TileValue> ends = termMask(reduction, minDepth);
    if (!isUnion && !isKnown)
      return *ends;
    TileValue between = isUnion ? unionMask(reduction, minDepth) : knownMask(reduction, minDepth);
    return ends ? andMasks({*ends, between}) : between;
  };
  Value condition = isPartial(reduction);
  if (!condition) {
    scopes[depth].memo[term] = select(mask(0), value, identity);
    return;
  }
  auto branch = scf::IfOp::create(at(depth), loc, value.value.getType(), condition,
                                  /*withElseRegion=*/true);
  Operation *before = std::exchange(scopes[depth].before, branch.getOperation());
  scopes.emplace_back().block = branch.thenBlock();
  TileValue inside = value;
  inside.depth = depth + 1;
  inside = select(mask(depth + 1), inside, identity);
  scf::YieldOp::create(at(depth + 1), loc, inside.value);
  scopes.pop_back();
  scopes[depth].before = before;
  OpBuilder otherwise = OpBuilder::atBlockEnd(branch.elseBlock());
  scf::YieldOp::create(otherwise, loc, value.value);
  scopes[depth].memo[term] = {branch.getResult(0), all, depth};
}

/// Is the loaded value, or what extends it, an operand of one operation alone?
static bool isReadOnce(Value loaded) {
  for (Value value = loaded; value.hasOneUse(); value = (*value.user_begin())->getResult(0)) {
    Operation *user = *value.user_begin();
    if (user->getNumResults() != 1 || withoutExtension(user->getResult(0)) != loaded)
      return true;
  }
  return false;
}

/// Notes what weights multiply, and under which conditions terms exist, but for those by which
/// ranges are known.
void BlockProgram::planUnseen(Reduction &reduction) {
  auto conditions = present.find(reduction.op);
  for (auto [n, acc] : llvm::enumerate(reduction.accumulators)) {
    if (!acc.isDot || acc.kind != ReduceKind::Sum || !isa<FloatType>(acc.type))
      continue;
    Value condition = conditions == present.end() ? Value() : conditions->second[n];
    if (!condition && !reduction.masksTerms)
      continue;
    SmallVector<Value> parts;
    if (condition && !reduction.known && !reduction.ranges)
      addParts<arith::AndIOp>(condition, parts);
    for (auto [factor, weight, columns, rows] :
         {std::tuple(acc.a, acc.b, acc.m, acc.n), std::tuple(acc.b, acc.a, acc.n, acc.m)}) {
      Value loaded = withoutExtension(factor);
      const bool isLoaded = loaded.getDefiningOp<LoadOp>() != nullptr;
      if (weightOf(factor) || (!isLoaded && !weightOf(weight)))
        continue;
      Unseen own;
      own.rows = rows;
      // What other sums take, too, they take all of.
      const bool isShared = isLoaded && !isReadOnce(loaded);
      if (isShared && !reduction.masksTerms)
        continue;
      for (Value part : parts) {
        llvm::SetVector<unsigned> over = axesOf(part);
        const bool isOfKeys = !isShared && over.contains(acc.k) && !over.contains(columns);
        const bool isOfRows = over.contains(rows);
        if (isOfKeys && (!isOfRows || !(loadsUnseen || isOfSizes(kernel, part))))
          own.conditions.push_back(part);
      }
      unseen.try_emplace(isLoaded ? loaded : factor, own);
    }
  }
}

/// Adds masks that are false where no row has a term.
void BlockProgram::addUnseenMasks(Value value, SmallVectorImpl<TileValue> &masks) {
  auto own = unseen.find(value);
  if (own == unseen.end())
    return;
  // What is evaluated may note more.
  const Unseen noted = own->second;
  for (Value condition : noted.conditions) {
    TileValue holds = get(condition);
    if (hasAxis(holds, noted.rows)) {
      if (std::optional<TileValue> rows = limitMask(noted.rows))
        holds = andMasks({holds, *rows});
      holds = reduceTile(holds, {noted.rows}, ReduceKind::Any);
    }
    masks.push_back(holds);
  }
}

/// Is `extent` `size`, or that rounded up to a multiple?
static bool isRoundedUp(Value extent, Value size) {
  if (extent == size)
    return true;
  auto product = extent.getDefiningOp<arith::MulIOp>();
  auto count = product ? product.getLhs().getDefiningOp<FloorDivOp>() : FloorDivOp();
  auto sum = count ? count.getLhs().getDefiningOp<arith::AddIOp>() : arith::AddIOp();
  const std::optional<int64_t> multiple = count ? getConstantIndex(count.getRhs()) : std::nullopt;
  return sum && multiple && getConstantIndex(product.getRhs()) == multiple &&
         sum.getLhs() == size && getConstantIndex(sum.getRhs()) == *multiple - 1;
}

/// Does every index of a load that uses `axis` stand for the extent at which its range ends, or for
/// that rounded up?
bool BlockProgram::isCovered(LoadOp op, ArrayRef<Value> places, unsigned axis,
                             ArrayRef<Value> extents) {
  Value covering = axes[axis].coveringExtent;
  if (!covering || (axes[axis].endsByValue && unseen.contains(op.getResult())))
    return false;
  for (auto [value, extent] : llvm::zip_equal(places, extents)) {
    if (!axesOf(value).contains(axis))
      continue;
    auto bare = axisOf.find(value);
    if (bare == axisOf.end() || bare->second != axis || !isRoundedUp(extent, covering))
      return false;
  }
  return true;
}

/// Masks a load by the tensor's extents along those axes of `tileAxes` that they cover; the others
/// are returned.
Axes BlockProgram::addCoveringMasks(LoadOp op, ArrayRef<Value> places, ArrayRef<unsigned> tileAxes,
                                    ArrayRef<Value> extents, SmallVectorImpl<TileValue> &masks) {
  Axes others;
  for (unsigned axis : tileAxes) {
    if (!isCovered(op, places, axis, extents)) {
      others.push_back(axis);
    } else if (!axes[axis].coversTiles) {
      Value extent = kernelValue(axes[axis].coveringExtent);
      masks.push_back(compare(arith::CmpIPredicate::slt, index(axis), {extent, {}, 0}));
    }
  }
  return others;
}
