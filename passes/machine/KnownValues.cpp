//===- KnownValues.cpp - integers of a program at given sizes -------------===//
#include "passes/machine/KnownValues.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuFiniteOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace tk {

std::optional<int64_t> KnownValues::scalar(Value value) const {
  Known known = get(value);
  return known.isScalar() ? std::optional(known.base) : std::nullopt;
}

std::optional<int64_t> KnownValues::estimate(Value value) const {
  Known known = get(value);
  const bool isBounded = known.isScalar() || known.kind == Known::Kind::AtMost;
  return isBounded ? std::optional(known.base) : std::nullopt;
}

uint64_t KnownValues::key(Value value) const {
  Known known = get(value);
  if (known.isScalar() || known.isLine())
    return llvm::hash_combine(known.base, known.step == Known::irregular ? 0 : known.step);
  return known.symbol != 0 ? known.symbol : uint64_t(llvm::hash_value(value.getAsOpaquePointer()));
}

/// What an operation makes of two integers; nothing if it is not one of those.
static std::optional<int64_t> apply(Operation *op, int64_t a, int64_t b) {
  if (isa<arith::AddIOp>(op))
    return a + b;
  if (isa<arith::SubIOp>(op))
    return a - b;
  if (isa<arith::MulIOp>(op))
    return a * b;
  if (isa<arith::MinSIOp, arith::MinUIOp>(op))
    return std::min(a, b);
  if (isa<arith::MaxSIOp, arith::MaxUIOp>(op))
    return std::max(a, b);
  if (isa<arith::AndIOp>(op))
    return a & b;
  if (isa<arith::OrIOp>(op))
    return a | b;
  if (isa<arith::XOrIOp>(op))
    return a ^ b;
  if (b == 0)
    return std::nullopt;
  if (isa<arith::DivSIOp, arith::DivUIOp>(op))
    return a / b;
  if (isa<arith::RemSIOp, arith::RemUIOp>(op))
    return a % b;
  if (isa<FloorDivOp, arith::FloorDivSIOp>(op))
    return llvm::divideFloorSigned(a, b);
  if (isa<FloorModOp>(op))
    return a - b * llvm::divideFloorSigned(a, b);
  if (isa<arith::CeilDivSIOp>(op))
    return llvm::divideCeilSigned(a, b);
  return std::nullopt;
}

/// From a line's first element to its last; nothing where that is not known.
static std::optional<int64_t> spanOf(Known line) {
  if (line.step != Known::irregular)
    return line.step * std::max<int64_t>(line.count - 1, 0);
  return line.span > 0 ? std::optional(line.span) : std::nullopt;
}

/// A line whose neighbours are not equally far apart: its span follows where the operation grows
/// with its operands.
static Known irregularLine(Operation *op, Known a, Known b, int64_t base, int64_t count) {
  Known line = Known::line(base, Known::irregular, count);
  std::optional<int64_t> spanOfA = spanOf(a), spanOfB = spanOf(b);
  if (!spanOfA || !spanOfB)
    return line;
  const bool isSum = isa<arith::AddIOp>(op);
  const bool grows = isa<arith::DivSIOp, arith::DivUIOp, FloorDivOp, arith::FloorDivSIOp,
                         arith::CeilDivSIOp, arith::MulIOp, arith::MinSIOp, arith::MaxSIOp>(op);
  if (isSum || (grows && b.step == 0))
    if (std::optional<int64_t> last = apply(op, a.base + *spanOfA, b.base + *spanOfB))
      line.span = std::max<int64_t>(*last - base, 0);
  return line;
}

/// The same for lines of which one may repeat a single number.
static Known applyToLines(Operation *op, Known a, Known b) {
  std::optional<int64_t> base = apply(op, a.base, b.base);
  if (!base)
    return {};
  const int64_t count = std::min(a.count, b.count);
  const bool isRegular = a.step != Known::irregular && b.step != Known::irregular;
  if (isRegular && isa<arith::AddIOp>(op))
    return Known::line(*base, a.step + b.step, count);
  if (isRegular && isa<arith::SubIOp>(op))
    return Known::line(*base, a.step - b.step, count);
  if (isRegular && isa<arith::MulIOp>(op) && (a.step == 0 || b.step == 0))
    return Known::line(*base, a.step * b.base + b.step * a.base, count);
  if (a.step == 0 && b.step == 0)
    return Known::line(*base, 0, count);
  return irregularLine(op, a, b, *base, count);
}

static bool holds(arith::CmpIPredicate predicate, int64_t a, int64_t b) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return a < b;
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return a <= b;
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return a > b;
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    return a >= b;
  }
  return false;
}

