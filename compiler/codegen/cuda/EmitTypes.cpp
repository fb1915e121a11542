//===- EmitTypes.cpp - C++ types and literals -----------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuExchange.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tk::cuda {

std::string KernelEmitter::typeName(Type type) {
  if (type.isIndex())
    return func.getIndexBits() == 32 ? "int" : "long long";
  if (auto integer = dyn_cast<IntegerType>(type)) {
    switch (integer.getWidth()) {
    case 1:
      return "bool";
    case 8:
      return "tk::i8"; // u8 is held as these bits, too
    case 16:
      return "tk::i16";
    case 32:
      return "int";
    case 64:
      return "long long";
    default:
      break;
    }
  }
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isF16())
    return "tk::f16";
  if (type.isBF16())
    return "tk::bf16";
  if (isa<Float8E4M3FNType>(type))
    return "tk::f8e4m3";
  if (isa<Float8E5M2Type>(type))
    return "tk::f8e5m2";
  if (!failed)
    func.emitOpError("cannot be emitted as CUDA: no C++ type for ") << type;
  failed = true;
  return "void";
}

unsigned KernelEmitter::elementBytes(Type type) { return gpu::elementBytes(type, func); }

static std::string floatLiteral(const llvm::APFloat &value, Type type) {
  const uint64_t bits = value.bitcastToAPInt().getZExtValue();
  std::string text;
  llvm::raw_string_ostream out(text);
  if (type.isF64()) {
    if (value.isFinite())
      out << llvm::format("%.17g", value.convertToDouble());
    else
      out << "tk::as_double(0x" << llvm::utohexstr(bits, true) << "ull)";
  } else if (type.isF32()) {
    if (value.isFinite())
      out << llvm::format("%.9g", static_cast<double>(value.convertToFloat()));
    else if (value.isInfinity())
      return value.isNegative() ? "-tk::infinity()" : "tk::infinity()";
    else
      out << "tk::as_float(0x" << llvm::utohexstr(bits, true) << "u)";
  } else {
    const char *name = type.isF16()                  ? "tk::f16"
                       : type.isBF16()               ? "tk::bf16"
                       : isa<Float8E4M3FNType>(type) ? "tk::f8e4m3"
                                                     : "tk::f8e5m2";
    out << name << "{0x" << llvm::utohexstr(bits, true) << "}";
    return text;
  }
  if (value.isFinite()) {
    if (text.find_first_of(".e") == std::string::npos)
      text += ".0";
    if (type.isF32())
      text += "f";
    if (text[0] == '-')
      text = "(" + text + ")";
  }
  return text;
}

std::string KernelEmitter::literal(TypedAttr value) {
  Attribute attribute = value;
  if (auto dense = dyn_cast<DenseElementsAttr>(attribute))
    attribute = dense.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return floatLiteral(number.getValue(), number.getType());
  auto number = cast<IntegerAttr>(attribute);
  if (number.getType().isInteger(1))
    return number.getValue().isZero() ? "false" : "true";
  const int64_t integer = number.getValue().getSExtValue();
  const bool wide =
      number.getType().isInteger(64) || (number.getType().isIndex() && func.getIndexBits() == 64);
  std::string text = std::to_string(integer);
  if (integer == INT64_MIN)
    text = "(-9223372036854775807ll - 1)";
  else if (integer == INT32_MIN && !wide)
    text = "(-2147483647 - 1)";
  else if (wide)
    text += "ll";
  return text[0] == '-' ? "(" + text + ")" : text;
}

} // namespace tk::cuda
