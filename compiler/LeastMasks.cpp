//===- LeastMasks.cpp - how often a program's values are needed -----------===//
//
// 1. The share that a mask keeps is that of points, spread evenly over the ranges of its indices,
//    at which its condition holds.
// 2. Elements that a mask replaces are all one constant. A value that is computed from the mask's
//    result therefore varies with all of its indices in the kept places alone.
// 3. The elements of a value that only masks use are needed in the places that one of them keeps.
// 4. A program must compute an element if both hold.
//
//===----------------------------------------------------------------------===//
#include "compiler/LeastMasks.h"

#include "passes/analysis/OffsetRanges.h"

#include <cmath>

using namespace mlir;

namespace tk {

/// Points at which conditions are evaluated: shares are right to about a thousandth.
static constexpr unsigned numPoints = 4096;

bool isIteration(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getType().isIndex() &&
         isa<ComputeOp, ReduceOp, ScanOp>(argument.getOwner()->getParentOp());
}

std::optional<Mask> maskOf(Operation *op) {
  auto choice = dyn_cast_if_present<arith::SelectOp>(op);
  if (!choice)
    return std::nullopt;
  const bool isFirst = !choice.getTrueValue().getDefiningOp<arith::ConstantOp>();
  const Value kept = isFirst ? choice.getTrueValue() : choice.getFalseValue();
  const Value other = isFirst ? choice.getFalseValue() : choice.getTrueValue();
  if (!other.getDefiningOp<arith::ConstantOp>() || kept.getDefiningOp<arith::ConstantOp>())
    return std::nullopt;
  return Mask{choice.getCondition(), kept, isFirst};
}

const Indices &IterationSpace::indicesOf(Value value) {
  auto [known, isNew] = indices.try_emplace(value);
  if (!isNew)
    return known->second;
  Indices result;
  if (isIteration(value))
    result.insert(cast<BlockArgument>(value));
  else if (Operation *op = value.getDefiningOp())
    addOperands(op, result);
  return indices[value] = std::move(result);
}

void IterationSpace::addOperands(Operation *op, Indices &result) {
  for (Value operand : op->getOperands())
    result.insert_range(indicesOf(operand));
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        for (BlockArgument index : indicesOf(operand))
          if (!op->isAncestor(index.getOwner()->getParentOp()))
            result.insert(index);
    });
}

/// An integer at a point, or, without one, its mean over all iterations.
double IterationSpace::integer(Value value, const Point *point) {
  if (isIteration(value)) {
    if (point)
      if (auto at = point->find(value); at != point->end())
        return at->second;
    auto [lower, upper] = boundsOf(cast<BlockArgument>(value));
    return lower + std::max(upper - lower - 1, 0.0) / 2;
  }
  if (std::optional<Expr> expr = exprs.build(value))
    if (Expected<int64_t> result = expr->evaluate_integer(variables))
      return static_cast<double>(*result);
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() != 2)
    return 0;
  const double a = integer(op->getOperand(0), point), b = integer(op->getOperand(1), point);
  if (isa<arith::AddIOp>(op))
    return a + b;
  if (isa<arith::SubIOp>(op))
    return a - b;
  if (isa<arith::MulIOp>(op))
    return a * b;
  if (isa<FloorDivOp>(op))
    return b <= 0 ? 0 : point ? std::floor(a / b) : a / b;
  if (isa<FloorModOp>(op))
    return b > 0 && point ? a - b * std::floor(a / b) : 0;
  if (isa<arith::MinSIOp>(op))
    return std::min(a, b);
  if (isa<arith::MaxSIOp>(op))
    return std::max(a, b);
  return 0;
}

std::pair<double, double> IterationSpace::boundsOf(BlockArgument index) {
  Operation *owner = index.getOwner()->getParentOp();
  const unsigned n = index.getArgNumber();
  if (auto compute = dyn_cast<ComputeOp>(owner))
    return {0, mean(compute.getExtents()[n])};
  if (auto reduce = dyn_cast<ReduceOp>(owner))
    return {mean(reduce.getLower()[n]), mean(reduce.getUpper()[n])};
  auto scan = cast<ScanOp>(owner);
  return {mean(scan.getLower()), mean(scan.getUpper())};
}

double IterationSpace::combinations(const Indices &of) {
  double total = 1;
  for (BlockArgument index : of) {
    auto [lower, upper] = boundsOf(index);
    total *= std::max(upper - lower, 0.0);
  }
  return total;
}

/// Whether an integer is computed from indices and sizes alone.
bool IterationSpace::isOfIndices(Value value) {
  if (isIteration(value) || exprs.build(value))
    return true;
  Operation *op = value.getDefiningOp();
  return isa_and_present<arith::AddIOp, arith::SubIOp, arith::MulIOp, FloorDivOp, FloorModOp,
                         arith::MinSIOp, arith::MaxSIOp>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isOfIndices(operand); });
}

