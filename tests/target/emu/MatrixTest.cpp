// Matrix instructions against plain loops.
#include "KernelHarness.h"

#include <cmath>
#include <functional>
#include <random>

using tk::DType;
using tk::test::KernelHarness;

/// Loads fragments element by element, multiplies, stores: a [16, K], b [8, K], y [16, 8].
static std::string productText(const std::string &type, const std::string &sum, int size) {
  const std::string k = std::to_string(32 / size), perWord = std::to_string(4 / size);
  return R"(extern "C" __global__ void __launch_bounds__(32)
k(const )" +
         type + " *__restrict__ a, const " + type + " *__restrict__ b, " + sum + R"( *y) {
  constexpr int K = )" +
         k + ", n = " + perWord + R"(;
  const int g = tk::lane_index() / 4, t = tk::lane_index() % 4;
  )" + type +
         R"( x[4 * n], w[2 * n];
  for (int word = 0; word < 4; ++word)
    for (int i = 0; i < n; ++i)
      x[word * n + i] = tk::get(&a[(g + 8 * (word & 1)) * K + (t + 4 * (word >> 1)) * n + i]);
  for (int word = 0; word < 2; ++word)
    for (int i = 0; i < n; ++i)
      w[word * n + i] = tk::get(&b[g * K + (t + 4 * word) * n + i]);
  )" + sum +
         R"( c[4] = {1, 2, 3, 4};
  tk::mma_m16n8(c, x, w);
  for (int i = 0; i < 4; ++i)
    tk::put(&y[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)], c[i]);
})";
}

static void checkFloats(const std::string &name, DType type, double tolerance) {
  const auto size = static_cast<int>(tk::size_of(type));
  const size_t depth = static_cast<size_t>(32 / size);
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  std::vector<unsigned char> a(16 * 32), b(8 * 32);
  auto fill = [&](std::vector<unsigned char> &bytes) {
    for (size_t i = 0; i < bytes.size(); i += static_cast<size_t>(size))
      tk::store_from_f64(type, &bytes[i], normal(random));
  };
  fill(a);
  fill(b);
  KernelHarness k(productText(name, "float", size));
  const auto step = static_cast<size_t>(size);
  k.inView({a.data(), type, tk::Extents{16, static_cast<int64_t>(depth)}});
  k.inView({b.data(), type, tk::Extents{8, static_cast<int64_t>(depth)}});
  std::vector<float> y(128);
  k.out(y, DType::f32);
  REQUIRE(k.run() == "");
  for (size_t m = 0; m < 16; ++m)
    for (size_t n = 0; n < 8; ++n) {
      double sum = static_cast<double>(1 + m / 8 * 2 + n % 2);
      for (size_t d = 0; d < depth; ++d)
        sum += tk::load_as_f64(type, &a[(m * depth + d) * step]) *
               tk::load_as_f64(type, &b[(n * depth + d) * step]);
      CHECK(std::abs(y[m * 8 + n] - sum) <= tolerance * (1 + std::abs(sum)));
    }
}

TEST_CASE("matrix products of every float type", "[emu]") {
  checkFloats("tk::bf16", DType::bf16, 1e-6);
  checkFloats("tk::f16", DType::f16, 1e-6);
  checkFloats("tk::f8e4m3", DType::f8e4m3, 2e-3);
  checkFloats("tk::f8e5m2", DType::f8e5m2, 2e-3);
  checkFloats("float", DType::f32, 5e-3); // rounded to tf32
}

TEST_CASE("sums of 8-bit floats keep 14 bits, from the largest summand's first", "[emu]") {
  constexpr double largest = 448;
  std::vector<unsigned char> a(16 * 32), b(8 * 32);
  // Rows of 1.5 below one product that is 448 or, in odd columns, 2 times the row's 448.
  for (size_t row = 0; row < 16; ++row)
    for (size_t k = 0; k < 32; ++k)
      tk::store_from_f64(DType::f8e4m3, &a[row * 32 + k], k == 0 ? largest : 1.5);
  for (size_t column = 0; column < 8; ++column)
    for (size_t k = 0; k < 32; ++k)
      tk::store_from_f64(DType::f8e4m3, &b[column * 32 + k],
                         k > 0             ? 1
                         : column % 2 == 0 ? largest
                                           : 2.0);
  KernelHarness k(productText("tk::f8e4m3", "float", 1));
  k.inView({a.data(), DType::f8e4m3, tk::Extents{16, 32}});
  k.inView({b.data(), DType::f8e4m3, tk::Extents{8, 32}});
  std::vector<float> y(128);
  k.out(y, DType::f32);
  REQUIRE(k.run() == "");
  for (size_t m = 0; m < 16; ++m)
    for (size_t n = 0; n < 8; ++n) {
      const double c = static_cast<double>(1 + m / 8 * 2 + n % 2);
      // 448 · 448 has the factors' exponents 8 + 8: units of 8, in which 1.5 and c are nothing. 896
      // has exponent 9: units of 1/16.
      CHECK(y[m * 8 + n] == (n % 2 == 0 ? largest * largest : 2 * largest + 31 * 1.5 + c));
    }
}

