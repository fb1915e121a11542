#include "tk/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tk {
namespace {

struct Row {
  std::string_view name;
  uint8_t size;
  bool is_float;
};
constexpr Row rows[num_dtypes] = {
    {"f64", 8, true},    {"f32", 4, true},    {"f16", 2, true},  {"bf16", 2, true},
    {"f8e4m3", 1, true}, {"f8e5m2", 1, true}, {"i64", 8, false}, {"i32", 4, false},
    {"i16", 2, false},   {"i8", 1, false},    {"u8", 1, false},  {"bool", 1, false},
};
const Row &row(DType dtype) { return rows[static_cast<unsigned>(dtype) % num_dtypes]; }

/// A small binary float format with subnormals.
struct Format {
  int mantissa; ///< stored bits of the fraction
  int bias;
  uint32_t max_finite; ///< code of the largest finite value
  uint32_t infinity;   ///< code that stands for overflow: infinity, or max_finite to saturate
  uint32_t nan;
  int width;
};
constexpr Format f16_format{10, 15, 0x7bff, 0x7c00, 0x7e00, 16};
constexpr Format e4m3_format{3, 7, 0x7e, 0x7e, 0x7f, 8};
constexpr Format e5m2_format{2, 15, 0x7b, 0x7b, 0x7f, 8};

/// Rounds to nearest even. Works on f64, which holds every f32 and so also serves f64 sources
/// without rounding twice.
uint32_t encode_small(double value, const Format &format) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint32_t sign = static_cast<uint32_t>(bits >> 63) << (format.width - 1);
  if (std::isnan(value))
    return sign | format.nan;
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return sign;
  if (std::isinf(value))
    return sign | format.infinity;
  // The quantum is one unit of the last stored place; below the smallest normal it stays that of
  // subnormals. Scaling by a power of two is exact, so the one rounding is nearbyint's.
  int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  double units = std::nearbyint(std::ldexp(magnitude, format.mantissa - exponent));
  // A carry into the next exponent falls out of the addition.
  int64_t code = (static_cast<int64_t>(exponent + format.bias - 1) << format.mantissa) +
                 static_cast<int64_t>(units);
  if (exponent + format.bias > 64 || code > format.max_finite)
    return sign | format.infinity;
  return sign | static_cast<uint32_t>(code);
}

float decode_small(uint32_t bits, const Format &format, bool has_infinity) {
  uint32_t magnitude = bits & ((1u << (format.width - 1)) - 1);
  float sign = bits >> (format.width - 1) ? -1.0f : 1.0f;
  if (has_infinity && magnitude == format.max_finite + 1)
    return sign * std::numeric_limits<float>::infinity();
  if (magnitude > format.max_finite)
    return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  int exponent = static_cast<int>(magnitude >> format.mantissa);
  int fraction = static_cast<int>(magnitude & ((1u << format.mantissa) - 1));
  if (exponent == 0)
    exponent = 1;
  else
    fraction += 1 << format.mantissa;
  return sign * std::ldexp(static_cast<float>(fraction), exponent - format.bias - format.mantissa);
}

/// f64 to bf16 with one rounding: bf16 has f32's exponents, so round f64 to f32 to odd first.
uint16_t encode_bf16(double value) {
  float narrowed = static_cast<float>(value);
  if (std::isnan(value))
    return f32_to_bf16(narrowed);
  if (static_cast<double>(narrowed) != value && !std::isinf(narrowed)) {
    uint32_t bits = std::bit_cast<uint32_t>(narrowed);
    if (std::fabs(static_cast<double>(narrowed)) > std::fabs(value))
      --bits; // towards zero, then the sticky bit
    return f32_to_bf16(std::bit_cast<float>(bits | 1));
  }
  return f32_to_bf16(narrowed);
}

