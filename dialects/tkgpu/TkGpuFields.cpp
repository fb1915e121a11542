//===- TkGpuFields.cpp - fields of packed numbers -------------------------===//
#include "dialects/tkgpu/TkGpuFields.h"

#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/IR/Matchers.h"

#include <cmath>

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

static unsigned bitsOf(Value value) {
  return getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
}

/// `value`, or what was broadcast to it.
static Value withoutBroadcast(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  return broadcast ? broadcast.getSource() : value;
}

/// Is `value` an integer that f32 holds, and sums of a few of which it holds?
static bool isSmall(Value value) {
  constexpr int64_t bound = int64_t(1) << 20;
  Value source = withoutBroadcast(value);
  if (std::optional<int64_t> constant = constantOf(source))
    return *constant > -bound && *constant < bound;
  Operation *op = source.getDefiningOp();
  if (isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(op))
    return bitsOf(op->getOperand(0)) <= 16;
  auto mask = dyn_cast_or_null<arith::AndIOp>(op);
  std::optional<int64_t> bits = mask ? constantOf(mask.getRhs()) : std::nullopt;
  return bits && *bits >= 0 && *bits < bound;
}

/// Takes a shift to the lowest bits off the field's words; false if it has no form.
static bool takeShift(PackedField &field, SmallVectorImpl<Operation *> &inner) {
  Operation *shift = onlyFor(field.words);
  if (!isa_and_nonnull<arith::ShRSIOp, arith::ShRUIOp>(shift))
    return true;
  inner.push_back(shift);
  field.words = shift->getOperand(0);
  if (std::optional<int64_t> by = constantOf(shift->getOperand(1))) {
    field.shift = field.otherShift = *by;
    return *by >= 0 && *by + field.bits <= bitsOf(field.words);
  }
  // The language takes the place modulo 32, and a shift that keeps the sign fills with it.
  field.place = shift->getOperand(1);
  return isa<arith::ShRSIOp>(shift) && bitsOf(field.words) == 32 &&
         !field.place.getDefiningOp<ConvertLayoutOp>();
}

/// The field that `value` is. `inner` receives the operations in between, each of one use.
static std::optional<PackedField> matchField(Value value, SmallVectorImpl<Operation *> &inner) {
  Operation *op = onlyFor(value);
  if (auto mask = dyn_cast_or_null<arith::AndIOp>(op)) {
    const int64_t ones = constantOf(mask.getRhs()).value_or(0);
    if (ones <= 0 || ones >= (1 << mostBitsOfField) || !llvm::isPowerOf2_64(ones + 1) ||
        (bitsOf(mask) != 8 && bitsOf(mask) != 32))
      return std::nullopt;
    inner.push_back(mask);
    PackedField field{mask.getLhs(), Value(), Value(), 0, 0, llvm::Log2_64(ones + 1)};
    if (!takeShift(field, inner))
      return std::nullopt;
    // Bits behind a byte are 0.
    if (auto extension = dyn_cast_or_null<arith::ExtUIOp>(onlyFor(field.words));
        extension && bitsOf(extension.getIn()) == 8) {
      inner.push_back(extension);
      field.words = extension.getIn();
    }
    return field;
  }
  auto choice = dyn_cast_or_null<arith::SelectOp>(op);
  if (!choice)
    return std::nullopt;
  inner.push_back(choice);
  std::optional<PackedField> first = matchField(choice.getTrueValue(), inner),
                             second = matchField(choice.getFalseValue(), inner);
  if (!first || !second || first->words != second->words || first->condition || second->condition ||
      first->place || second->place || first->bits != second->bits)
    return std::nullopt;
  return PackedField{first->words, choice.getCondition(), Value(),
                     first->shift, second->shift,         first->bits};
}

static bool isExtendedFrom(Value scale, bool isHalf) {
  auto extension = withoutBroadcast(scale).getDefiningOp<arith::ExtFOp>();
  Type from = extension ? getElementTypeOrSelf(extension.getIn().getType()) : Type();
  return from && (isHalf ? from.isF16() : from.isBF16());
}

bool gpu::isStoredInBF16(Value scale) { return isExtendedFrom(scale, /*isHalf=*/false); }

