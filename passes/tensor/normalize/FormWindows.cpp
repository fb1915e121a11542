//===- FormWindows.cpp - ranges of a bounded length begin at 0 ------------===//
//
// A reduction over a range that begins at an expression of a result's index, such as
// `sum[k in 4 * i..4 * i + 4](x[k])`, has a mask over all of `x`. Its range is as long for each
// result, so that it is a window: `sum[k in 0..4](x[4 * i + k])`. Windows are written out, split
// into axes and planned by their length. Sizes that are not known do not matter.
//
// 1. Find two conditions on an index, `begin <= k` and `k < end`, without which the term is the
//    identity value. A bound of the reduction may stand for one of them. An equation with
//    remainders, such as `k - k % 2 == i`, stands for both and stays.
// 2. Take the difference of the two as a sum of products (IndexSum.h). It has no index, or only
//    quotients whose difference is bounded: `(i * N + N + 6) / 7 - i * N / 7`.
// 3. The index runs from 0 to that length and is added to `begin`. The condition on the end stays
//    if ranges differ in length.
// 4. A place outside of the reduction's bounds is masked. If the term is an element of a tensor
//    that is as long, the load brings the identity value instead.
//
// The pass declines sums of more than 8 products and reductions over a matrix product's results:
// these have tiles of rows that share their terms. It declines lengths that are not known to be at
// most half of the reduction's range.
//
//   %s = tk.reduce [sum] ["k"] from(0) to(%N) {select (4 * %i <= %k and %k < 4 * %i + 4), x[%k], 0}
//     =>
//   %s = tk.reduce [sum] ["k"] from(0) to(4) {x[4 * %i + %k]}
//

//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/Simplify.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/TermConditions.h"
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/normalize/RangeEnds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

using namespace limits::form_windows;

/// Is a matrix product, or a scan, among what the loads of `scope` read?
static bool readsProducts(Operation *scope) {
  return scope
      ->walk([&](LoadOp load) {
        auto producer = load.getTensor().getDefiningOp<ComputeOp>();
        if (!producer)
          return WalkResult::advance();
        const ProducerKind kind = classify(cast<OpResult>(load.getTensor()));
        return kind == ProducerKind::Products || kind == ProducerKind::Scan ||
                       readsProducts(producer)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The term of `reduce` inside its choices against the identity value.
static Value termWithoutMasks(ReduceOp reduce) {
  Value term = reduce.getYield().getValues()[0];
  while (auto masked = term.getDefiningOp<arith::SelectOp>()) {
    if (!isIdentity(masked.getFalseValue(), reduce.getKind(0)))
      break;
    term = masked.getTrueValue();
  }
  return term;
}

namespace {

class WindowForming {
public:
  explicit WindowForming(ReduceOp reduce)
      : reduce(reduce), kernel(reduce->getParentOfType<KernelOp>()),
        varying(reduce.getBlock()->getArguments()),
        isProduct(isContractionTerm(reduce, termWithoutMasks(reduce))) {}

  bool run();

private:
  struct Window {
    RangeEnd begin, end;
    RangeLength length;
    int64_t most;
  };

  void collectEnds();
  std::optional<Window> findWindow(unsigned position);
  bool isWithin(const Window &window, bool atBegin);
  bool padPlainTerm(Value place, Value lower, Value upper);
  void maskPlaces(Value place, Value lower, Value upper);
  void rewrite(const Window &window);

  ReduceOp reduce;
  KernelOp kernel;
  Dependence varying;
  bool isProduct; ///< of two operands, summed
  SmallVector<RangeEnd> begins, ends;
};

} // namespace

void WindowForming::collectEnds() {
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n) {
    Value lower = reduce.getLower()[n], upper = reduce.getUpper()[n];
    begins.push_back({n, true, IndexSum(lower), lower, Value()});
    ends.push_back({n, false, IndexSum(upper), upper, Value()});
  }
  for (const auto &[condition, from, divisor] : TermConditions(reduce).found) {
    if (from || divisor)
      continue;
    if (std::optional<RangeEnd> end = matchRangeEnd(reduce, condition, varying))
      (end->isBegin ? begins : ends).push_back(*end);
    if (auto both = matchEquation(reduce, condition, varying)) {
      begins.push_back(both->first);
      ends.push_back(both->second);
    }
  }
}

/// The shortest window that the index at `position` runs over.
std::optional<WindowForming::Window> WindowForming::findWindow(unsigned position) {
  std::optional<Window> best;
  const std::optional<int64_t> all = getSizeFact(kernel, reduce.getUpper()[position]).upper;
  OpBuilder builder(reduce);
  for (const RangeEnd &begin : begins)
    for (const RangeEnd &end : ends) {
      if (begin.position != position || end.position != position || !begin.at.varies())
        continue;
      std::optional<RangeLength> length = lengthOfRange(begin.at, end.at);
      if (!length)
        continue;
      Value most = length->create(builder, reduce.getLoc(), reduce.getBlock());
      const std::optional<int64_t> upper = getSizeFact(kernel, most).upper;
      if (!upper || *upper > (isProduct ? mostTermsOfProduct : mostTerms) ||
          (all && *all < leastShare * *upper) || (best && *upper >= best->most))
        continue;
      best = Window{begin, end, *length, *upper};
    }
  return best;
}

/// Is a window known not to begin before the reduction's range, or not to end behind it?
bool WindowForming::isWithin(const Window &window, bool atBegin) {
  const unsigned n = window.begin.position;
  if (atBegin) {
    IndexSum inside = window.begin.at;
    return inside.add(IndexSum(reduce.getLower()[n]), -1).isNotNegative();
  }
  if (!window.end.condition && !window.end.isImplied)
    return window.length.isExact;
  std::optional<IndexSum> last =
      window.end.value ? greatestOf(kernel, window.end.value) : std::nullopt;
  if (!last)
    return false;
  IndexSum left(reduce.getUpper()[n]);
  return left.add(*last, -1).withWholeSizes(kernel).isNotNegative();
}

/// Is `condition` made of constants that hold?
static bool isTrue(Value condition) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>())
    return isTrue(both.getLhs()) && isTrue(both.getRhs());
  return isConstantIntValue(condition, 1) || isConstantIntValue(condition, -1);
}