/// The share of a comparison's elements that is true.
static Known compare(arith::CmpIPredicate predicate, Known a, Known b) {
  if (a.step == Known::irregular || b.step == Known::irregular)
    return {};
  const int64_t count = std::min(a.count, b.count);
  int64_t numTrue = 0;
  for (int64_t i = 0; i < count; ++i)
    numTrue += holds(predicate, a.base + i * a.step, b.base + i * b.step);
  return Known::mask(count == 0 ? 1 : double(numTrue) / double(count));
}

Known KnownValues::evaluateArith(Operation *op) const {
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp,
          arith::TruncIOp>(op))
    return get(op->getOperand(0));
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    const Known condition = get(select.getCondition());
    if (condition.isScalar())
      return get(condition.base ? select.getTrueValue() : select.getFalseValue());
    if (condition.kind == Known::Kind::Share && (condition.share == 0 || condition.share == 1))
      return get(condition.share == 1 ? select.getTrueValue() : select.getFalseValue());
    // Where a tile ends before its last element, as a rule few elements are behind the end.
    const Known inside = get(select.getTrueValue()), outside = get(select.getFalseValue());
    if (inside.isLine() && outside.isLine() && inside.step == 0 && outside.step == 0 &&
        (condition.kind == Known::Kind::Share || inside.base == outside.base))
      return inside;
    return {};
  }
  // What is computed anew where a value is NaN is rare.
  if (auto cmp = dyn_cast<arith::CmpFOp>(op)) {
    const bool isNever = cmp.getPredicate() == arith::CmpFPredicate::UNO;
    if (!isNever && cmp.getPredicate() != arith::CmpFPredicate::ORD)
      return {};
    return isa<RankedTensorType>(cmp.getType()) ? Known::mask(!isNever) : Known::scalar(!isNever);
  }
  if (op->getNumOperands() != 2)
    return {};
  Known a = get(op->getOperand(0)), b = get(op->getOperand(1));
  if (a.kind == Known::Kind::Share && b.kind == Known::Kind::Share)
    return isa<arith::AndIOp>(op)  ? Known::mask(std::min(a.share, b.share))
           : isa<arith::OrIOp>(op) ? Known::mask(std::max(a.share, b.share))
                                   : Known();
  auto cmp = dyn_cast<arith::CmpIOp>(op);
  if (a.isScalar() && b.isScalar()) {
    if (cmp)
      return Known::scalar(holds(cmp.getPredicate(), a.base, b.base));
    std::optional<int64_t> result = apply(op, a.base, b.base);
    return result ? Known::scalar(*result) : Known();
  }
  // Of two bounds the least; what grows with a bound has one.
  auto isBound = [](Known known) { return known.isScalar() || known.kind == Known::Kind::AtMost; };
  if (isa<arith::MinSIOp>(op) && (isBound(a) || isBound(b)))
    return Known::atMost(isBound(a) && isBound(b) ? std::min(a.base, b.base)
                         : isBound(a)             ? a.base
                                                  : b.base);
  if (isBound(a) && isBound(b) && !cmp &&
      (b.isScalar() || isa<arith::AddIOp, arith::MaxSIOp>(op))) {
    std::optional<int64_t> result = apply(op, a.base, b.base);
    return result ? Known::atMost(*result) : Known();
  }
  if (!a.isLine() || !b.isLine())
    return {};
  // A line that is rounded down to vectors: comparisons hold for as many elements of it, but for a
  // vector.
  if (isa<arith::AndIOp>(op) && b.step == 0 && b.base < 0 &&
      llvm::isPowerOf2_64(-static_cast<uint64_t>(b.base)))
    return Known::line(a.base & b.base, a.step, a.count);
  return cmp ? compare(cmp.getPredicate(), a, b) : applyToLines(op, a, b);
}

/// The largest or the smallest number of a line.
static Known extremumOf(ReduceKind kind, Known line) {
  if (!line.isLine() || line.step == Known::irregular || line.count == 0 ||
      (kind != ReduceKind::Max && kind != ReduceKind::Min))
    return {};
  const int64_t last = line.base + (line.count - 1) * line.step;
  return Known::scalar(kind == ReduceKind::Max ? std::max(line.base, last)
                                               : std::min(line.base, last));
}