template <typename T> T clamp_integer(double value) {
  if (std::isnan(value))
    return 0;
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
  if (value <= low)
    return std::numeric_limits<T>::min();
  if (value >= high)
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <typename T> T read(const void *source) {
  T value;
  std::memcpy(&value, source, sizeof(T));
  return value;
}
template <typename T> void write(void *destination, T value) {
  std::memcpy(destination, &value, sizeof(T));
}
template <typename T> void write_clamped(void *destination, int64_t value) {
  constexpr int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  write<T>(destination, static_cast<T>(value < low ? low : value > high ? high : value));
}

int64_t load_integer(DType dtype, const void *source) {
  switch (dtype) {
  case DType::i64:
    return read<int64_t>(source);
  case DType::i32:
    return read<int32_t>(source);
  case DType::i16:
    return read<int16_t>(source);
  case DType::i8:
    return read<int8_t>(source);
  case DType::boolean:
    return read<uint8_t>(source) != 0;
  default:
    return read<uint8_t>(source);
  }
}

void store_integer(DType dtype, void *destination, int64_t value) {
  switch (dtype) {
  case DType::i64:
    return write<int64_t>(destination, value);
  case DType::i32:
    return write_clamped<int32_t>(destination, value);
  case DType::i16:
    return write_clamped<int16_t>(destination, value);
  case DType::i8:
    return write_clamped<int8_t>(destination, value);
  case DType::boolean:
    return write<uint8_t>(destination, value != 0);
  default:
    return write_clamped<uint8_t>(destination, value);
  }
}

} // namespace

size_t size_of(DType dtype) noexcept { return row(dtype).size; }
std::string_view name(DType dtype) noexcept { return row(dtype).name; }
bool is_float(DType dtype) noexcept { return row(dtype).is_float; }

std::optional<DType> parse_dtype(std::string_view name) noexcept {
  for (unsigned i = 0; i < num_dtypes; ++i)
    if (rows[i].name == name)
      return static_cast<DType>(i);
  return std::nullopt;
}

uint16_t f32_to_f16(float value) noexcept {
  return static_cast<uint16_t>(encode_small(value, f16_format));
}
uint8_t f32_to_f8e4m3(float value) noexcept {
  return static_cast<uint8_t>(encode_small(value, e4m3_format));
}
uint8_t f32_to_f8e5m2(float value) noexcept {
  return static_cast<uint8_t>(encode_small(value, e5m2_format));
}
uint16_t f32_to_bf16(float value) noexcept {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return static_cast<uint16_t>((bits >> 16) | 0x40); // quiet
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float f16_to_f32(uint16_t bits) noexcept { return decode_small(bits, f16_format, true); }
float f8e4m3_to_f32(uint8_t bits) noexcept { return decode_small(bits, e4m3_format, false); }
float f8e5m2_to_f32(uint8_t bits) noexcept { return decode_small(bits, e5m2_format, true); }
float bf16_to_f32(uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

double load_as_f64(DType dtype, const void *element) noexcept {
  switch (dtype) {
  case DType::f64:
    return read<double>(element);
  case DType::f32:
    return read<float>(element);
  case DType::f16:
    return f16_to_f32(read<uint16_t>(element));
  case DType::bf16:
    return bf16_to_f32(read<uint16_t>(element));
  case DType::f8e4m3:
    return f8e4m3_to_f32(read<uint8_t>(element));
  case DType::f8e5m2:
    return f8e5m2_to_f32(read<uint8_t>(element));
  default:
    return static_cast<double>(load_integer(dtype, element));
  }
}

void store_from_f64(DType dtype, void *element, double value) noexcept {
  switch (dtype) {
  case DType::f64:
    return write(element, value);
  case DType::f32:
    return write(element, static_cast<float>(value));
  case DType::f16:
    return write(element, static_cast<uint16_t>(encode_small(value, f16_format)));
  case DType::bf16:
    return write(element, encode_bf16(value));
  case DType::f8e4m3:
    return write(element, static_cast<uint8_t>(encode_small(value, e4m3_format)));
  case DType::f8e5m2:
    return write(element, static_cast<uint8_t>(encode_small(value, e5m2_format)));
  case DType::boolean:
    return write(element, static_cast<uint8_t>(value != 0));
  default:
    return store_integer(dtype, element, clamp_integer<int64_t>(value));
  }
}

void convert(DType to, void *destination, DType from, const void *source, size_t count) noexcept {
  auto *out = static_cast<char *>(destination);
  auto *in = static_cast<const char *>(source);
  size_t out_size = size_of(to), in_size = size_of(from);
  if (count == 0) // an empty tensor may have no address
    return;
  if (to == from) {
    std::memmove(destination, source, count * in_size);
    return;
  }
  bool integers = is_integer(to) && is_integer(from);
  for (size_t i = 0; i < count; ++i, in += in_size, out += out_size) {
    if (integers)
      store_integer(to, out, load_integer(from, in));
    else
      store_from_f64(to, out, load_as_f64(from, in));
  }
}

} // namespace tk