/// Gives the load that a term is, under its masks, the identity value outside of its axis; false if
/// the term is no load, or if there are places inside that the reduction does not have.
bool WindowForming::padPlainTerm(Value place, Value lower, Value upper) {
  Value term = termWithoutMasks(reduce);
  while (auto extension = term.getDefiningOp<arith::ExtFOp>())
    term = extension.getIn();
  auto load = term.getDefiningOp<LoadOp>();
  if (!load || load.getPad() || !isa<FloatType>(load.getResult().getType()) ||
      (lower && !isConstantIntValue(lower, 0)))
    return false;
  SmallVector<Value> extents = getExtents(kernel, load.getTensor());
  for (auto [axis, index] : llvm::enumerate(load.getIndices()))
    if (index == place && (!upper || isSameExtent(extents[axis], upper))) {
      OpBuilder builder(load);
      load.getPadMutable().assign(
          createIdentity(builder, load.getLoc(), reduce.getKind(0), load.getResult().getType()));
      return true;
    }
  return false;
}

/// Masks the terms at places outside of `lower .. upper`. Loads there bring zeros.
void WindowForming::maskPlaces(Value place, Value lower, Value upper) {
  Location loc = reduce.getLoc();
  YieldOp yield = reduce.getYield();
  OpBuilder builder(yield);
  const bool isPadded = (lower || upper) && padPlainTerm(place, lower, upper);
  Dependence onPlace(ValueRange{place});
  for (LoadOp load : reduce.getBlock()->getOps<LoadOp>()) {
    if (load.getPad() ||
        llvm::none_of(load.getIndices(), [&](Value index) { return onPlace.on(index); }))
      continue;
    OpBuilder before(load);
    load.getPadMutable().assign(
        createIdentity(before, loc, ReduceKind::Sum, load.getResult().getType()));
  }
  if (isPadded)
    return;
  Value isInside;
  for (auto [bound, predicate] :
       {std::pair(lower, arith::CmpIPredicate::sge), std::pair(upper, arith::CmpIPredicate::slt)}) {
    if (!bound)
      continue;
    Value holds = arith::CmpIOp::create(builder, loc, predicate, place, bound);
    isInside = isInside ? arith::AndIOp::create(builder, loc, isInside, holds).getResult() : holds;
  }
  if (!isInside)
    return;
  Value term = yield.getValues()[0];
  Value identity = createIdentity(builder, loc, reduce.getKind(0), term.getType());
  yield->setOperand(0, arith::SelectOp::create(builder, loc, isInside, term, identity));
}

void WindowForming::rewrite(const Window &window) {
  const unsigned n = window.begin.position;
  const bool isAfterBegin = isWithin(window, true), isBeforeEnd = isWithin(window, false);
  Location loc = reduce.getLoc();
  Value lower = reduce.getLower()[n], upper = reduce.getUpper()[n];
  OpBuilder builder(reduce);
  Value length = window.length.create(builder, loc, reduce.getBlock());
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value holds = arith::ConstantIntOp::create(builder, loc, 1, 1);
  for (RangeEnd end : {window.begin, window.end})
    if (end.condition && (end.isBegin || window.length.isExact))
      end.condition.replaceUsesWithIf(holds, [&](OpOperand &use) {
        return reduce.getBody().isAncestor(use.getOwner()->getParentRegion());
      });
  reduce.getLowerMutable()[n].set(zero);
  reduce.getUpperMutable()[n].set(length);
  builder.setInsertionPointToStart(reduce.getBlock());
  IRMapping mapping;
  Value first = window.begin.value
                    ? cloneSlice(builder, window.begin.value, reduce.getBlock(), mapping)
                    : window.begin.at.create(builder, loc, reduce.getBlock());
  BlockArgument index = reduce.getIndex(n);
  Value place = arith::AddIOp::create(builder, loc, first, index);
  index.replaceAllUsesExcept(place, place.getDefiningOp());
  YieldOp yield = reduce.getYield();
  if (auto masked = yield.getValues()[0].getDefiningOp<arith::SelectOp>();
      masked && isTrue(masked.getCondition()))
    yield->setOperand(0, masked.getTrueValue());
  if (!isAfterBegin || !isBeforeEnd || !window.length.isExact)
    maskPlaces(place, isAfterBegin ? Value() : lower, isBeforeEnd ? Value() : upper);
  note(reduce, "tk-simplify:form-windows", Verdict::Derived,
       "the " + describe(reduce) + " runs over a window from 0");
}

bool WindowForming::run() {
  const ReduceKind kind = reduce.getKind(0);
  if (reduce.isOnline() || reduce.getPrecision() != Precision::Default ||
      !llvm::is_contained({ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min},
                          kind) ||
      llvm::any_of(*reduce.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; }) ||
      readsProducts(reduce))
    return false;
  bool changed = false;
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n) {
    begins.clear();
    ends.clear();
    collectEnds();
    if (std::optional<Window> window = findWindow(n)) {
      rewrite(*window);
      changed = true;
    }
  }
  return changed;
}

bool tk::formWindow(ReduceOp reduce) { return WindowForming(reduce).run(); }
