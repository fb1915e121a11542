//===- IndexKeys.cpp - keys that are arithmetic of an index ---------------===//
//
// A sum over the elements of a group goes through all elements as it is written. A key that is
// arithmetic of an index alone selects a range of the index, or every n-th value of it.
//
// 1. The pattern matches conditions `q == e` without which an element is the identity of its
//    reduction. `q` is an index of the reduction behind quotients, and one remainder at most, by
//    constants. `e` depends on an index of the compute op, and not on the reduction.
// 2. A quotient, `n / 8 == e`, selects the range from `8 * e` to `8 * e + 8`.
// 3. A remainder, `n % 8 == e`, selects `e + 8 * k` if `e` is from 0 to 7, and else nothing.
// 4. Both, `n / 4 % 8 == e`, select `4 * e + j + 32 * k` for `j` from 0 to 3. The reduction gets a
//    second index.
// 5. The index of the reduction counts from 0 to a bound that does not vary, so that the reduction
//    can be cut in chunks. What is left of the condition masks indices behind the old bound.
//    tk-restrict-ranges makes a bound of it.
//
// A masked element is left out, not multiplied by zero, as in tk-restrict-ranges.
//
//   %y = tk.compute ["g", "c"] {tk.reduce [sum] ["n"] to (%N) {n / 1024 == g ? x[n, c] : 0}}
//     =>
//   %y = tk.compute ["g", "c"] {
//     tk.reduce [sum] ["n"] to (1024) {n < %N - g * 1024 ? x[g * 1024 + n, c] : 0}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/IndexKeys.h"

#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/TermConditions.h"
#include "passes/tensor/normalize/IndexArithmetic.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:ranges";

namespace {

/// Summands of a value. With true, a summand is subtracted.
using Summands = SmallVector<std::pair<Value, bool>>;

/// A value as a sum: summands that vary in a reduction, and others.
struct Sum {
  Summands varying, fixed;
};

/// The values of an index for which a condition holds: `key * scale - offset + j + period * k`,
/// with `j` from 0 to below `scale`, and any `k`. The period is 0 if there is no `k`.
struct Selection {
  arith::CmpIOp condition;
  unsigned index = 0;
  Summands key;            ///< with the signs swapped unless
  bool isNegative = false; ///< the condition subtracts the quotient
  int64_t scale = 1, period = 0;
  std::optional<int64_t> numKeys; ///< keys from 0 to below it alone select something
  Summands offset;
};

class IndexSelector {
public:
  IndexSelector(KernelOp kernel, ComputeOp compute, ReduceOp reduce)
      : kernel(kernel), compute(compute), reduce(reduce),
        varying(reduce.getBlock()->getArguments()), builder(reduce),
        math{builder, reduce.getLoc()} {}

  bool run();

private:
  std::optional<Selection> match(Value condition);
  bool addSummands(Value value, bool isSubtracted, Sum &sum);
  bool descend(Value value, Selection &selection);
  Value outside(ArrayRef<std::pair<Value, bool>> summands, bool isSwapped);
  void rewrite(const Selection &selection);
  Value takeRange(const Selection &selection, Value key);
  Value takeSteps(const Selection &selection, Value key);
  Value countOf(const Selection &selection, Value key, Value count);
  void replaceIndex(unsigned index, llvm::function_ref<Value(Arithmetic &, Value)> value);

  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  Dependence varying;
  OpBuilder builder;
  Arithmetic math;
};

} // namespace

/// The operand of a conversion of an index to 64 bits; else `value`.
static Value withoutCast(Value value) {
  auto cast = value.getDefiningOp<arith::IndexCastOp>();
  return cast && cast.getIn().getType().isIndex() && value.getType().isInteger(64) ? cast.getIn()
                                                                                   : value;
}