/// Takes the zero off the integers that `conversion` makes floats; null if its terms are not small.
static Value takeIntegers(Operation *conversion, ScaledField &scaled) {
  Value integer = conversion->getOperand(0);
  while (Operation *sum = onlyFor(integer)) {
    if (!isa<arith::SubIOp, arith::AddIOp>(sum))
      break;
    if (isa<arith::UIToFPOp>(conversion) || bitsOf(integer) != 32 || !isSmall(sum->getOperand(1)) ||
        (!scaled.zero.empty() && isa<FloatType>(getElementTypeOrSelf(scaled.zero[0].value))))
      return {};
    scaled.zero.push_back({sum->getOperand(1), isa<arith::AddIOp>(sum)});
    scaled.inner.push_back(sum);
    integer = sum->getOperand(0);
  }
  return integer;
}

/// Takes the zero off `value`, and what converts its integers; null if these are not small.
static Value takeZero(Value value, ScaledField &scaled) {
  Operation *op = onlyFor(value);
  if (auto difference = dyn_cast_or_null<arith::SubFOp>(op)) {
    scaled.zero.push_back({difference.getRhs(), false});
    scaled.inner.push_back(difference);
    op = onlyFor(difference.getLhs());
  }
  if (!isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(op))
    return {};
  scaled.inner.push_back(op);
  return takeIntegers(op, scaled);
}

/// Is the zero such that a float of 16 bits holds the difference from it?
static bool isExactZero(ArrayRef<FieldTerm> zero) {
  constexpr float mostOfZero = 16;
  return llvm::all_of(zero, [](const FieldTerm &term) {
    if (!isa<FloatType>(getElementTypeOrSelf(term.value.getType())))
      return constantOf(term.value).has_value();
    APFloat constant(0.0f);
    return matchPattern(term.value, m_ConstantFloat(&constant)) && constant.isInteger() &&
           std::abs(constant.convertToFloat()) <= mostOfZero;
  });
}

/// The field of which `integer`, without its zero, is the whole, as an unscaled one must be exact.
static std::optional<ScaledField> finish(ScaledField scaled, Value integer) {
  if (!integer || (!scaled.product && !isExactZero(scaled.zero)))
    return std::nullopt;
  std::optional<PackedField> field = matchField(integer, scaled.inner);
  if (!field)
    return std::nullopt;
  scaled.field = *field;
  return scaled;
}

std::optional<ScaledField> gpu::matchScaledField(Operation *end) {
  if (!isa_and_nonnull<arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp>(end))
    return std::nullopt;
  Type type = getElementTypeOrSelf(end->getResult(0).getType());
  if (!type.isBF16() && !type.isF16())
    return std::nullopt;
  if (!isa<arith::TruncFOp>(end)) {
    ScaledField scaled;
    Value integer = takeIntegers(end, scaled);
    return finish(scaled, integer);
  }
  Value rounded = end->getOperand(0);
  if (bitsOf(rounded) != 32)
    return std::nullopt;
  auto product = dyn_cast_or_null<arith::MulFOp>(onlyFor(rounded));
  auto match = [&](Value value, Value scale) -> std::optional<ScaledField> {
    if (product && type.isF16() && !isExtendedFrom(scale, /*isHalf=*/true))
      return std::nullopt;
    ScaledField scaled;
    scaled.product = product;
    scaled.scale = scale;
    if (product)
      scaled.inner.push_back(product);
    Value integer = takeZero(value, scaled);
    return finish(scaled, integer);
  };
  if (!product)
    return match(rounded, Value());
  std::optional<ScaledField> scaled = match(product.getLhs(), product.getRhs());
  return scaled ? scaled : match(product.getRhs(), product.getLhs());
}

Operation *gpu::endOfScaledField(Operation *op) {
  constexpr unsigned longest = 10;
  Operation *end = op;
  for (unsigned step = 0; step < longest; ++step) {
    if (std::optional<ScaledField> scaled = matchScaledField(end)) {
      const bool isPart = (!scaled->product || hasMode(scaled->product, MathMode::Approx)) &&
                          (end == op || llvm::is_contained(scaled->inner, op));
      return isPart ? end : nullptr;
    }
    if (!isa<arith::MulFOp, arith::SubFOp, arith::SIToFPOp, arith::UIToFPOp, arith::SelectOp,
             arith::AndIOp, arith::ShRSIOp, arith::ShRUIOp, arith::SubIOp, arith::AddIOp,
             arith::ExtUIOp>(end) ||
        !end->hasOneUse() || (*end->user_begin())->getBlock() != op->getBlock())
      return nullptr;
    end = *end->user_begin();
  }
  return nullptr;
}