std::optional<bool> IterationSpace::holds(Value condition, const Point &point) {
  Operation *op = condition.getDefiningOp();
  if (auto compare = dyn_cast_if_present<arith::CmpIOp>(op)) {
    if (!compare.getLhs().getType().isIndex() || !isOfIndices(compare.getLhs()) ||
        !isOfIndices(compare.getRhs()))
      return std::nullopt;
    auto side = [&](Value value) {
      return APInt(64, static_cast<uint64_t>(static_cast<int64_t>(integer(value, &point))), true);
    };
    return arith::applyCmpPredicate(compare.getPredicate(), side(compare.getLhs()),
                                    side(compare.getRhs()));
  }
  if (!isa_and_present<arith::AndIOp, arith::OrIOp>(op))
    return std::nullopt;
  const std::optional<bool> a = holds(op->getOperand(0), point);
  const std::optional<bool> b = holds(op->getOperand(1), point);
  // One that is not known may hold wherever the other does.
  if (isa<arith::AndIOp>(op))
    return a && b ? std::optional(*a && *b) : a ? a : b;
  return a && b ? std::optional(*a || *b) : std::nullopt;
}

double IterationSpace::shareKept(const Mask &mask) {
  const Indices &of = indicesOf(mask.condition);
  if (of.empty())
    return 1;
  if (BlockArgument row = rowOfMask(mask.condition); row && mask.keepsWhereTrue) {
    auto [lower, upper] = boundsOf(row);
    return 1 / std::max(upper - lower, 1.0);
  }
  // The powers of the root of x^(d + 1) = x + 1 spread points evenly over d axes.
  double root = 2;
  for (int i = 0; i < 32; ++i)
    root = std::pow(1 + root, 1.0 / (static_cast<double>(of.size()) + 1));
  unsigned kept = 0;
  for (unsigned p = 0; p < numPoints; ++p) {
    Point point;
    double step = 1;
    for (BlockArgument index : of) {
      step /= root;
      auto [lower, upper] = boundsOf(index);
      const double place = std::fmod(0.5 + step * (p + 1), 1.0);
      point[index] = lower + std::floor(place * std::max(upper - lower, 1.0));
    }
    const std::optional<bool> is = holds(mask.condition, point);
    if (!is)
      return 1;
    kept += *is == mask.keepsWhereTrue;
  }
  return std::max(kept, 1u) / static_cast<double>(numPoints);
}

double IterationSpace::shareVaried(Value value) {
  if (auto known = varied.find(value); known != varied.end())
    return known->second;
  double share = 1;
  Operation *op = value.getDefiningOp();
  if (auto load = dyn_cast_if_present<LoadOp>(op)) {
    auto result = dyn_cast<OpResult>(load.getTensor());
    auto compute = load.getTensor().getDefiningOp<ComputeOp>();
    if (compute)
      share = shareVaried(compute.getYield().getValues()[result.getResultNumber()]);
  } else if (std::optional<Mask> mask = maskOf(op)) {
    share = shareKept(*mask) * shareVaried(mask->kept);
  } else if (op && op->getNumRegions() == 0 && op->getNumOperands() > 0) {
    share = shareOfOperands(op);
  }
  return varied[value] = share;
}

/// Of operands that have all indices, the one that varies most decides; else all of them do.
double IterationSpace::shareOfOperands(Operation *op) {
  const size_t all = indicesOf(op->getResult(0)).size();
  double most = 0, product = 1;
  bool isWhole = false;
  for (Value operand : op->getOperands()) {
    const double share = shareVaried(operand);
    product *= share;
    if (indicesOf(operand).size() == all)
      most = std::max(most, share), isWhole = true;
  }
  return isWhole ? most : product;
}

double IterationSpace::shareUsed(Value value) {
  if (auto known = used.find(value); known != used.end())
    return known->second;
  double share = value.use_empty() ? 1 : 0;
  for (OpOperand &use : value.getUses())
    share = std::max(share, shareUsedBy(use));
  return used[value] = share;
}

double IterationSpace::shareUsedBy(OpOperand &use) {
  Operation *user = use.getOwner();
  if (auto yield = dyn_cast<YieldOp>(user)) {
    // What a reduction or a statement yields is used as its own result is.
    Operation *parent = yield->getParentOp();
    return parent->getNumResults() == 1 ? shareUsed(parent->getResult(0)) : 1;
  }
  if (std::optional<Mask> mask = maskOf(user); mask && mask->kept == use.get())
    return shareKept(*mask) * shareUsed(user->getResult(0));
  return user->getNumResults() == 1 ? shareUsed(user->getResult(0)) : 1;
}

double IterationSpace::count(Value value) {
  return combinations(indicesOf(value)) * std::min(shareVaried(value), shareUsed(value));
}

double IterationSpace::shareOfTerm(ReduceOp reduce, Value term) {
  const double use = reduce->getNumResults() == 1 ? shareUsed(reduce->getResult(0)) : 1;
  return std::min(shareVaried(term), use);
}

} // namespace tk
