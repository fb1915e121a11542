//===- EmitFields.cpp - fields of packed numbers --------------------------===//
//
// The operations that take a field out of a word, convert it, subtract a zero and scale it are told
// with the rounding that ends them: the device library has a form for pairs.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"

#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

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

std::optional<gpu::ScaledField> KernelEmitter::scaledField(Operation *end) {
  Value result = end->getResult(0);
  if (!isTile(result) || gpu::endOfScaledField(end) != end || registersOf(result) < 2)
    return std::nullopt;
  std::optional<gpu::ScaledField> scaled = gpu::matchScaledField(end);
  const bool isShared = scaled && (!scaled->scale || isSharedByPairs(scaled->scale)) &&
                        llvm::all_of(scaled->zero, [&](const gpu::FieldTerm &term) {
                          return isSharedByPairs(term.value);
                        });
  return isShared ? scaled : std::nullopt;
}

bool KernelEmitter::joinScaledField(Operation *op) {
  Operation *end = gpu::endOfScaledField(op);
  std::optional<gpu::ScaledField> scaled = end ? scaledField(end) : std::nullopt;
  if (scaled && end == op) {
    flushGroup();
    emitScaledField(*scaled, op->getResult(0));
  }
  return scaled.has_value();
}

static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (!value || !matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getSExtValue();
}

static bool isEven(Value value) {
  if (std::optional<int64_t> constant = constantOf(value))
    return *constant % 2 == 0;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument == loop.getInductionVar() && isEven(loop.getLowerBound()) &&
           isEven(loop.getStep());
  }
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<gpu::BroadcastOp>(op))
    return isEven(op->getOperand(0));
  if (isa_and_nonnull<arith::MulIOp>(op))
    return isEven(op->getOperand(0)) || isEven(op->getOperand(1));
  return isa_and_nonnull<arith::AddIOp>(op) && isEven(op->getOperand(0)) &&
         isEven(op->getOperand(1));
}

/// Is the vector `index` even in even registers, and one more in the next one?
static bool isPaired(Value index) {
  if (auto sum = index.getDefiningOp<arith::AddIOp>())
    return (isPaired(sum.getLhs()) && isEven(sum.getRhs())) ||
           (isPaired(sum.getRhs()) && isEven(sum.getLhs()));
  if (!index.getDefiningOp<gpu::IotaOp>())
    return false;
  gpu::LayoutAttr layout = gpu::getLayout(index.getType());
  return layout && !layout.getRegisterBits().empty() && layout.getRegisterBits()[0].step == 1;
}

/// By how many bits the fields of two neighbouring registers are apart in a word; -1 if that is not
/// known.
int64_t KernelEmitter::stepOfPlaces(Value place) {
  if (isSharedByPairs(place))
    return 0;
  auto broadcast = place.getDefiningOp<gpu::BroadcastOp>();
  auto map = registersInSource(broadcast ? broadcast.getOperation() : place.getDefiningOp());
  if (!broadcast || mlir::failed(map) || map->first.empty() || map->first.front() != 1)
    return -1;
  // bits & 31, of an index modulo a power of two times a step
  auto modulo = broadcast.getSource().getDefiningOp<arith::AndIOp>();
  auto cast = modulo ? modulo.getLhs().getDefiningOp<arith::IndexCastOp>() : arith::IndexCastOp();
  auto product = cast ? cast.getIn().getDefiningOp<arith::MulIOp>() : arith::MulIOp();
  auto rest = product ? product.getLhs().getDefiningOp<FloorModOp>() : FloorModOp();
  if (!rest || constantOf(modulo.getRhs()) != 31)
    return -1;
  const std::optional<int64_t> step = constantOf(product.getRhs()),
                               count = constantOf(rest.getRhs());
  const bool fits = step && count && *step > 0 && *count > 0 && *count % 2 == 0 &&
                    *count * *step <= 32 && isPaired(rest.getLhs());
  return fits ? *step : -1;
}

void KernelEmitter::emitScaledField(const gpu::ScaledField &scaled, Value result) {
  const RegisterIndex reg("r", registerBits(result));
  const gpu::PackedField &field = scaled.field;
  const std::string words = materialize(field.words);
  std::string at = std::to_string(field.shift);
  int64_t step = 0;
  if (field.condition) {
    at = element(field.condition, reg) + " ? " + at + " : " + std::to_string(field.otherShift);
    step = -1;
  }
  if (field.place) {
    at = element(field.place, reg);
    step = stepOfPlaces(field.place);
  }
  std::string zero;
  bool isInteger = false;
  for (const gpu::FieldTerm &term : scaled.zero) {
    isInteger = !isa<FloatType>(getElementTypeOrSelf(term.value.getType()));
    zero += (term.isAdded ? "-" : zero.empty() ? "" : "+ ") + element(term.value, reg) + " ";
  }
  zero = zero.empty() ? "0.0f" : zero.substr(0, zero.size() - 1);
  if (isInteger)
    zero = "(float)(" + zero + ")";
  const bool isExact = getElementTypeOrSelf(result.getType()).isF16() || !scaled.scale ||
                       gpu::isStoredInBF16(scaled.scale);
  auto ofRegister = [](const std::string &text) { return "[&](int r) { return " + text + "; }"; };
  const std::string scale = ofRegister(scaled.scale ? element(scaled.scale, reg) : "1.0f"),
                    name = declare(result);
  line("tk::scale_fields<" + std::to_string(field.bits) + ", " + (isExact ? "true" : "false") +
       ", " + std::to_string(step) + ">(" + name + ", " + words + ", " + ofRegister(at) + ", " +
       ofRegister(zero) + ", " + scale + ");");
}

} // namespace tk::cuda
