//===- EmitFields.cpp - fields of packed numbers --------------------------===//
//
// The operations that take a field out of a byte, convert it, subtract a zero and scale it are told
// with the rounding that ends them: the device library has a form for pairs.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"

using namespace mlir;

namespace tk::cuda {

/// Have neighbouring registers the same element of `value`, a broadcast or a constant?
bool KernelEmitter::isSharedByPairs(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::ConstantOp>(op))
    return true;
  auto broadcast = dyn_cast_or_null<gpu::BroadcastOp>(op);
  if (!broadcast || !isTile(broadcast.getSource()))
    return bool(broadcast);
  auto map = registersInSource(broadcast);
  return mlir::succeeded(map) && !map->first.empty() && map->first.front() == 0;
}

std::optional<gpu::ScaledField> KernelEmitter::scaledField(arith::TruncFOp rounding) {
  if (!isTile(rounding) || !gpu::endOfScaledField(rounding) || registersOf(rounding) < 2)
    return std::nullopt;
  std::optional<gpu::ScaledField> scaled = gpu::matchScaledField(rounding);
  const bool isShared = scaled && isSharedByPairs(scaled->scale) &&
                        (!scaled->zero || isSharedByPairs(scaled->zero));
  return isShared ? scaled : std::nullopt;
}

void KernelEmitter::emitScaledField(const gpu::ScaledField &scaled, Value result) {
  const RegisterIndex reg("r", registerBits(result));
  const gpu::PackedField &field = scaled.field;
  const std::string words = materialize(field.words);
  std::string at = std::to_string(field.shift);
  if (field.condition)
    at = element(field.condition, reg) + " ? " + at + " : " + std::to_string(field.otherShift);
  const std::string zero = scaled.zero ? element(scaled.zero, reg) : "0.0f",
                    scale = element(scaled.scale, reg);
  const bool isExact = getElementTypeOrSelf(result.getType()).isF16() ||
                       gpu::isStoredInBF16(scaled.scale);
  auto ofRegister = [](const std::string &text) {
    return "[&](int" + std::string(text.find('r') == std::string::npos ? "" : " r") +
           ") { return " + text + "; }";
  };
  const std::string name = declare(result);
  line("tk::scale_fields<" + std::string(isExact ? "true" : "false") + ">(" + name + ", " + words +
       ", " + ofRegister(at) + ", " + ofRegister(zero) + ", " + ofRegister(scale) + ");");
}

} // namespace tk::cuda