bool IndexSelector::addSummands(Value value, bool isSubtracted, Sum &sum) {
  value = withoutCast(value);
  if (!varying.on(value)) {
    if (!value.getType().isIndex() && !getConstantIndex(value))
      return false;
    // What an empty reduction never computes has to be harmless.
    for (Operation *op : getSlice(value, reduce.getBlock()))
      if (isa<LoadOp>(op) || op->getNumRegions() > 0)
        return false;
    sum.fixed.push_back({value, isSubtracted});
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return addSummands(op->getOperand(0), isSubtracted, sum) &&
           addSummands(op->getOperand(1), isSubtracted != isa<arith::SubIOp>(op), sum);
  sum.varying.push_back({value, isSubtracted});
  return true;
}

/// Goes through the quotients and remainders of `value` down to an index of the reduction.
bool IndexSelector::descend(Value value, Selection &selection) {
  constexpr int64_t mostOf = int64_t(1) << 31;
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<FloorDivOp, FloorModOp>(op) || !value.getType().isIndex())
    return false;
  std::optional<int64_t> divisor = getConstantIndex(op->getOperand(1));
  if (!divisor || *divisor < 2 || *divisor >= mostOf / std::max(selection.scale, selection.period))
    return false;
  if (isa<FloorDivOp>(op)) {
    selection.scale *= *divisor;
    selection.period *= *divisor;
  } else {
    if (selection.period > 0 || *divisor % selection.scale != 0)
      return false;
    selection.numKeys = *divisor / selection.scale;
    selection.period = *divisor;
  }
  Sum sum;
  if (!addSummands(op->getOperand(0), false, sum) || sum.varying.size() != 1 ||
      sum.varying[0].second)
    return false;
  Value own = sum.varying[0].first;
  auto argument = dyn_cast<BlockArgument>(own);
  if (!argument)
    return sum.fixed.empty() && descend(own, selection);
  if (argument.getOwner() != reduce.getBlock() || argument.getArgNumber() >= reduce.getNumIndices())
    return false;
  selection.index = argument.getArgNumber();
  selection.offset = sum.fixed;
  return true;
}

std::optional<Selection> IndexSelector::match(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  Selection selection;
  selection.condition = compare;
  Sum sum;
  if (!addSummands(compare.getLhs(), false, sum) || !addSummands(compare.getRhs(), true, sum) ||
      sum.varying.size() != 1 || !descend(sum.varying[0].first, selection))
    return std::nullopt;
  selection.isNegative = sum.varying[0].second;
  selection.key = sum.fixed;
  // All results go through one range otherwise. Threads read it together, without gaps.
  auto isOfCompute = [&](const std::pair<Value, bool> &summand) {
    return llvm::any_of(getIterationIndices(summand.first), [&](BlockArgument index) {
      return index.getOwner() == compute.getBlock();
    });
  };
  if (llvm::none_of(selection.key, isOfCompute))
    return std::nullopt;
  // Phases of windows are those of tk-split-residues.
  if (selection.period > 0 && (llvm::any_of(selection.offset, isOfCompute) ||
                               (selection.scale > 1 && !selection.offset.empty()) ||
                               !getConstantIndex(reduce.getLower()[selection.index]) ||
                               *getConstantIndex(reduce.getLower()[selection.index]) != 0))
    return std::nullopt;
  return selection;
}

/// The sum of `summands`, computed before the reduction.
Value IndexSelector::outside(ArrayRef<std::pair<Value, bool>> summands, bool isSwapped) {
  Value total = math.number(0);
  for (auto [summand, isSubtracted] : summands) {
    IRMapping mapping;
    Value own;
    if (std::optional<int64_t> constant = getConstantIndex(summand))
      own = math.number(*constant);
    else
      own = cloneSlice(builder, summand, reduce.getBlock(), mapping);
    total = isSubtracted != isSwapped ? math.sub(total, own) : math.add(total, own);
  }
  return total;
}

/// Replaces the reduction's index by `value`, a function of an index that counts from 0 on.
void IndexSelector::replaceIndex(unsigned index,
                                 llvm::function_ref<Value(Arithmetic &, Value)> value) {
  OpBuilder inside = OpBuilder::atBlockBegin(reduce.getBlock());
  Arithmetic own{inside, reduce.getLoc()};
  Value count = reduce.getIndex(index);
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : count.getUses())
    uses.push_back(&use);
  Value instead = value(own, count);
  for (OpOperand *use : uses)
    use->set(instead);
  // Indices behind the bound are masked, not outside of the reduction.
  Dependence onIt{ValueRange(instead)};
  reduce.walk([&](LoadOp load) {
    if (load.getPad() || llvm::none_of(load.getIndices(), [&](Value own) { return onIt.on(own); }))
      return;
    OpBuilder at(load);
    load.getPadMutable().assign(createIdentity(at, load.getLoc(), ReduceKind::Sum, load.getType()));
  });
}

/// `element < end`, in the reduction.
static Value isBelow(Arithmetic &at, Value element, Value end) {
  return arith::CmpIOp::create(at.builder, at.loc, arith::CmpIPredicate::slt, element, end);
}

/// A range of `scale` values of the index. Returns the condition that is left.
Value IndexSelector::takeRange(const Selection &selection, Value key) {
  const unsigned n = selection.index;
  Value lower = reduce.getLower()[n], upper = reduce.getUpper()[n], holds;
  Value scale = math.number(selection.scale);
  Value start = math.sub(math.mul(key, scale), outside(selection.offset, false));
  Value before = math.sub(lower, start), left = math.sub(upper, start);
  auto argument = dyn_cast<BlockArgument>(key);
  const bool beginsInside = getConstantIndex(lower) == 0 && selection.offset.empty() && argument &&
                            argument.getOwner() == compute.getBlock();
  reduce.getLowerMutable()[n].set(math.number(0));
  reduce.getUpperMutable()[n].set(scale);
  replaceIndex(n, [&](Arithmetic &at, Value count) {
    holds = isBelow(at, count, left);
    if (!beginsInside) {
      Value begins =
          arith::CmpIOp::create(at.builder, at.loc, arith::CmpIPredicate::sge, count, before);
      holds = arith::AndIOp::create(at.builder, at.loc, holds, begins);
    }
    return at.add(start, count);
  });
  return holds;
}

