// Conversions agree with the runtime's, bit by bit.
#include "KernelHarness.h"

#include <bit>
#include <cmath>

using tk::DType;
using tk::test::KernelHarness;

/// Every exponent with mantissas around the places where 16- and 8-bit floats round.
static std::vector<float> interesting() {
  std::vector<float> values;
  for (uint32_t exponent = 0; exponent < 256; ++exponent)
    for (uint32_t mantissa :
         {0u,        1u,        0x0fffu,   0x1000u,   0x1001u,   0x3000u,   0x7fffu,
          0x8000u,   0x8001u,   0x18000u,  0x7ffffu,  0x80000u,  0x80001u,  0x100000u,
          0x180000u, 0x200000u, 0x300000u, 0x500000u, 0x7fe000u, 0x7ff000u, 0x7fffffu})
      for (uint32_t sign : {0u, 1u})
        values.push_back(std::bit_cast<float>(sign << 31 | exponent << 23 | mantissa));
  return values;
}

template <class Bits> static void checkNarrowing(const std::string &type, DType dtype) {
  std::vector<float> x = interesting();
  const size_t count = x.size();
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const float *__restrict__ x, )" +
                  type + R"( *y, float *z) {
  for (int i = tk::thread_index(); i < )" +
                  std::to_string(count) + R"(; i += 32) {
    const )" + type +
                  " narrow = tk::from_float<" + type + R"(>(tk::get(&x[i]));
    tk::put(&y[i], narrow);
    tk::put(&z[i], tk::to_float(narrow));
  }
})");
  std::vector<Bits> y(count);
  std::vector<float> z(count);
  k.in(x, DType::f32);
  k.out(y, dtype);
  k.out(z, DType::f32);
  REQUIRE(k.run() == "");
  for (size_t i = 0; i < count; ++i) {
    Bits expected;
    tk::store_from_f64(dtype, &expected, static_cast<double>(x[i]));
    const double back = tk::load_as_f64(dtype, &expected);
    INFO(type << " of " << x[i]);
    if (std::isnan(back)) {
      CHECK(std::isnan(tk::load_as_f64(dtype, &y[i])));
      CHECK(std::isnan(z[i]));
    } else {
      CHECK(y[i] == expected);
      CHECK(static_cast<double>(z[i]) == back);
    }
  }
}

TEST_CASE("f32 to narrower floats and back", "[emu]") {
  checkNarrowing<uint16_t>("tk::f16", DType::f16);
  checkNarrowing<uint16_t>("tk::bf16", DType::bf16);
  checkNarrowing<uint8_t>("tk::f8e4m3", DType::f8e4m3);
  checkNarrowing<uint8_t>("tk::f8e5m2", DType::f8e5m2);
}

template <class Integer> static void checkWidening(const std::string &type, DType dtype) {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const )" + type +
                  R"( *__restrict__ x, float *y) {
  for (int i = tk::thread_index(); i < )" +
                  std::to_string(1 << 8 * sizeof(Integer)) + R"(; i += 32)
    tk::put(&y[i], tk::to_float(tk::get(&x[i])));
})");
  std::vector<Integer> x(size_t{1} << 8 * sizeof(Integer));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<Integer>(i);
  std::vector<float> y(x.size());
  k.in(x, dtype);
  k.out(y, DType::f32);
  REQUIRE(k.run() == "");
  for (size_t i = 0; i < x.size(); ++i)
    REQUIRE(y[i] == static_cast<float>(x[i]));
}

TEST_CASE("narrow integers to f32", "[emu]") {
  checkWidening<int8_t>("tk::i8", DType::i8);
  checkWidening<uint8_t>("tk::u8", DType::u8);
  checkWidening<int16_t>("tk::i16", DType::i16);
}

/// Fields of bytes or words less a zero, scaled: `at` is the text of a register's first bit. The
/// error before the rounding is up to 2^-13 of the scale.
static void checkFields(const std::string &type, const std::string &form, const std::string &at,
                        float largestScale) {
  const bool isHalf = type == "f16";
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const tk::u8 *__restrict__ x, const float *__restrict__ zero, const float *__restrict__ scale, float *y) {
  const int i = tk::thread_index();
  tk::u8 bytes[32];
  for (int r = 0; r < 32; ++r)
    bytes[r] = tk::get(&x[r / 2]);
  const float z = tk::get(&zero[i]), s = tk::get(&scale[i]);
  tk::)" + type + R"( scaled[32];
  tk::scale_fields<)" +
                  form + R"(>(scaled, bytes, [&](int r) { return )" + at +
                  R"(; }, [&](int) { return z; }, [&](int) { return s; });
  for (int r = 0; r < 32; ++r)
    tk::put(&y[32 * i + r], tk::to_float(scaled[r]));
})");
  std::vector<uint8_t> x(16);
  for (size_t i = 0; i < 16; ++i)
    x[i] = static_cast<uint8_t>(i * 16 + (15 - i));
  std::vector<float> zero(32), scale(32, 0.0625f);
  for (size_t i = 0; i < 32; ++i)
    zero[i] = 0.53125f * static_cast<float>(i) - 0.5f, scale[i] *= (i % 2 != 0 ? -1.0f : 1.0f);
  zero[20] = 0, zero[21] = 8, zero[22] = 300, zero[23] = -INFINITY, zero[24] = NAN;
  scale[25] = INFINITY, scale[26] = -INFINITY, scale[27] = NAN, scale[28] = largestScale;
  std::vector<float> y(32 * 32);
  k.in(x, DType::u8);
  k.in(zero, DType::f32);
  k.in(scale, DType::f32);
  k.out(y, DType::f32);
  REQUIRE(k.run() == "");
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t lane = i / 32, r = i % 32;
    const int field = x[r / 2] >> (r % 2 != 0 ? 4 : 0) & 15;
    const float exact = (static_cast<float>(field) - zero[lane]) * scale[lane];
    const float got = y[i];
    INFO(field << " - " << zero[lane] << ", times " << scale[lane]);
    if (std::isnan(exact))
      CHECK(std::isnan(got));
    else if (std::isinf(exact))
      CHECK(got == exact);
    else
      CHECK(std::abs(got - exact) <=
            std::abs(exact) * (isHalf ? 0x1p-11f : 0x1p-8f) + std::abs(scale[lane]) * 0x1p-13f);
  }
}

