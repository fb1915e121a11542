//===- PadConditions.cpp - conditions that say what a pad says ------------===//
//
// A convolution may be written with a condition that keeps its accesses inside the image. The load
// under the condition has a pad of 0 already. Where the condition only says that the load is
// inside, the pad says the same, and the sum is one over windows:
//
//   select (h + r >= 1 and h + r <= H), (load x[h + r - 1] pad 0), 0
//     =>
//   load x[h + r - 1] pad 0
//
// 1. Take the condition of a choice against 0 apart. Each part is F >= 0, where F is a sum of
//    indices and sizes with whole factors.
// 2. Find a load with a pad of 0 that the value is, or is multiplied by. A part goes if it is one
//    of the load's bounds: where it does not hold, the load is 0. Only remainders of indices may be
//    left, for tk-split-residues.
// 3. A choice between the load alone and 0 goes with its last part. A choice between a product and
//    0 does not: 0 times an infinity or NaN is NaN. The product is then stored by itself, and
//    results that are NaN are computed again as the program has them, as tk-mask-operands does.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/PadConditions.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/limits/Operands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <map>

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-simplify:pad-conditions";

namespace {
/// A sum of values with whole factors, and a constant under null.
class Linear {
public:
  explicit Linear(Value value, int64_t factor = 1) { add(value, factor); }
  Linear minus(Value other, int64_t rest = 0) const {
    Linear result = *this;
    result.add(other, -1);
    result.addTo(Value(), -rest);
    return result;
  }
  bool operator==(const Linear &other) const { return terms == other.terms; }

private:
  void add(Value value, int64_t factor);
  void addTo(Value value, int64_t factor) {
    auto [term, isNew] = terms.try_emplace(value.getAsOpaquePointer(), 0);
    term->second += factor;
    if (term->second == 0)
      terms.erase(term);
  }
  std::map<const void *, int64_t> terms;
};
} // namespace

void Linear::add(Value value, int64_t factor) {
  if (std::optional<int64_t> number = getConstantIndex(value))
    return addTo(Value(), *number * factor);
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    add(op->getOperand(0), factor);
    return add(op->getOperand(1), isa<arith::AddIOp>(op) ? factor : -factor);
  }
  if (isa_and_nonnull<arith::MulIOp>(op))
    for (unsigned side : {0, 1})
      if (std::optional<int64_t> times = getConstantIndex(op->getOperand(side)))
        return add(op->getOperand(1 - side), factor * *times);
  addTo(value, factor);
}

/// What is at least 0 where `part` holds; nothing if it is no comparison of indices.
static std::optional<Linear> boundOf(Value part) {
  using P = arith::CmpIPredicate;
  auto compare = part.getDefiningOp<arith::CmpIOp>();
  if (!compare || !compare.getLhs().getType().isIndex())
    return std::nullopt;
  Value left = compare.getLhs(), right = compare.getRhs();
  switch (compare.getPredicate()) {
  case P::sge:
    return Linear(left).minus(right);
  case P::sgt:
    return Linear(left).minus(right, 1);
  case P::sle:
    return Linear(right).minus(left);
  case P::slt:
    return Linear(right).minus(left, 1);
  default:
    return std::nullopt;
  }
}

static void collectParts(Value condition, SmallVectorImpl<Value> &parts) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    collectParts(both.getLhs(), parts);
    collectParts(both.getRhs(), parts);
  } else {
    parts.push_back(condition);
  }
}

/// The loads with a pad of 0 that `value` is, but for its type, or is multiplied by.
static void collectPadded(Value value, SmallVectorImpl<LoadOp> &loads) {
  Operation *op = value.getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadOp>(op)) {
    if (load.getPad() && isZero(load.getPad()))
      loads.push_back(load);
  } else if (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp, arith::NegFOp, arith::MulFOp>(op)) {
    for (Value operand : op->getOperands())
      collectPadded(operand, loads);
  }
}

