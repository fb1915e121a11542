//===- RestrictRanges.cpp - masks become bounds of reductions -------------===//
//
// A causal mask makes about half of the elements of a reduction equal to its identity value. This
// pass turns such a mask into a loop bound, so that the masked elements are never computed.
//
// 1. Find conditions without which an element is the identity value. The search follows selections
//    against the identity. In sums it also follows products, roundings, exponentials of -inf, and
//    summands that share a condition.
// 2. Take comparisons that bound one index of the reduction by a value that does not vary in it.
//    The index must have the coefficient 1 or -1. 64-bit sums of indices and parameters, such as
//    `j + left >= i`, are included if they cannot overflow as 32-bit indices.
// 3. Raise the lower bound, or reduce the upper bound. The comparison then always holds inside the
//    reduction, and tk-simplify drops the selection.
// 4. A mask such as `j < n or i - j < w` has no single range. Rewrite each part as a comparison of
//    the index with an invariant value. tk-tile then skips the steps between the ranges
//    (BlockUnions.cpp).
// 5. A plain `exp(x - m)` of a masked element is 0, or NaN if `m` is -inf or NaN. If the reduction
//    leaves out any such element, the result is set to NaN for such `m`. A masked element that is
//    divided by 0 or NaN is NaN likewise.
//
// The pass declines masks that vary between results if the reduction is a window, that is, has at
// most 64 elements by constant bounds. Threads go through a window together and share its loads
// (PlanAcross.cpp), which separate bounds would prevent.
//
// In a batch-invariant kernel, a tile begins at a multiple of its length, whichever rows share it.
// A lower bound is therefore rounded down to a multiple of all tiles of contractions, and the mask
// stays. It stays without a lower bound in a kernel without contractions, and if it is a union.
//
// A masked element is left out, not multiplied by zero. An infinite operand beside it therefore
// does not make the sum NaN.
//
//   %s = tk.reduce [max] ["j"] to (%T) {               %e = addi %last, 1; %u = minsi %T, %e
//     %c = cmpi sle, %j, %last                    =>   %s = tk.reduce [max] ["j"] to (%u) {
//     %r = select %c, %x, -inf; yield %r }               yield %x }
//
//===----------------------------------------------------------------------===//
#include "dialects/tk/TkInvariance.h"
#include "passes/Passes.h"
#include "passes/analysis/Conditions.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarCases.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/ranges/IndexSides.h"
#include "passes/tensor/ranges/LeftOutTerms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

namespace tk {
#define GEN_PASS_DEF_RESTRICTRANGES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-restrict-ranges";

using namespace limits::restrict_ranges;

//===----------------------------------------------------------------------===//
// Comparisons as bounds
//===----------------------------------------------------------------------===//

/// The coefficient of `index` in `value`, a sum of terms; nothing if it is not linear in it or the
/// rest varies with `varying`.
static std::optional<int64_t> getCoefficient(Value value, Value index, Dependence &varying) {
  if (value == index)
    return 1;
  if (!varying.on(value))
    return canComputeEarlier(value) ? std::optional<int64_t>(0) : std::nullopt;
  Operation *op = value.getDefiningOp();
  if (!op || !isa<arith::AddIOp, arith::SubIOp>(op))
    return std::nullopt;
  auto a = getCoefficient(op->getOperand(0), index, varying);
  auto b = getCoefficient(op->getOperand(1), index, varying);
  if (!a || !b)
    return std::nullopt;
  return isa<arith::AddIOp>(op) ? *a + *b : *a - *b;
}

namespace {
/// A comparison `index predicate limit`.
struct IndexBound {
  unsigned index;
  arith::CmpIPredicate predicate;
  Value limit;
};

class RangeRestrictor {
public:
  explicit RangeRestrictor(ReduceOp reduce)
      : reduce(reduce), varying(reduce.getBlock()->getArguments()), builder(reduce) {}

  /// Returns the number of comparisons that became bounds.
  unsigned run();

private:
  std::optional<IndexBound> solve(arith::CmpIOp cmp);
  bool spellUnion(arith::OrIOp either);
  Value createRest(Value value, Value index);
  void tighten(const IndexBound &bound);
  void raiseToUnit(const IndexBound &bound);

