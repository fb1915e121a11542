// Every code of every small float, and every rounding boundary between neighbours.
#include "tests/unit/catch.h"

#include "tk/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

using namespace tk;

namespace {

/// An independent decoder: from the definition of the format, in f64.
double decode(uint32_t code, int exponent_bits, int mantissa_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1;
  uint32_t sign = code >> (exponent_bits + mantissa_bits);
  int exponent = static_cast<int>(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
  double fraction = static_cast<double>(code & ((1u << mantissa_bits) - 1)) / (1 << mantissa_bits);
  double value =
      exponent == 0 ? std::exp2(1 - bias) * fraction : std::exp2(exponent - bias) * (1 + fraction);
  return sign ? -value : value;
}

struct Case {
  DType dtype;
  int exponent_bits, mantissa_bits;
  uint32_t first_special; ///< the first positive code that is not a finite value
  bool saturates;
};
const Case cases[] = {{DType::f16, 5, 10, 0x7c00, false},
                      {DType::bf16, 8, 7, 0x7f80, false},
                      {DType::f8e4m3, 4, 3, 0x7f, true},
                      {DType::f8e5m2, 5, 2, 0x7c, true}};

uint32_t store(DType dtype, double value) {
  uint32_t bits = 0;
  store_from_f64(dtype, &bits, value);
  return bits;
}

uint32_t sign_bit(const Case &c) { return 1u << (c.exponent_bits + c.mantissa_bits); }

} // namespace

TEST_CASE("every finite code decodes to its value and encodes back", "[dtype]") {
  for (const Case &c : cases)
    for (uint32_t code = 0; code < c.first_special; ++code)
      for (uint32_t sign : {0u, sign_bit(c)}) {
        uint32_t bits = code | sign;
        double expected = decode(bits, c.exponent_bits, c.mantissa_bits);
        double got = load_as_f64(c.dtype, &bits);
        if (got != expected || store(c.dtype, got) != bits)
          FAIL(name(c.dtype) << " code " << bits << ": " << got << " for " << expected);
      }
}

TEST_CASE("ties round to even, and what is beside a tie to the nearer value", "[dtype]") {
  for (const Case &c : cases)
    for (uint32_t code = 0; code + 1 < c.first_special; ++code) {
      double low = decode(code, c.exponent_bits, c.mantissa_bits);
      double high = decode(code + 1, c.exponent_bits, c.mantissa_bits);
      double middle = (low + high) / 2; // exact in f64
      uint32_t even = code % 2 == 0 ? code : code + 1;
      if (store(c.dtype, middle) != even ||
          store(c.dtype, std::nextafter(middle, -1e300)) != code ||
          store(c.dtype, std::nextafter(middle, 1e300)) != code + 1)
        FAIL(name(c.dtype) << " between " << code << " and " << code + 1);
    }
}

TEST_CASE("f8 saturates, f16 and bf16 overflow to infinity", "[dtype]") {
  for (const Case &c : cases)
    for (double value : {1e300, std::numeric_limits<double>::infinity()}) {
      uint32_t expected = c.saturates ? c.first_special - 1 : c.first_special;
      CHECK(store(c.dtype, value) == expected);
      CHECK(store(c.dtype, -value) == (expected | sign_bit(c)));
    }
  CHECK(f16_to_f32(f32_to_f16(65519.0f)) == 65504.0f);
  CHECK(std::isinf(f16_to_f32(f32_to_f16(65520.0f))));
  CHECK(f8e4m3_to_f32(f32_to_f8e4m3(1000.0f)) == 448.0f);
  CHECK(f8e5m2_to_f32(f32_to_f8e5m2(1e6f)) == 57344.0f);
}

TEST_CASE("NaN stays NaN and is the only NaN", "[dtype]") {
  for (const Case &c : cases) {
    uint32_t bits = store(c.dtype, std::nan(""));
    CHECK(std::isnan(load_as_f64(c.dtype, &bits)));
    uint32_t all = sign_bit(c) * 2;
    uint32_t nans = 0;
    for (uint32_t code = 0; code < all; ++code)
      nans += std::isnan(load_as_f64(c.dtype, &code));
    uint32_t infinities = c.dtype == DType::f8e4m3 ? 0 : 1;
    CHECK(nans == 2 * (sign_bit(c) - c.first_special - infinities));
  }
}

TEST_CASE("f32 conversions agree with those from f64", "[dtype]") {
  uint32_t state = 1;
  for (int i = 0; i < 200000; ++i) {
    state = state * 1664525u + 1013904223u;
    float value = std::bit_cast<float>(state);
    if (std::isnan(value))
      continue;
    if (f32_to_f16(value) != store(DType::f16, value) ||
        f32_to_bf16(value) != store(DType::bf16, value) ||
        f32_to_f8e4m3(value) != store(DType::f8e4m3, value) ||
        f32_to_f8e5m2(value) != store(DType::f8e5m2, value))
      FAIL("bits " << state);
  }
}

TEST_CASE("f64 to bf16 rounds once", "[dtype]") {
  // Just above a tie of bf16, but nearer to the tie than f32 can tell.
  double value = 1.0 + std::exp2(-8) + std::exp2(-40);
  CHECK(store(DType::bf16, value) == 0x3f81);
  CHECK(f32_to_bf16(static_cast<float>(value)) == 0x3f80);
}

TEST_CASE("integers convert exactly or clamp", "[dtype]") {
  int64_t large = (int64_t{1} << 62) + 1, copy = 0;
  convert(DType::i64, &copy, DType::i64, &large, 1);
  CHECK(copy == large);
  int8_t narrow = 0;
  convert(DType::i8, &narrow, DType::i64, &large, 1);
  CHECK(narrow == 127);
  CHECK(static_cast<int32_t>(store(DType::i32, -2.9)) == -2);
  CHECK(static_cast<int32_t>(store(DType::i32, 1e20)) == std::numeric_limits<int32_t>::max());
  CHECK(store(DType::i32, std::nan("")) == 0);
  CHECK(store(DType::u8, -1.0) == 0);
  CHECK(store(DType::boolean, 0.5) == 1);
}

TEST_CASE("names of types round-trip", "[dtype]") {
  for (unsigned i = 0; i < num_dtypes; ++i)
    CHECK(parse_dtype(name(static_cast<DType>(i))) == static_cast<DType>(i));
  CHECK(!parse_dtype("f12"));
}