/// Hands `check` each place of an m16n8 product of rows of `depth` elements with what is right
/// there, where lanes began with 1 to 4.
template <typename Sum, typename T>
static void forEachSum(const std::vector<T> &a, const std::vector<T> &b, size_t depth,
                       const std::function<void(size_t, Sum)> &check) {
  for (size_t m = 0; m < 16; ++m)
    for (size_t n = 0; n < 8; ++n) {
      auto sum = static_cast<Sum>(1 + m / 8 * 2 + n % 2);
      for (size_t d = 0; d < depth; ++d)
        sum += a[m * depth + d] * b[n * depth + d];
      check(m * 8 + n, sum);
    }
}

TEST_CASE("matrix products of integers are exact", "[emu]") {
  KernelHarness k(productText("tk::i8", "int", 1));
  std::vector<int8_t> a(16 * 32), b(8 * 32);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<int8_t>(i * 37);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<int8_t>(i * 91 + 3);
  std::vector<int32_t> y(128);
  k.in(a, DType::i8);
  k.in(b, DType::i8);
  k.out(y, DType::i32);
  REQUIRE(k.run() == "");
  forEachSum<int>(a, b, 32, [&](size_t place, int sum) { CHECK(y[place] == sum); });
}

TEST_CASE("matrix products of f64", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const double *__restrict__ a, const double *__restrict__ b, double *y) {
  const int g = tk::lane_index() / 4, t = tk::lane_index() % 4;
  const double x[2] = {tk::get(&a[g * 4 + t]), tk::get(&a[(g + 8) * 4 + t])};
  const double w[1] = {tk::get(&b[g * 4 + t])};
  double c[4] = {1, 2, 3, 4};
  tk::mma_m16n8(c, x, w);
  for (int i = 0; i < 4; ++i)
    tk::put(&y[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)], c[i]);
})");
  std::vector<double> a(16 * 4), b(8 * 4), y(128);
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (std::vector<double> *values : {&a, &b})
    for (double &value : *values)
      value = normal(random);
  k.in(a, DType::f64);
  k.in(b, DType::f64);
  k.out(y, DType::f64);
  REQUIRE(k.run() == "");
  forEachSum<double>(a, b, 4, [&](size_t place, double sum) {
    CHECK(std::abs(y[place] - sum) <= 1e-14 * (1 + std::abs(sum)));
  });
}

TEST_CASE("load_matrix hands out rows, or columns", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(short *__restrict__ y, short *__restrict__ z) {
  short *shared = reinterpret_cast<short *>(tk::shared_memory());
  const int lane = tk::lane_index();
  for (int i = 0; i < 8; ++i)
    tk::put(&shared[lane * 8 + i], (short)(lane * 8 + i));
  tk::barrier();
  short a[8], b[4];
  tk::load_matrix<4, false>(a, &shared[lane * 8]);
  tk::load_matrix<2, true>(b, &shared[(lane & 15) * 8]);
  tk::store<8>(&y[lane * 8], a);
  tk::store<4>(&z[lane * 4], b);
})");
  std::vector<int16_t> y(256), z(128);
  k.sharedBytes = 512;
  k.out(y, DType::i16);
  k.out(z, DType::i16);
  REQUIRE(k.run() == "");
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int m = 0; m < 4; ++m)
      for (int i = 0; i < 2; ++i)
        CHECK(y[static_cast<size_t>(lane * 8 + m * 2 + i)] == m * 64 + g * 8 + 2 * t + i);
    for (int m = 0; m < 2; ++m)
      for (int i = 0; i < 2; ++i)
        CHECK(z[static_cast<size_t>(lane * 4 + m * 2 + i)] == m * 64 + (2 * t + i) * 8 + g);
  }
}
