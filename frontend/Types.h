// The types of scalar values in expressions, and how they meet.

#ifndef TK_FRONTEND_TYPES_H
#define TK_FRONTEND_TYPES_H

#include "frontend/AST.h"

#include <optional>
#include <string>

namespace tk::sema {

/// The type of a value while it is computed with. 16-bit and 8-bit floats are stored types only:
/// a value read from such a tensor is an F32. Index is the type of dimensions, indices and integer
/// literals that met nothing else.
enum class Type : std::uint8_t { F64, F32, I64, I32, I16, I8, U8, Bool, Index };

inline bool isFloat(Type t) { return t <= Type::F32; }
inline bool isInteger(Type t) { return t != Type::Bool && !isFloat(t); }
bool isFloat(ast::DType t);
/// A float type of 16 or 8 bits.
bool isNarrowFloat(ast::DType t);

/// The type that an element of a stored type has in expressions.
Type computeType(ast::DType stored);
std::string spelling(Type t);
/// Width in bits of an integer type.
unsigned widthOf(Type t);
/// Bytes of an element as it is stored.
unsigned bytesOf(ast::DType t);
/// The smallest and the largest value of an integer type.
std::int64_t minOf(Type t);
std::int64_t maxOf(Type t);

/// The type in which two values meet: f64 before f32 before integers, the wider integer; u8 and i8
/// meet in i16, Index and another integer in i64. None if one alone is a bool.
std::optional<Type> join(Type a, Type b);

/// The type in which arithmetic on values of a type is done: i32 for narrower integers.
Type arithmeticType(Type t);
/// An integer type of fewer than 32 bits.
bool isNarrowInteger(Type t);

/// Whether a stored type holds every value of a type, up to the rounding of floats: any float type,
/// a wider integer type, and any integer type for an index.
bool holdsValues(ast::DType stored, Type of);
/// Whether a value may be stored without a cast being written: where the stored type holds it, and
/// integers of up to 32 bits into narrower ones, which wraps.
bool storesImplicitly(Type from, ast::DType to);

} // namespace tk::sema

#endif // TK_FRONTEND_TYPES_H