  ReduceOp reduce;
  Dependence varying;
  OpBuilder builder;
};
} // namespace

/// `value` less `index`'s part, computed before the reduction. Null stands for 0.
Value RangeRestrictor::createRest(Value value, Value index) {
  if (value == index)
    return {};
  if (!varying.on(value)) {
    IRMapping mapping;
    return cloneSlice(builder, value, reduce.getBlock(), mapping);
  }
  Operation *op = value.getDefiningOp();
  Value a = createRest(op->getOperand(0), index), b = createRest(op->getOperand(1), index);
  if (!b)
    return a;
  if (!a && isa<arith::AddIOp>(op))
    return b;
  Location loc = op->getLoc();
  if (!a)
    a = arith::ConstantIndexOp::create(builder, loc, 0);
  return isa<arith::AddIOp>(op) ? arith::AddIOp::create(builder, loc, a, b).getResult()
                                : arith::SubIOp::create(builder, loc, a, b).getResult();
}

static arith::CmpIPredicate swapSides(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::slt:
    return arith::CmpIPredicate::sgt;
  case arith::CmpIPredicate::sle:
    return arith::CmpIPredicate::sge;
  case arith::CmpIPredicate::sgt:
    return arith::CmpIPredicate::slt;
  case arith::CmpIPredicate::sge:
    return arith::CmpIPredicate::sle;
  default:
    return predicate;
  }
}

std::optional<IndexBound> RangeRestrictor::solve(arith::CmpIOp cmp) {
  arith::CmpIPredicate predicate = cmp.getPredicate();
  if (predicate == arith::CmpIPredicate::ne || predicate > arith::CmpIPredicate::sge ||
      cmp.getLhs().getType().isInteger(1))
    return std::nullopt;
  IndexSides sides{reduce, varying, builder};
  Value lhs = sides.asIndex(cmp.getLhs(), cmp), rhs = sides.asIndex(cmp.getRhs(), cmp);
  if (!lhs || !rhs)
    return std::nullopt;
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n) {
    Value index = reduce.getIndex(n);
    auto left = getCoefficient(lhs, index, varying);
    auto right = getCoefficient(rhs, index, varying);
    if (!left || !right || std::abs(*left - *right) != 1 || std::abs(*left) + std::abs(*right) != 1)
      continue;
    Value a = createRest(lhs, index), b = createRest(rhs, index);
    // left: ±index + a against b; right: a against ±index + b.
    int64_t sign = *left + *right;
    bool onLeft = *left != 0;
    Value own = onLeft ? a : b, other = onLeft ? b : a;
    if (!onLeft)
      predicate = swapSides(predicate);
    Location loc = cmp.getLoc();
    if (sign < 0) { // own - index against other: index against own - other, sides swapped
      std::swap(own, other);
      predicate = swapSides(predicate);
    }
    if (!other)
      other = arith::ConstantIndexOp::create(builder, loc, 0);
    Value limit = own ? arith::SubIOp::create(builder, loc, other, own).getResult() : other;
    return IndexBound{n, predicate, limit};
  }
  return std::nullopt;
}

/// Writes a condition of which one part bounds an index above and another below as comparisons of
/// that index, `index < end or index >= begin`.
bool RangeRestrictor::spellUnion(arith::OrIOp either) {
  SmallVector<Value> parts;
  addParts<arith::OrIOp>(either, parts);
  SmallVector<IndexBound> bounds;
  for (Value part : parts) {
    auto cmp = part.getDefiningOp<arith::CmpIOp>();
    std::optional<IndexBound> bound = cmp ? solve(cmp) : std::nullopt;
    if (!bound || bound->predicate == arith::CmpIPredicate::eq ||
        (!bounds.empty() && bounds.front().index != bound->index))
      return false;
    bounds.push_back(*bound);
  }
  auto endsRange = [](const IndexBound &bound) {
    return bound.predicate == arith::CmpIPredicate::slt ||
           bound.predicate == arith::CmpIPredicate::sle;
  };
  if (llvm::all_of(bounds, endsRange) || llvm::none_of(bounds, endsRange))
    return false;
  Location loc = either.getLoc();
  OpBuilder inside(either);
  Value spelt;
  for (const IndexBound &bound : bounds) {
    Value limit = bound.limit;
    if (bound.predicate == arith::CmpIPredicate::sle ||
        bound.predicate == arith::CmpIPredicate::sgt) {
      Value one = arith::ConstantIndexOp::create(builder, loc, 1);
      limit = arith::AddIOp::create(builder, loc, limit, one);
    }
    Value holds = arith::CmpIOp::create(
        inside, loc, endsRange(bound) ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sge,
        reduce.getIndex(bound.index), limit);
    spelt = spelt ? arith::OrIOp::create(inside, loc, spelt, holds).getResult() : holds;
  }
  either.replaceAllUsesWith(spelt);
  note(reduce, passName, Verdict::Derived,
       "the mask of the " + describe(reduce) + " admits several ranges");
  return true;
}

/// Is `limit` one of those whose extreme `bound` is already?
template <typename ExtremeOp> static bool isBoundedBy(Value bound, Value limit) {
  if (auto extreme = bound.getDefiningOp<ExtremeOp>())
    return isBoundedBy<ExtremeOp>(extreme.getLhs(), limit) ||
           isBoundedBy<ExtremeOp>(extreme.getRhs(), limit);
  return ScalarEquality().equal(bound, limit);
}

