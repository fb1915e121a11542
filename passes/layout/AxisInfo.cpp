//===- AxisInfo.cpp - contiguity, constancy and divisibility --------------===//
//
// All three are powers of two, so the greatest common divisor of two is their minimum. Facts come
// from constants, from the #tk.fact of function arguments, and up through the operations below;
// anything else is unknown. A group of c consecutive elements whose first is divisible by d splits
// into groups of c' < c whose first elements are divisible by min(d, c').
//
//===----------------------------------------------------------------------===//
#include "passes/layout/AxisInfo.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/layout/MemoryAccess.h"
#include "passes/layout/RunIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tk;

static int64_t lowestBit(int64_t value) {
  return value == 0 ? kAnyDivisor : std::min(value & -value, kAnyDivisor);
}

std::optional<int64_t> tk::constantIndex(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  DenseIntElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<APInt>().getSExtValue();
  if (auto broadcast = value.getDefiningOp<gpu::BroadcastOp>())
    return constantIndex(broadcast.getSource());
  return std::nullopt;
}

namespace {

/// A scalar joins a computation on tiles as something that never changes.
AxisFacts ofScalar(int64_t divisibility) { return {1, kAnyDivisor, divisibility}; }

/// What divides the first elements when groups shrink to `contiguity`.
int64_t divisorAt(const AxisFacts &facts, int64_t contiguity) {
  return contiguity < facts.contiguity ? std::min(facts.divisibility, contiguity)
                                       : facts.divisibility;
}

int64_t saturatingProduct(int64_t a, int64_t b) { return std::min(a * b, kAnyDivisor); }

AxisFacts addFacts(const AxisFacts &a, const AxisFacts &b, bool subtract) {
  AxisFacts sum;
  sum.contiguity = std::min(a.contiguity, b.constancy);
  if (!subtract)
    sum.contiguity = std::max(sum.contiguity, std::min(a.constancy, b.contiguity));
  sum.constancy = std::min(a.constancy, b.constancy);
  sum.divisibility = std::min(divisorAt(a, sum.contiguity), divisorAt(b, sum.contiguity));
  return sum;
}

AxisFacts mulFacts(const AxisFacts &a, const AxisFacts &b) {
  return {1, std::min(a.constancy, b.constancy),
          saturatingProduct(divisorAt(a, 1), divisorAt(b, 1))};
}

/// a / b and a mod b, rounded towards minus infinity (or a not negative).
AxisFacts divFacts(const AxisFacts &a, int64_t divisor) {
  AxisFacts quotient;
  if (divisor <= 0 || (divisor & (divisor - 1)))
    return quotient;
  quotient.constancy = std::max(std::min({divisor, a.contiguity, a.divisibility}), a.constancy);
  if (a.contiguity == 1)
    quotient.divisibility = std::max<int64_t>(a.divisibility / divisor, 1);
  return quotient;
}

AxisFacts modFacts(const AxisFacts &a, const AxisFacts &b) {
  AxisFacts rest;
  int64_t group = std::min({a.contiguity, a.divisibility, divisorAt(b, 1), b.constancy});
  rest.contiguity = group;
  rest.constancy = std::min(a.constancy, b.constancy);
  rest.divisibility = std::min(divisorAt(a, group), divisorAt(b, 1));
  return rest;
}

/// `i < n` with i running and n fixed is the same within an aligned group that n does not cut.
AxisFacts compareFacts(arith::CmpIPredicate predicate, const AxisFacts &a, const AxisFacts &b) {
  using P = arith::CmpIPredicate;
  auto isRunning = [](const AxisFacts &i, const AxisFacts &n) {
    return std::min({i.contiguity, i.divisibility, n.constancy, n.divisibility});
  };
  AxisFacts result;
  result.constancy = std::min(a.constancy, b.constancy);
  if (llvm::is_contained({P::slt, P::sge, P::ult, P::uge}, predicate))
    result.constancy = std::max(result.constancy, isRunning(a, b));
  if (llvm::is_contained({P::sgt, P::sle, P::ugt, P::ule}, predicate))
    result.constancy = std::max(result.constancy, isRunning(b, a));
  return result;
}

AxisFacts clampFacts(const AxisFacts &a, const AxisFacts &b) {
  int64_t constancy = std::min(a.constancy, b.constancy);
  return {1, constancy, std::min(divisorAt(a, 1), divisorAt(b, 1))};
}

using Combine = llvm::function_ref<AxisFacts(const AxisFacts &, const AxisFacts &)>;

/// Applies `combine` along each axis; a scalar is an axis without change.
ValueFacts combineFacts(Type type, const ValueFacts &a, const ValueFacts &b, Combine combine) {
  ValueFacts result;
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile) {
    result.divisibility = combine(ofScalar(a.divisibility), ofScalar(b.divisibility)).divisibility;
    return result;
  }
  for (int64_t axis = 0; axis < tile.getRank(); ++axis)
    result.axes.push_back(combine(a.axes[axis], b.axes[axis]));
  return result;
}

