//===- WindowPlaces.cpp - windows that bulk copies count through ----------===//
//
// Bulk copies take windows if
// 1. the tensor has 3 to 5 axes, and the first index is the first one counted through;
// 2. each other axis but the last has the next index that is counted through, times a step of at
//    most 8, plus multiples of the sum's other indices, of which the ranges are known;
// 3. the last axis has none of them;
// 4. corners and distances fit into the hardware's bits. A corner is a difference of extents, of
//    which the common part must cancel: (W + 2 - (S - 1) - W) is known where S is bounded.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/WindowPlaces.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace tk;

int64_t tk::mostCornerOfPlaces(unsigned rank) {
  return rank == 3 ? 32767 : rank == 4 ? 127 : rank == 5 ? 15 : 0;
}

int64_t tk::mostDistanceOfPlaces(unsigned rank) {
  return rank == 3 ? 65535 : rank == 4 ? 255 : rank == 5 ? 31 : 0;
}

namespace {

/// Multiples of values of a kernel, and a number from `least` to `most`.
struct Sum {
  KernelOp kernel;
  llvm::SmallMapVector<Value, int64_t, 4> terms;
  int64_t least = 0, most = 0;

  explicit Sum(KernelOp kernel) : kernel(kernel) {}
  void add(Value value, int64_t factor);
  void add(SizeRange range, int64_t factor) {
    least += factor * (factor > 0 ? range.least : range.most);
    most += factor * (factor > 0 ? range.most : range.least);
  }
  /// Replaces the values by what is known of them; false if one has no bounds.
  bool bound();
};

} // namespace

void Sum::add(Value value, int64_t factor) {
  if (std::optional<int64_t> number = getSizeFact(kernel, value).exact)
    return add(SizeRange{*number, *number}, factor);
  Operation *op = value.getDefiningOp();
  auto operand = [&](unsigned n) { return op->getOperand(n); };
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    add(operand(0), factor);
    add(operand(1), isa<arith::AddIOp>(op) ? factor : -factor);
    return;
  }
  if (isa_and_nonnull<arith::MulIOp>(op))
    for (unsigned n : {0, 1})
      if (std::optional<int64_t> number = getConstantIndex(operand(n)))
        return add(operand(1 - n), factor * *number);
  if (isa_and_nonnull<FloorDivOp>(op))
    // A multiple of a quotient is one of the dividend, but for the remainder.
    if (std::optional<int64_t> number = getConstantIndex(operand(1));
        number && *number > 0 && factor % *number == 0) {
      add(SizeRange{0, *number - 1}, -(factor / *number));
      return add(operand(0), factor / *number);
    }
  terms[value] += factor;
}