/// What is at least 0 where `load` is inside its tensor. Of quotients by a constant what is divided
/// has bounds, too.
static SmallVector<Linear> boundsOf(KernelOp kernel, LoadOp load) {
  SmallVector<Linear> bounds;
  for (auto [index, extent] :
       llvm::zip_equal(load.getIndices(), getExtents(kernel, load.getTensor()))) {
    bounds.push_back(Linear(index));
    bounds.push_back(Linear(extent).minus(index, 1));
    auto quotient = index.getDefiningOp<FloorDivOp>();
    std::optional<int64_t> divisor = quotient ? getConstantIndex(quotient.getRhs()) : std::nullopt;
    if (divisor && *divisor > 0) {
      bounds.push_back(Linear(quotient.getLhs()));
      bounds.push_back(Linear(extent, *divisor).minus(quotient.getLhs(), 1));
    }
  }
  return bounds;
}

/// Are the indices of sums that `part` has those of short windows? Of long ones a condition leaves
/// so many terms out that the sum is to end there (tk-restrict-ranges).
static bool isOfWindow(Value part) {
  return llvm::all_of(getIterationIndices(part), [](BlockArgument index) {
    auto reduce = dyn_cast<ReduceOp>(index.getOwner()->getParentOp());
    if (!reduce)
      return true;
    const int64_t most = getUpperBound(reduce.getUpper()[index.getArgNumber()]);
    return most >= 0 && most <= limits::pad_conditions::mostTaps;
  });
}

/// Does `part` leave all but one of the remainders of an index out, as where results are at every
/// second place?
static bool isOfResidue(Value part) {
  auto compare = part.getDefiningOp<arith::CmpIOp>();
  return compare && compare.getPredicate() == arith::CmpIPredicate::eq &&
         (compare.getLhs().getDefiningOp<FloorModOp>() ||
          compare.getRhs().getDefiningOp<FloorModOp>());
}

/// The parts of the condition of `choice` that are no bounds of one load that it chooses; nothing
/// if they are more than residues, or all.
static std::optional<SmallVector<Value>> partsBesidePad(KernelOp kernel, arith::SelectOp choice) {
  SmallVector<Value> parts;
  SmallVector<LoadOp> loads;
  collectParts(choice.getCondition(), parts);
  collectPadded(choice.getTrueValue(), loads);
  for (LoadOp load : loads) {
    const SmallVector<Linear> bounds = boundsOf(kernel, load);
    SmallVector<Value> rest;
    for (Value part : parts)
      if (std::optional<Linear> bound = boundOf(part);
          !bound || !isOfWindow(part) || !llvm::is_contained(bounds, *bound))
        rest.push_back(part);
    if (rest.size() < parts.size() && llvm::all_of(rest, isOfResidue))
      return rest;
  }
  return std::nullopt;
}

/// Is `value` a load, but for its type?
static bool isLoaded(Value value) {
  while (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp, arith::NegFOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return isa_and_nonnull<LoadOp>(value.getDefiningOp());
}

bool tk::saysInside(KernelOp kernel, Value condition, ArrayRef<LoadOp> loads) {
  SmallVector<Value> parts;
  collectParts(condition, parts);
  return llvm::all_of(parts, [&](Value part) {
    std::optional<Linear> bound = boundOf(part);
    return bound && llvm::any_of(loads, [&](LoadOp load) {
             return llvm::is_contained(boundsOf(kernel, load), *bound);
           });
  });
}

void tk::computeNaNAgain(ReduceOp reduce, Value result) {
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, result, result);
  reduce.getUpperMutable()[0].set(
      arith::SelectOp::create(builder, loc, isNaN, reduce.getUpper()[0], reduce.getLower()[0]));
  builder.setInsertionPointAfter(reduce);
  auto chosen = arith::SelectOp::create(builder, loc, isNaN, reduce.getResult(0), result);
  reduce.getResult(0).replaceAllUsesExcept(chosen, chosen);
}

