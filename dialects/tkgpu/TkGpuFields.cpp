//===- TkGpuFields.cpp - fields of packed numbers -------------------------===//
#include "dialects/tkgpu/TkGpuFields.h"

#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The constant that `value`, a scalar or all elements of a tile, is.
static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (!value || !matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getSExtValue();
}

/// The operation that computes `value`, if it has no other use.
static Operation *onlyFor(Value value) {
  Operation *op = value.getDefiningOp();
  return op && op->hasOneUse() && op->getNumResults() == 1 ? op : nullptr;
}

/// `value`, or what was moved to its lowest bits.
static std::pair<Value, int64_t> withoutShift(Value value, SmallVectorImpl<Operation *> &inner) {
  Operation *shift = onlyFor(value);
  if (!isa_and_nonnull<arith::ShRSIOp, arith::ShRUIOp>(shift))
    return {value, 0};
  const std::optional<int64_t> by = constantOf(shift->getOperand(1));
  const int64_t bits = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  if (!by || *by < 0 || *by + bitsOfField > bits)
    return {value, 0};
  inner.push_back(shift);
  return {shift->getOperand(0), *by};
}

std::optional<PackedField> gpu::matchField(Value value, SmallVectorImpl<Operation *> &inner) {
  Operation *op = onlyFor(value);
  if (auto mask = dyn_cast_or_null<arith::AndIOp>(op)) {
    if (!mask.getType().isInteger(8) && !getElementTypeOrSelf(mask.getType()).isInteger(8))
      return std::nullopt;
    if (constantOf(mask.getRhs()) != (1 << bitsOfField) - 1)
      return std::nullopt;
    inner.push_back(mask);
    auto [words, shift] = withoutShift(mask.getLhs(), inner);
    return PackedField{words, Value(), shift, shift};
  }
  auto choice = dyn_cast_or_null<arith::SelectOp>(op);
  if (!choice)
    return std::nullopt;
  inner.push_back(choice);
  std::optional<PackedField> first = matchField(choice.getTrueValue(), inner),
                             second = matchField(choice.getFalseValue(), inner);
  if (!first || !second || first->words != second->words || first->condition || second->condition)
    return std::nullopt;
  return PackedField{first->words, choice.getCondition(), first->shift, second->shift};
}

/// `value`, or what it is the broadcast of.
static Value withoutBroadcast(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  return broadcast ? broadcast.getSource() : value;
}

static bool isExtendedFrom(Value scale, bool isHalf) {
  auto extension = withoutBroadcast(scale).getDefiningOp<arith::ExtFOp>();
  Type from = extension ? getElementTypeOrSelf(extension.getIn().getType()) : Type();
  return from && (isHalf ? from.isF16() : from.isBF16());
}

bool gpu::isStoredInBF16(Value scale) { return isExtendedFrom(scale, /*isHalf=*/false); }

std::optional<ScaledField> gpu::matchScaledField(arith::TruncFOp rounding) {
  Type type = getElementTypeOrSelf(rounding.getType());
  auto product = dyn_cast_or_null<arith::MulFOp>(onlyFor(rounding.getIn()));
  if (!product || (!type.isBF16() && !type.isF16()) ||
      !getElementTypeOrSelf(product.getType()).isF32())
    return std::nullopt;
  for (unsigned side : {0, 1}) {
    ScaledField scaled;
    scaled.product = product;
    scaled.scale = product->getOperand(1 - side);
    scaled.inner.push_back(product);
    Operation *op = onlyFor(product->getOperand(side));
    if (auto difference = dyn_cast_or_null<arith::SubFOp>(op)) {
      scaled.zero = difference.getRhs();
      scaled.inner.push_back(difference);
      op = onlyFor(difference.getLhs());
    }
    if (!isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(op) ||
        (type.isF16() && !isExtendedFrom(scaled.scale, /*isHalf=*/true)))
      continue;
    scaled.inner.push_back(op);
    if (std::optional<PackedField> field = matchField(op->getOperand(0), scaled.inner)) {
      scaled.field = *field;
      return scaled;
    }
  }
  return std::nullopt;
}

arith::TruncFOp gpu::endOfScaledField(Operation *op) {
  constexpr unsigned longest = 7;
  Operation *end = op;
  for (unsigned step = 0; step < longest; ++step) {
    if (auto rounding = dyn_cast<arith::TruncFOp>(end)) {
      std::optional<ScaledField> scaled = matchScaledField(rounding);
      const bool isPart =
          scaled && hasMode(scaled->product, MathMode::Approx) &&
          (end == op || llvm::is_contained(scaled->inner, op));
      return isPart ? rounding : arith::TruncFOp();
    }
    if (!isa<arith::MulFOp, arith::SubFOp, arith::SIToFPOp, arith::UIToFPOp, arith::SelectOp,
             arith::AndIOp, arith::ShRSIOp, arith::ShRUIOp>(end) ||
        !end->hasOneUse() || (*end->user_begin())->getBlock() != op->getBlock())
      return {};
    end = *end->user_begin();
  }
  return {};
}