TEST_CASE("fields less a zero, times a scale, in pairs", "[emu]") {
  checkFields("bf16", "4, true, 4", "r % 2 * 4", 0x1p120f);
  checkFields("bf16", "4, true, -1", "r % 2 == 0 ? 0 : 4", 0x1p120f);
  checkFields("bf16", "4, false, 4", "r % 2 * 4", 0x1p120f);
  checkFields("f16", "4, true, 4", "r % 2 * 4", 2048.0f);
}

TEST_CASE("integers times what a word of them has in common, to bf16", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const tk::i8 *__restrict__ x, const float *__restrict__ scale, tk::bf16 *y) {
  const int i = tk::thread_index();
  tk::i8 words[256];
  for (int r = 0; r < 256; ++r)
    words[r] = tk::get(&x[r]);
  const float scales[2] = {tk::get(&scale[2 * i]), tk::get(&scale[2 * i + 1])};
  tk::bf16 scaled[256];
  tk::scale_integers(scaled, words, [&](int r) { return scales[r / 128]; });
  for (int r = 0; r < 256; ++r)
    tk::put(&y[256 * i + r], scaled[r]);
})");
  std::vector<int8_t> x(256);
  for (size_t i = 0; i < 256; ++i)
    x[i] = static_cast<int8_t>(i * 37);
  // From 2^122 on a scale counts as infinite.
  std::vector<float> scale(64, 0.0123f);
  for (size_t i = 0; i < 32; ++i)
    scale[i] = (i % 2 != 0 ? -0.7f : 1.3f) * static_cast<float>(i + 1);
  scale[3] = 0, scale[8] = 0x1p122f, scale[11] = -0x1.8p127f, scale[14] = INFINITY,
  scale[16] = -INFINITY, scale[19] = NAN, scale[20] = 0x1.fffffep121f, scale[22] = 0x1p-133f,
  scale[24] = std::bit_cast<float>(0x7f800001u), scale[26] = 0x1.fffffep127f;
  std::vector<uint16_t> y(256 * 32);
  k.in(x, DType::i8);
  k.in(scale, DType::f32);
  k.out(y, DType::bf16);
  REQUIRE(k.run() == "");
  for (size_t i = 0; i < y.size(); ++i) {
    const float given = scale[i / 128], infinity = std::copysign(INFINITY, given);
    const float factor = std::abs(given) >= 0x1p122f ? infinity : given;
    const float exact = static_cast<float>(x[i % 256]) * factor;
    const float got = std::bit_cast<float>(uint32_t{y[i]} << 16);
    INFO(int{x[i % 256]} << " * " << factor);
    if (std::isnan(exact))
      CHECK(std::isnan(got));
    else if (std::isinf(got) || std::isinf(exact)) // nor does bf16 hold more
      CHECK((std::isinf(got) && std::abs(exact) > 0x1.fep127f &&
             std::signbit(got) == std::signbit(exact)));
    else // half a unit of the last place, and 2^-14
      CHECK(std::abs(got - exact) <=
            std::ldexp(0x1p-8f, std::ilogb(exact)) + std::abs(exact) * 0x1p-14f + 0x1p-133f);
  }
}

TEST_CASE("f64 rounds once, floats to integers clamp", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const double *__restrict__ x, tk::bf16 *y, int *z, long long *w) {
  const int i = tk::thread_index();
  const double v = tk::get(&x[i]);
  tk::put(&y[i], tk::from_double<tk::bf16>(v));
  tk::put(&z[i], (int)tk::to_integer<tk::i8>(v) + 1000 * tk::to_integer<tk::u8>((float)v));
  tk::put(&w[i], tk::to_integer<long long>(v));
})");
  // Just above a tie of bf16: f32 in between would land on it.
  std::vector<double> x(32, 1.0 + 0x1p-8 + 0x1p-40);
  x[1] = NAN, x[2] = 1e300, x[3] = -1e300, x[4] = -200.5, x[5] = 200.5, x[6] = 1e19;
  std::vector<uint16_t> y(32);
  std::vector<int32_t> z(32);
  std::vector<int64_t> w(32);
  k.in(x, DType::f64);
  k.out(y, DType::bf16);
  k.out(z, DType::i32);
  k.out(w, DType::i64);
  REQUIRE(k.run() == "");
  CHECK(y[0] == 0x3f81);
  CHECK(y[2] == 0x7f80);
  CHECK(z[0] == 1001);
  CHECK(z[1] == 0);
  CHECK(z[2] == 255127);
  CHECK(z[4] == -128);
  CHECK(z[5] == 200127);
  CHECK(w[3] == INT64_MIN);
  CHECK(w[6] == INT64_MAX);
}