ValueFacts unknownFacts(Type type) {
  ValueFacts facts;
  if (auto tile = dyn_cast<RankedTensorType>(type))
    facts.axes.resize(tile.getRank());
  return facts;
}

ValueFacts constantFacts(Type type, int64_t value) {
  ValueFacts facts;
  facts.divisibility = lowestBit(value);
  if (auto tile = dyn_cast<RankedTensorType>(type))
    for (int64_t extent : tile.getShape())
      facts.axes.push_back({1, extent, facts.divisibility});
  return facts;
}

ValueFacts broadcastFacts(gpu::BroadcastOp op, const ValueFacts &source) {
  auto type = cast<RankedTensorType>(op.getType());
  // Along a new axis the elements of a group start anywhere in the source.
  int64_t anywhere = source.axes.empty() ? source.divisibility : kAnyDivisor;
  for (const AxisFacts &axis : source.axes)
    anywhere = std::min(anywhere, divisorAt(axis, 1));
  ValueFacts result;
  for (int64_t extent : type.getShape())
    result.axes.push_back({1, extent, anywhere});
  for (auto [sourceAxis, axis] : llvm::enumerate(op.getDims()))
    result.axes[axis] = source.axes[sourceAxis];
  return result;
}

} // namespace

const ValueFacts &AxisInfo::of(Value value) {
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  // A loop-carried value that leads back to itself finds this entry.
  known[value] = unknownFacts(value.getType());
  ValueFacts facts = compute(value);
  return known[value] = std::move(facts);
}

static ValueFacts argumentFacts(BlockArgument argument, AxisInfo &info) {
  ValueFacts facts = unknownFacts(argument.getType());
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto function = dyn_cast<gpu::FuncOp>(parent))
    facts.divisibility = lowestBit(function.getArgFact(argument.getArgNumber()).getDivisor());
  if (auto loop = dyn_cast<scf::ForOp>(parent); loop && argument == loop.getInductionVar())
    facts.divisibility =
        std::min(info.divisibilityOf(loop.getLowerBound()), info.divisibilityOf(loop.getStep()));
  return facts;
}

/// The loop whose end `mask` compares its induction variable with, plus 0, 1, ..., if it does: such
/// elements are no terms of what the loop computes.
static bool endsLoop(Value mask) {
  auto compare = mask.getDefiningOp<arith::CmpIOp>();
  SmallVector<Value> starts;
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt ||
      !isRun(compare.getLhs(), starts) || starts.size() != 1)
    return false;
  auto induction = dyn_cast<BlockArgument>(starts.front());
  auto loop = induction ? dyn_cast<scf::ForOp>(induction.getOwner()->getParentOp()) : scf::ForOp();
  if (!loop || induction != loop.getInductionVar())
    return false;
  Value end = gpu::splatSource(compare.getRhs());
  std::optional<int64_t> number = constantIndex(compare.getRhs());
  return end == loop.getUpperBound() || (number && number == constantIndex(loop.getUpperBound()));
}

