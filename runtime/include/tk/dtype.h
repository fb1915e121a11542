// Element types and bit-exact conversions between them.
#pragma once

#if __cplusplus < 202002L
#error "tk needs C++20 or later: pass -std=c++20"
#endif

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tk {

/// The element types of the language. The numbers are part of the bundle format and the C ABI.
enum class DType : uint8_t {
  f64 = 0,
  f32 = 1,
  f16 = 2,
  bf16 = 3,
  f8e4m3 = 4, ///< OCP "fn" form: no infinities, largest 448
  f8e5m2 = 5, ///< IEEE-like, largest finite 57344
  i64 = 6,
  i32 = 7,
  i16 = 8,
  i8 = 9,
  u8 = 10,
  boolean = 11, ///< one byte, 0 or 1
};

inline constexpr unsigned num_dtypes = 12;

/// Bytes of one element.
size_t size_of(DType dtype) noexcept;
/// The name in `.tk` text, such as "bf16".
std::string_view name(DType dtype) noexcept;
/// The type of that name, if there is one.
std::optional<DType> parse_dtype(std::string_view name) noexcept;
bool is_float(DType dtype) noexcept;
inline bool is_integer(DType dtype) noexcept { return !is_float(dtype); }

// Float to 16 and 8 bits: to nearest even; f8 saturates to its largest finite value, infinities
// included; NaN stays NaN.
uint16_t f32_to_f16(float value) noexcept;
uint16_t f32_to_bf16(float value) noexcept;
uint8_t f32_to_f8e4m3(float value) noexcept;
uint8_t f32_to_f8e5m2(float value) noexcept;
float f16_to_f32(uint16_t bits) noexcept;
float bf16_to_f32(uint16_t bits) noexcept;
float f8e4m3_to_f32(uint8_t bits) noexcept;
float f8e5m2_to_f32(uint8_t bits) noexcept;

/// One element as f64 (exact but for i64 beyond 2^53).
double load_as_f64(DType dtype, const void *element) noexcept;
/// One element from f64, rounded once, to nearest even. To an integer: truncated, clamped, NaN is
/// 0.
void store_from_f64(DType dtype, void *element, double value) noexcept;
/// Converts `count` dense elements; integers convert exactly where the value fits, else clamp.
void convert(DType to, void *destination, DType from, const void *source, size_t count) noexcept;

} // namespace tk