/// The range of a value that is no sum: a size, a quotient by a number, a product.
static std::optional<SizeRange> rangeOfTerm(KernelOp kernel, Value value) {
  if (auto size = dyn_cast<BlockArgument>(value)) {
    std::optional<int64_t> upper = getSizeFact(kernel, value).upper;
    if (size.getOwner()->getParentOp() != kernel || size.getArgNumber() >= kernel.getNumDims() ||
        !upper)
      return std::nullopt;
    return SizeRange{0, *upper};
  }
  Operation *op = value.getDefiningOp();
  if (!isa<FloorDivOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<SizeRange> a = rangeOfSize(kernel, op->getOperand(0)),
                           b = rangeOfSize(kernel, op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::MulIOp>(op)) {
    const auto [least, most] = std::minmax(
        {a->least * b->least, a->least * b->most, a->most * b->least, a->most * b->most});
    return SizeRange{least, most};
  }
  if (b->least != b->most || b->least <= 0)
    return std::nullopt;
  return SizeRange{llvm::divideFloorSigned(a->least, b->least),
                   llvm::divideFloorSigned(a->most, b->least)};
}

bool Sum::bound() {
  for (auto [value, factor] : terms) {
    if (factor == 0)
      continue;
    std::optional<SizeRange> range = rangeOfTerm(kernel, value);
    if (!range)
      return false;
    add(*range, factor);
  }
  terms.clear();
  return true;
}

std::optional<SizeRange> tk::rangeOfSize(KernelOp kernel, Value value) {
  Sum sum(kernel);
  sum.add(value, 1);
  if (!sum.bound())
    return std::nullopt;
  return SizeRange{sum.least, sum.most};
}

double tk::estimateSize(KernelOp kernel, Value value, double share, double place) {
  if (std::optional<int64_t> number = getConstantIndex(value))
    return static_cast<double>(*number);
  Operation *op = value.getDefiningOp();
  if (auto arg = dyn_cast<BlockArgument>(value))
    if (auto compute = dyn_cast<ComputeOp>(arg.getOwner()->getParentOp()))
      return (estimateSize(kernel, compute.getExtents()[arg.getArgNumber()], share) - 1) * place;
  if (!op) {
    SizeFact fact = getSizeFact(kernel, value);
    if (!fact.upper)
      return std::numeric_limits<double>::quiet_NaN();
    const auto upper = static_cast<double>(std::max<int64_t>(*fact.upper, 1));
    // The middle of that range, or the multiple of the divisor behind it.
    const auto divisor = static_cast<double>(std::max<int64_t>(fact.divisor, 1));
    return upper < 3 ? upper : std::min(upper, std::ceil(share * upper / divisor) * divisor);
  }
  if (op->getNumOperands() != 2)
    return std::numeric_limits<double>::quiet_NaN();
  const double a = estimateSize(kernel, op->getOperand(0), share, place),
               b = estimateSize(kernel, op->getOperand(1), share, place);
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<arith::AddIOp>([&](auto) { return a + b; })
      .Case<arith::SubIOp>([&](auto) { return std::max(a - b, 0.0); })
      .Case<arith::MulIOp>([&](auto) { return a * b; })
      .Case<FloorDivOp>([&](auto) { return std::floor(a / std::max(b, 1.0)); })
      .Case<FloorModOp>([&](auto) { return std::fmod(a, std::max(b, 1.0)); })
      .Case<arith::MinSIOp>([&](auto) { return std::min(a, b); })
      .Case<arith::MaxSIOp>([&](auto) { return std::max(a, b); })
      .Default([](Operation *) { return std::numeric_limits<double>::quiet_NaN(); });
}

bool tk::areCornersInRange(KernelOp kernel, Value count, Value extent, int64_t step, int64_t lower,
                           unsigned rank) {
  const int64_t reach = mostCornerOfPlaces(rank);
  if (step < 1 || step > mostStepOfPlaces || lower < -reach - 1 || lower > reach)
    return false;
  Sum upper(kernel);
  upper.add(count, step);
  upper.add(extent, -1);
  return upper.bound() && upper.least + lower - step + 1 >= -reach - 1 &&
         upper.most + lower - step + 1 <= reach;
}

static Value extentOf(BlockArgument index) {
  Operation *owner = index.getOwner()->getParentOp();
  if (auto compute = dyn_cast<ComputeOp>(owner))
    return compute.getExtents()[index.getArgNumber()];
  return cast<ReduceOp>(owner).getUpper()[index.getArgNumber()];
}

std::optional<WindowReach> tk::reachOfWindow(KernelOp kernel, Value index, BlockArgument place) {
  Sum sum(kernel);
  sum.add(index, 1);
  WindowReach result;
  for (auto &[value, factor] : sum.terms) {
    auto own = dyn_cast<BlockArgument>(value);
    if (!own || own.getOwner()->getParentOp() == kernel)
      continue;
    if (own == place) {
      result.step = factor;
    } else {
      std::optional<SizeRange> extent = rangeOfSize(kernel, extentOf(own));
      if (!extent)
        return std::nullopt;
      sum.add(SizeRange{0, std::max<int64_t>(extent->most - 1, 0)}, factor);
    }
    factor = 0;
  }
  if (!sum.bound())
    return std::nullopt;
  result.distances = {sum.least, sum.most};
  return result;
}

bool tk::areWindowsCopied(KernelOp kernel, LoadOp load, ArrayRef<Value> counted) {
  const unsigned rank = load.getIndices().size();
  SmallVector<Value> extents = getExtents(kernel, load.getTensor());
  if (rank < 3 || mostCornerOfPlaces(rank) == 0 || counted.size() + 1 != rank ||
      load.getIndices().front() != counted.front() ||
      !isSameExtent(extentOf(cast<BlockArgument>(counted.front())), extents.front()))
    return false;
  if (Value pad = load.getPad(); pad && !matchPattern(pad, m_AnyZeroFloat()))
    return false;
  for (auto [axis, value] : llvm::enumerate(counted.drop_front())) {
    auto place = cast<BlockArgument>(value);
    Value index = load.getIndices()[axis + 1];
    std::optional<WindowReach> window = reachOfWindow(kernel, index, place);
    if (!window || window->step < 1 ||
        window->distances.most - window->distances.least > mostDistanceOfPlaces(rank) ||
        !areCornersInRange(kernel, extentOf(place), extents[axis + 1], window->step,
                           window->distances.least, rank))
      return false;
  }
  // No other index but those of the window stands with a place, nor does a place stand elsewhere.
  for (auto [axis, index] : llvm::enumerate(load.getIndices()))
    for (BlockArgument own : getIterationIndices(index)) {
      const auto *found = llvm::find(counted, own);
      if (found != counted.end() && found - counted.begin() != int64_t(axis))
        return false;
      if (found == counted.end() && axis > 0 && axis + 1 < rank &&
          own.getOwner() == cast<BlockArgument>(counted.front()).getOwner())
        return false;
    }
  return true;
}