void RangeRestrictor::tighten(const IndexBound &bound) {
  Location loc = reduce.getLoc();
  auto next = [&]() -> Value {
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    return arith::AddIOp::create(builder, loc, bound.limit, one);
  };
  auto raise = [&](Value limit) {
    OpOperand &lower = reduce.getLowerMutable()[bound.index];
    if (!isBoundedBy<arith::MaxSIOp>(lower.get(), limit))
      lower.set(arith::MaxSIOp::create(builder, loc, lower.get(), limit));
  };
  auto reduceTo = [&](Value limit) {
    OpOperand &upper = reduce.getUpperMutable()[bound.index];
    if (!isBoundedBy<arith::MinSIOp>(upper.get(), limit))
      upper.set(arith::MinSIOp::create(builder, loc, upper.get(), limit));
  };
  switch (bound.predicate) {
  case arith::CmpIPredicate::slt:
    return reduceTo(bound.limit);
  case arith::CmpIPredicate::sle:
    return reduceTo(next());
  case arith::CmpIPredicate::sgt:
    return raise(next());
  case arith::CmpIPredicate::sge:
    return raise(bound.limit);
  default: // eq
    raise(bound.limit);
    return reduceTo(next());
  }
}

/// Raises the lower bound of a batch-invariant kernel's contraction to the unit below that of a
/// mask, which stays.
void RangeRestrictor::raiseToUnit(const IndexBound &bound) {
  const bool hasProducts =
      reduce->getParentOfType<KernelOp>()
          ->walk([](ReduceOp other) {
            return isContraction(other) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  if (!hasProducts || bound.predicate == arith::CmpIPredicate::eq)
    return;
  Location loc = reduce.getLoc();
  Value unit = arith::ConstantIndexOp::create(builder, loc, beginUnit);
  Value count = FloorDivOp::create(builder, loc, bound.limit, unit);
  Value begin = arith::MulIOp::create(builder, loc, count, unit);
  OpOperand &lower = reduce.getLowerMutable()[bound.index];
  lower.set(arith::MaxSIOp::create(builder, loc, lower.get(), begin));
}

/// True if the reduction runs over few terms, whatever the sizes are.
static bool isWindow(ReduceOp reduce) {
  constexpr int64_t mostTerms = 64;
  int64_t terms = 1;
  for (auto [lower, upper] : llvm::zip_equal(reduce.getLower(), reduce.getUpper())) {
    std::optional<int64_t> first = getConstantIntValue(lower), end = getConstantIntValue(upper);
    if (!first || !end || *end - *first > mostTerms)
      return false;
    terms *= std::max<int64_t>(*end - *first, 1);
    if (terms > mostTerms)
      return false;
  }
  return true;
}

unsigned RangeRestrictor::run() {
  ReduceKind kind = reduce.getKind(0);
  if (reduce.isOnline() || isArgReduction(kind))
    return 0;
  unsigned count = 0;
  const bool keepsMasks = isWindow(reduce);
  const bool keepsBegins = isBatchInvariant(reduce);
  LeftOutTerms leftOut(reduce);
  for (const TermCondition &term : TermConditions(reduce).found) {
    Value condition = term.holds;
    if (auto either = condition.getDefiningOp<arith::OrIOp>(); either && !keepsMasks) {
      if (!keepsBegins)
        spellUnion(either);
      continue;
    }
    auto cmp = condition.getDefiningOp<arith::CmpIOp>();
    std::optional<IndexBound> bound = cmp ? solve(cmp) : std::nullopt;
    if (!bound || (keepsMasks && !getIterationIndices(bound->limit).empty()))
      continue;
    leftOut.beginChange(term, bound->index);
    const bool keepsMask = keepsBegins && bound->predicate != arith::CmpIPredicate::slt &&
                           bound->predicate != arith::CmpIPredicate::sle;
    if (keepsMask)
      raiseToUnit(*bound);
    else
      tighten(*bound);
    leftOut.endChange(term, bound->index);
    if (keepsMask)
      continue;
    Value holds = arith::ConstantIntOp::create(builder, reduce.getLoc(), 1, 1);
    condition.replaceUsesWithIf(holds, [&](OpOperand &use) {
      return reduce.getBody().isAncestor(use.getOwner()->getParentRegion());
    });
    ++count;
  }
  leftOut.keepNaN();
  if (count)
    note(reduce, passName, Verdict::Derived,
         "the " + describe(reduce) + " runs over the indices that its mask admits");
  return count;
}

namespace {
struct RestrictRangesPass : tk::impl::RestrictRangesBase<RestrictRangesPass> {
  void runOnOperation() override {
    SmallVector<ReduceOp> reduces;
    getOperation()->walk<WalkOrder::PreOrder>([&](ReduceOp reduce) { reduces.push_back(reduce); });
    for (ReduceOp reduce : reduces)
      numRestricted += RangeRestrictor(reduce).run();
  }
};
} // namespace
