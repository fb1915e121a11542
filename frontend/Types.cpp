#include "frontend/Types.h"

#include <algorithm>
#include <limits>

namespace tk::sema {

using ast::DType;

bool isFloat(DType t) { return t <= DType::F8E5M2; }
bool isNarrowFloat(DType t) { return t >= DType::F16 && t <= DType::F8E5M2; }

Type computeType(DType stored) {
  switch (stored) {
  case DType::F64:
    return Type::F64;
  case DType::F32:
  case DType::F16:
  case DType::BF16:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return Type::F32;
  case DType::I64:
    return Type::I64;
  case DType::I32:
    return Type::I32;
  case DType::I16:
    return Type::I16;
  case DType::I8:
    return Type::I8;
  case DType::U8:
    return Type::U8;
  case DType::Bool:
    return Type::Bool;
  }
  return Type::F32;
}

std::string spelling(Type t) {
  static const char *const names[] = {"f64", "f32", "i64",  "i32",  "i16",
                                      "i8",  "u8",  "bool", "index"};
  return names[static_cast<unsigned>(t)];
}

unsigned widthOf(Type t) {
  switch (t) {
  case Type::I32:
    return 32;
  case Type::I16:
    return 16;
  case Type::I8:
  case Type::U8:
    return 8;
  case Type::Bool:
    return 1;
  default:
    return 64;
  }
}

unsigned bytesOf(DType t) {
  switch (t) {
  case DType::F64:
  case DType::I64:
    return 8;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
    return 2;
  default:
    return 1;
  }
}

std::int64_t minOf(Type t) {
  if (t == Type::U8)
    return 0;
  unsigned width = widthOf(t);
  return width == 64 ? std::numeric_limits<std::int64_t>::min() : -(std::int64_t{1} << (width - 1));
}

std::int64_t maxOf(Type t) {
  if (t == Type::U8)
    return 255;
  unsigned width = widthOf(t);
  return width == 64 ? std::numeric_limits<std::int64_t>::max()
                     : (std::int64_t{1} << (width - 1)) - 1;
}

std::optional<Type> join(Type a, Type b) {
  if (a == b)
    return a;
  if (a == Type::Bool || b == Type::Bool)
    return std::nullopt;
  if (isFloat(a) || isFloat(b))
    return a == Type::F64 || b == Type::F64 ? Type::F64 : Type::F32;
  if (a == Type::Index || b == Type::Index)
    return Type::I64;
  if (widthOf(a) == widthOf(b))
    return Type::I16; // u8 and i8
  return widthOf(a) > widthOf(b) ? a : b;
}

bool isNarrowInteger(Type t) { return isInteger(t) && widthOf(t) < 32; }

Type arithmeticType(Type t) { return isNarrowInteger(t) ? Type::I32 : t; }

bool holdsValues(DType to, Type from) {
  if (isFloat(to))
    return from != Type::Bool;
  if (to == DType::Bool || from == Type::Bool)
    return to == DType::Bool && from == Type::Bool;
  if (isFloat(from))
    return false;
  Type target = computeType(to);
  if (from == Type::Index || from == target)
    return true;
  return widthOf(target) > widthOf(from);
}

bool storesImplicitly(Type from, DType to) {
  bool wraps = isInteger(from) && widthOf(from) <= 32 && isNarrowInteger(computeType(to));
  return holdsValues(to, from) || wraps;
}

} // namespace tk::sema