/// Where a block is in the grid, and what it is told.
Known KnownValues::evaluatePlace(Operation *op) {
  if (auto id = dyn_cast<gpu::ProgramIdOp>(op))
    return Known::scalar(place.id[static_cast<unsigned>(id.getAxis())]);
  if (auto count = dyn_cast<gpu::NumProgramsOp>(op))
    return Known::scalar(place.blocks[static_cast<unsigned>(count.getAxis())]);
  if (isa<gpu::ClusterRankOp>(op))
    return Known::scalar(place.id[0] % place.cluster);
  // Numbers are handed out as if all blocks took equally long.
  if (isa<gpu::ToldOp>(op))
    return Known::scalar((place.id[0] + place.told++ * place.blocks[0]) / place.cluster);
  // Rows are gone through again only where sums left their range, which is rare.
  if (isa<gpu::DoubtedOp, gpu::NotedOp>(op))
    return Known::scalar(0);
  if (isa<gpu::AllFiniteOp>(op))
    return Known::scalar(1);
  if (auto of = dyn_cast<gpu::OfWarpgroupOp>(op))
    return get(of.getValues()[std::min<size_t>(place.warpgroup, of.getValues().size() - 1)]);
  if (auto rows = dyn_cast<gpu::RowsBoundOp>(op))
    return get(rows.getWhole());
  if (auto reduce = dyn_cast<gpu::ReduceOp>(op))
    return extremumOf(reduce.getKind(), get(reduce.getSource()));
  return {};
}

/// The number of elements of a tile of one axis; nothing for others.
static std::optional<int64_t> lengthOf(Value tile) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  if (!type || type.getRank() != 1)
    return std::nullopt;
  return type.getDimSize(0);
}

Known KnownValues::evaluateTile(Operation *op) {
  std::optional<int64_t> length = lengthOf(op->getResult(0));
  if (auto iota = dyn_cast<gpu::IotaOp>(op))
    return Known::line(0, 1, std::min<int64_t>(iota.getEnd().value_or(*length), *length));
  if (auto iota = dyn_cast<gpu::RotatedIotaOp>(op))
    return Known::line(0, 1, iota.getLengthAround());
  if (auto broadcast = dyn_cast<gpu::BroadcastOp>(op)) {
    Known source = get(broadcast.getSource());
    if (source.kind == Known::Kind::Share)
      return source;
    const bool isMask = broadcast.getType().getElementType().isInteger(1);
    if (source.isScalar() && isMask)
      return Known::mask(source.base != 0);
    if (source.isScalar()) // of several axes, too, as all elements are equal
      return Known::line(source.base, 0, broadcast.getType().getNumElements());
    return length ? source : Known();
  }
  if (auto extract = dyn_cast<gpu::ExtractOp>(op)) {
    Known source = get(extract.getSource());
    if (source.kind == Known::Kind::Share)
      return source;
    if (!source.isLine() || !length || source.step == Known::irregular)
      return {};
    const int64_t offset = extract.getOffsets()[0];
    return Known::line(source.base + offset * source.step, source.step,
                       std::clamp<int64_t>(source.count - offset, 0, *length));
  }
  if (isa<gpu::ConvertLayoutOp, gpu::HoldOp>(op))
    return get(op->getOperand(0));
  if (auto reduce = dyn_cast<gpu::ReduceOp>(op)) {
    const Known source = get(reduce.getSource());
    const Known most = source.step == 0 ? extremumOf(reduce.getKind(), source) : Known();
    auto type = cast<RankedTensorType>(reduce.getType());
    return most.isScalar() ? Known::line(most.base, 0, type.getNumElements()) : Known();
  }
  return {};
}

void KnownValues::evaluate(Operation *op) {
  if (op->getNumResults() == 0)
    return;
  for (Value result : op->getResults())
    values.erase(result);
  if (op->getNumResults() != 1)
    return;
  Value result = op->getResult(0);
  if (!getElementTypeOrSelf(result.getType()).isIntOrIndex())
    return;
  Known known;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto number = dyn_cast<IntegerAttr>(constant.getValue()))
      known = Known::scalar(number.getValue().getSExtValue() &
                            (number.getType().isInteger(1) ? 1 : -1));
    else if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      known = Known::line(splat.getSplatValue<APInt>().getSExtValue(), 0, splat.getNumElements());
  } else if (isa<arith::ArithDialect>(op->getDialect()) || isa<FloorDivOp, FloorModOp>(op)) {
    known = evaluateArith(op);
  } else if (isa<RankedTensorType>(result.getType())) {
    known = evaluateTile(op);
  } else {
    known = evaluatePlace(op);
  }
  llvm::hash_code symbol = llvm::hash_value(op->getName().getAsOpaquePointer());
  for (Value operand : op->getOperands())
    symbol = llvm::hash_combine(symbol, key(operand));
  known.symbol = std::max<uint64_t>(symbol, 1);
  values[result] = known;
}

} // namespace tk