/// Elements of a group are equal where the indices are. One that begins before the loop's end may
/// be read as a whole: all of it is what the first element is.
ValueFacts AxisInfo::loadedFacts(Value loaded) {
  auto load = loaded.getDefiningOp<gpu::LoadOp>();
  MemoryAccess access = MemoryAccess::of(load);
  ValueFacts facts = unknownFacts(loaded.getType());
  for (AxisFacts &axis : facts.axes)
    axis.constancy = kAnyDivisor;
  auto limitBy = [&](Value part, ArrayRef<int64_t> axes, bool isMask) {
    ValueFacts own = of(isMask && endsLoop(part) ? part.getDefiningOp()->getOperand(0) : part);
    for (auto [n, axis] : llvm::enumerate(axes)) {
      const AxisFacts &along = own.axes[n];
      int64_t constancy = isMask && endsLoop(part) ? std::min(along.contiguity, along.divisibility)
                                                   : along.constancy;
      facts.axes[axis].constancy = std::min(facts.axes[axis].constancy, constancy);
    }
  };
  for (auto [d, index] : llvm::enumerate(access.indices))
    limitBy(index, access.indexAxes(d), /*isMask=*/false);
  for (auto [m, mask] : llvm::enumerate(access.masks))
    limitBy(mask, access.maskAxes(m), /*isMask=*/true);
  return facts;
}

ValueFacts AxisInfo::compute(Value value) {
  Type type = value.getType();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argumentFacts(argument, *this);
  if (std::optional<int64_t> constant = constantIndex(value))
    return constantFacts(type, *constant);
  auto combine = [&](Operation *op, Combine rule) {
    ValueFacts a = of(op->getOperand(0)), b = of(op->getOperand(1));
    return combineFacts(type, a, b, rule);
  };
  return llvm::TypeSwitch<Operation *, ValueFacts>(value.getDefiningOp())
      .Case<gpu::IotaOp>([&](auto) {
        ValueFacts facts;
        facts.axes.push_back({cast<RankedTensorType>(type).getDimSize(0), 1, kAnyDivisor});
        return facts;
      })
      .Case<gpu::RotatedIotaOp>([&](gpu::RotatedIotaOp rotated) {
        // By whole groups, of which none is cut.
        std::optional<int64_t> shift = constantIndex(rotated.getShift());
        int64_t groups = shift ? *shift | rotated.getLengthAround() : 1;
        int64_t group = groups & -groups;
        ValueFacts facts;
        facts.axes.push_back({group, 1, group});
        return facts;
      })
      .Case<gpu::LoadOp>([&](gpu::LoadOp load) {
        bool isKnown = gathers && isa<RankedTensorType>(type) &&
                       (!load.getOther() || constantIndex(load.getOther()));
        return isKnown ? loadedFacts(value) : unknownFacts(type);
      })
      .Case<gpu::BroadcastOp>([&](gpu::BroadcastOp op) {
        ValueFacts source = of(op.getSource());
        return broadcastFacts(op, source);
      })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp>(
          [&](Operation *op) { return of(op->getOperand(0)); })
      .Case<arith::AddIOp>([&](Operation *op) {
        return combine(op, [](auto &a, auto &b) { return addFacts(a, b, false); });
      })
      .Case<arith::SubIOp>([&](Operation *op) {
        return combine(op, [](auto &a, auto &b) { return addFacts(a, b, true); });
      })
      .Case<arith::MulIOp>([&](Operation *op) { return combine(op, mulFacts); })
      .Case<tk::FloorDivOp, arith::FloorDivSIOp>([&](Operation *op) {
        int64_t divisor = constantIndex(op->getOperand(1)).value_or(0);
        return combine(op, [=](auto &a, auto &) { return divFacts(a, divisor); });
      })
      .Case<tk::FloorModOp>([&](Operation *op) { return combine(op, modFacts); })
      .Case<arith::AndIOp>([&](arith::AndIOp op) {
        // With 2^k - 1 it is the remainder by 2^k.
        int64_t mask = constantIndex(op.getRhs()).value_or(0);
        if (mask <= 0 || (mask & (mask + 1)))
          return combine(op, clampFacts);
        return combine(op, [=](const AxisFacts &a, const AxisFacts &b) {
          return modFacts(a, {1, b.constancy, mask + 1});
        });
      })
      .Case<arith::MinSIOp, arith::MaxSIOp, arith::OrIOp, arith::XOrIOp>(
          [&](Operation *op) { return combine(op, clampFacts); })
      .Case<arith::CmpIOp>([&](arith::CmpIOp op) {
        return combine(op, [&](auto &a, auto &b) { return compareFacts(op.getPredicate(), a, b); });
      })
      .Default([&](Operation *) { return unknownFacts(type); });
}