ComputeOp tk::copySum(ComputeOp compute, ReduceOp reduce, StringRef suffix) {
  OpBuilder builder(compute);
  SmallVector<StringRef> names;
  for (Attribute name : compute.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + suffix).str();
  return ComputeOp::create(
      builder, reduce.getLoc(), names, compute.getExtents(),
      ArrayRef<Type>{reduce.getResult(0).getType()}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location at, ValueRange indices) {
        IRMapping mapping;
        mapping.map(compute.getBlock()->getArguments(), indices);
        YieldOp::create(body, at,
                        cloneSlice(body, reduce.getResult(0), compute.getBlock(), mapping));
      });
}

/// Stores the product by itself, with its results in f32, and lets `reduce` compute those again
/// that are NaN.
static void storeProduct(ComputeOp compute, ReduceOp reduce) {
  auto kernel = compute->getParentOfType<KernelOp>();
  ComputeOp stored = copySum(compute, reduce, ".padded");
  OpBuilder builder(compute);
  stored->setAttr(storedApartAttrName, builder.getUnitAttr());
  ReduceOp copy = *stored.getBlock()->getOps<ReduceOp>().begin();
  Location loc = reduce.getLoc();
  auto end = copy.getYield();
  auto choice = end.getValues()[0].getDefiningOp<arith::SelectOp>();
  Value condition;
  builder.setInsertionPoint(end);
  const SmallVector<Value> rest = *partsBesidePad(kernel, choice);
  for (Value part : rest)
    condition = condition ? arith::AndIOp::create(builder, loc, condition, part).getResult() : part;
  if (condition)
    choice.getConditionMutable().assign(condition), choice->moveBefore(end);
  else
    end->setOperand(0, choice.getTrueValue());
  eraseDead(stored);

  builder.setInsertionPoint(reduce);
  computeNaNAgain(reduce, LoadOp::create(builder, loc, stored->getResult(0),
                                         compute.getBlock()->getArguments(), Value()));
}

/// Is `reduce` a sum of products under a condition that says what the pad of a factor says?
static bool isPaddedProduct(KernelOp kernel, ComputeOp compute, ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumAccumulators() != 1 ||
      reduce.getKind(0) != ReduceKind::Sum || !reduce.getResult(0).getType().isF32())
    return false;
  auto choice = reduce.getYield().getValues()[0].getDefiningOp<arith::SelectOp>();
  return choice && isZero(choice.getFalseValue()) && partsBesidePad(kernel, choice) &&
         isMatrixProductIn(reduce, choice.getTrueValue()) &&
         llvm::all_of(reduce.getUpper(), [&](Value end) { return isKernelLevel(end, compute); });
}

bool tk::padConditions(ComputeOp compute, bool splits) {
  auto kernel = compute->getParentOfType<KernelOp>();
  bool changed = false;
  SmallVector<arith::SelectOp> choices;
  compute->walk([&](arith::SelectOp choice) { choices.push_back(choice); });
  for (arith::SelectOp choice : choices)
    if (isZero(choice.getFalseValue()) && isLoaded(choice.getTrueValue()) &&
        partsBesidePad(kernel, choice) == SmallVector<Value>()) {
      choice.replaceAllUsesWith(choice.getTrueValue());
      choice.erase();
      changed = true;
    }
  if (!splits || compute.getNumResults() != 1 || compute.getResultIndices())
    return changed;
  SmallVector<ReduceOp> reduces(compute.getBlock()->getOps<ReduceOp>());
  for (ReduceOp reduce : reduces)
    if (isPaddedProduct(kernel, compute, reduce)) {
      note(reduce, passName, Verdict::Derived,
           "the condition of the " + describe(reduce) +
               " says what a pad of 0 says; results that are NaN are computed again");
      storeProduct(compute, reduce);
      changed = true;
    }
  return changed;
}