/// `count`, or 0 if `key` is no remainder.
Value IndexSelector::countOf(const Selection &selection, Value key, Value count) {
  Location loc = reduce.getLoc();
  auto argument = dyn_cast<BlockArgument>(key);
  const bool isOfCompute = argument && argument.getOwner() == compute.getBlock();
  std::optional<int64_t> most;
  if (isOfCompute)
    most = getSizeFact(kernel, compute.getExtents()[argument.getArgNumber()]).upper;
  Value none = math.number(0), keys = math.number(*selection.numKeys);
  auto onlyIf = [&](arith::CmpIPredicate predicate, Value bound) {
    Value isKey = arith::CmpIOp::create(builder, loc, predicate, key, bound);
    count = arith::SelectOp::create(builder, loc, isKey, count, none);
  };
  if (!most || *most > *selection.numKeys)
    onlyIf(arith::CmpIPredicate::slt, keys);
  if (!isOfCompute)
    onlyIf(arith::CmpIPredicate::sge, none);
  return count;
}

/// Every `period`-th range of `scale` values of the index. Returns the condition that is left.
Value IndexSelector::takeSteps(const Selection &selection, Value key) {
  const unsigned n = selection.index;
  Location loc = reduce.getLoc();
  Value upper = reduce.getUpper()[n], period = math.number(selection.period), holds, within;
  Value start = math.mul(key, math.number(selection.scale));
  if (!selection.offset.empty())
    start = math.mod(math.sub(start, outside(selection.offset, false)), period);
  Value count = countOf(selection, key, math.ceilDiv(math.sub(upper, start), selection.period));
  // A bound outside of the compute op lets long sums be cut in chunks.
  OpBuilder before(compute);
  Arithmetic outer{before, loc};
  const bool isOuter = !compute->isAncestor(upper.getParentBlock()->getParentOp());
  reduce.getUpperMutable()[n].set((isOuter ? outer : math).ceilDiv(upper, selection.period));
  const bool isWhole = getSizeFact(kernel, upper).divisor % selection.scale == 0;
  if (selection.scale > 1) {
    SmallVector<Attribute> names(reduce.getIndexNames().begin(), reduce.getIndexNames().end());
    names.push_back(builder.getStringAttr(cast<StringAttr>(names[n]).getValue().str() + ".within"));
    const unsigned last = reduce.getNumIndices();
    reduce->insertOperands(last, {math.number(0)});
    reduce->insertOperands(2 * last + 1, {math.number(selection.scale)});
    reduce.setIndexNamesAttr(builder.getArrayAttr(names));
    within = reduce.getBlock()->insertArgument(last, builder.getIndexType(), loc);
  }
  replaceIndex(n, [&](Arithmetic &at, Value step) {
    holds = isBelow(at, step, count);
    Value index = at.add(start, at.mul(step, at.number(selection.period)));
    if (within)
      index = at.add(index, within);
    if (within && !isWhole)
      holds = arith::AndIOp::create(at.builder, at.loc, holds, isBelow(at, index, upper));
    return index;
  });
  return holds;
}

void IndexSelector::rewrite(const Selection &selection) {
  Value key = outside(selection.key, !selection.isNegative);
  Value holds = selection.period > 0 ? takeSteps(selection, key) : takeRange(selection, key);
  arith::CmpIOp condition = selection.condition;
  condition->replaceUsesWithIf(ValueRange(holds), [&](OpOperand &use) {
    return reduce.getBody().isAncestor(use.getOwner()->getParentRegion());
  });
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " runs over the indices whose " +
           (selection.period > 0 ? "remainder" : "quotient") + " its mask asks for");
}

bool IndexSelector::run() {
  ReduceKind kind = reduce.getKind(0);
  if (reduce.isOnline() || isArgReduction(kind))
    return false;
  for (auto [condition, from, divisor] : TermConditions(reduce).found) {
    std::optional<Selection> selection = from || divisor ? std::nullopt : match(condition);
    if (!selection)
      continue;
    rewrite(*selection);
    return true;
  }
  return false;
}

unsigned tk::selectIndices(KernelOp kernel) {
  unsigned numChanged = 0;
  for (auto compute : kernel.getBody().getOps<ComputeOp>())
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
      while (IndexSelector(kernel, compute, reduce).run())
        ++numChanged;
  return numChanged;
}
