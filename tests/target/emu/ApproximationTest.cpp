// Functions of the device headers that are approximate: their errors, emulated.
#include "KernelHarness.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

using tk::DType;
using tk::test::KernelHarness;

/// A weight under the reference 1, to which 1/2 was added to the base 2.
static double powerOfCap(double v) {
  return std::exp2(3 * std::tanh(v / 2) + 0.5 - std::numbers::log2e);
}

/// A call of the device's functions from in[n] to out[n], and what it approximates.
struct Approximation {
  const char *call;
  double (*exact)(double);
  double bound; ///< of the absolute error
};

/// Runs the call on 256 threads, each with `perThread` neighbours of `x`, and checks each result.
static void check(const Approximation &approximation, size_t perThread, std::vector<float> x) {
  const std::string n = std::to_string(perThread);
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(256)
k(const float *__restrict__ x, float *__restrict__ y) {
  constexpr int n = )" +
                  n + R"(;
  const int i = tk::thread_index();
  float in[n], out[n];
  for (int r = 0; r < n; ++r)
    in[r] = tk::get(&x[n * i + r]);
  )" + std::string(approximation.call) +
                  R"(
  for (int r = 0; r < n; ++r)
    tk::put(&y[n * i + r], out[r]);
})");
  std::vector<float> y(x.size());
  k.threads = 256;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  REQUIRE(k.run() == "");
  for (size_t i = 0; i < x.size(); ++i) {
    INFO(approximation.call << " of " << x[i] << " at " << i);
    if (std::isnan(x[i]))
      CHECK(std::isnan(y[i]));
    else
      CHECK(std::abs(y[i] - approximation.exact(x[i])) <= approximation.bound);
  }
}

TEST_CASE("approximations are within their bounds, of pairs and by either way", "[emu]") {
  const Approximation approximation = GENERATE(
      Approximation{"for (int r = 0; r < 2; ++r)\n    out[r] = tk::erf_approx(in[r]);", std::erf,
                    0x1p-23},
      Approximation{"tk::tanh_approx(out, in);", std::tanh, 0x1p-22},
      Approximation{"tk::scaled_tanh(out, in, tk::ScaledTanh(0.5f, 30.0f));",
                    [](double v) { return 30 * std::tanh(v / 2); }, 30 * 0x1p-22},
      Approximation{"tk::scaled_tanh(out, in, tk::ScaledTanh(1e10f, 1e-10f));",
                    [](double v) { return 1e-10 * std::tanh(1e10 * v); }, 0x1p-50},
      Approximation{"const float same[2] = {3.0f, 3.0f};\n  "
                    "tk::exp2_scaled_tanh(out, in, tk::ScaledTanh(0.5f, 3.0f), "
                    "tk::RowReferences<2>(same, 0.5f), 1.4426950408889634f, 2.0f, "
                    "[](int r) { return r; }, [](int, float base) { return base; });",
                    powerOfCap, 0x1p-16},
      Approximation{"const float other[2] = {-3.0f, 1.0f};\n  "
                    "tk::exp2_scaled_tanh(out, in, tk::ScaledTanh(0.5f, 3.0f), "
                    "tk::RowReferences<2>(other, 0.25f), 0.5f, 0.0f, "
                    "[](int) { return 1; }, [](int, float base) { return tk::at_column(0.125f, "
                    "2.0f, base); });",
                    powerOfCap, 0x1p-16});
  std::vector<float> x(512);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = (static_cast<float>(i) - 256) / (i % 4 < 2 ? 42.0f : 512.0f);
  x[0] = INFINITY, x[1] = -INFINITY, x[4] = 1e30f, x[5] = -0.0f, x[8] = 1e-20f, x[9] = NAN,
  x[10] = NAN;
  x[12] = 11.5f, x[13] = -11.5f;
  check(approximation, 2, x);
}

TEST_CASE("sines and cosines are within 1.5 ulp for arguments of any size", "[emu]") {
  struct Case {
    const char *call;
    double (*exact)(double);
  };
  const Case function =
      GENERATE(Case{"tk::sin", std::sin}, Case{"tk::cos", [](double v) { return std::cos(v); }});
  std::vector<float> x(size_t{4096} * 256);
  for (size_t i = 0; i < x.size(); ++i) { // all exponents, both signs
    const auto bits = static_cast<uint32_t>(i * 4093 + i / 3);
    std::memcpy(&x[i], &bits, sizeof bits);
  }
  x[0] = -0.0f, x[1] = INFINITY, x[2] = -INFINITY, x[3] = NAN, x[4] = 71476.0f, x[5] = 71476.01f;
  std::vector<float> y(x.size());
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(256)
k(const float *__restrict__ x, float *__restrict__ y) {
  for (int r = 0; r < 4096; ++r)
    tk::put(&y[4096 * tk::thread_index() + r], )" +
                  std::string(function.call) + R"((tk::get(&x[4096 * tk::thread_index() + r])));
})");
  k.threads = 256;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  REQUIRE(k.run() == "");
  size_t wrong = 0;
  float first = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) {
      CHECK(std::isnan(y[i]));
      continue;
    }
    const double exact = function.exact(x[i]);
    const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
    const bool isRight = std::abs(y[i] - exact) <= 1.5 * ulp &&
                         (exact != 0 || std::signbit(y[i]) == std::signbit(exact));
    if (!isRight && wrong++ == 0)
      first = x[i];
  }
  INFO("of " << first);
  CHECK(wrong == 0);
}

TEST_CASE("soft caps of fragments are within their bound, whichever way a warp takes", "[emu]") {
  const Approximation approximation = GENERATE(
      Approximation{"tk::scaled_tanh(out, in, tk::ScaledTanh(0.5f, 30.0f));",
                    [](double v) { return 30 * std::tanh(v / 2); }, 30 * 0x1p-22},
      Approximation{"tk::scaled_tanh<16>(out, in, tk::ScaledTanh(0.5f, 30.0f));",
                    [](double v) { return 30 * std::tanh(v / 2); }, 30 * 0x1p-22},
      Approximation{"tk::scaled_tanh<32>(out, in, tk::ScaledTanh(0.5f, 30.0f));",
                    [](double v) { return 30 * std::tanh(v / 2); }, 30 * 0x1p-22},
      Approximation{"const float same[2] = {1.0f, 1.0f};\n  tk::exp2_scaled_tanh<16>(out, in, "
                    "tk::ScaledTanh(0.5f, 3.0f), tk::RowReferences<2>(same, 0.5f), 0.0f, 7.0f, "
                    "[](int r) { return r "
                    "& 1; }, [](int, float base) { return tk::at_column(9.0f, 0.0f, base); });",
                    powerOfCap, 0x1p-16},
      Approximation{
          "tk::exp2_scaled_tanh<32>(out, in, tk::ScaledTanh(0.5f, 3.0f), [](int) { return 0.5f - "
          "1.4426950408889634f; });",
          powerOfCap, 0x1p-16});
  std::vector<float> x(size_t{32} * 256);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = 0.59f * std::sin(1.7f * static_cast<float>(i));
  // One number of a warp is beyond the first bound, or beyond the second one, in either half.
  auto at = [](size_t warp, size_t lane, size_t r) { return (warp * 32 + lane) * 32 + r; };
  x[at(1, 3, 20)] = 0.9f, x[at(2, 31, 0)] = -0.97f, x[at(3, 7, 15)] = 1.01f;
  x[at(4, 9, 31)] = -9.0f, x[at(5, 0, 2)] = 0.7f, x[at(5, 0, 29)] = 25.0f;
  x[at(6, 12, 16)] = -INFINITY, x[at(7, 1, 5)] = NAN, x[at(7, 1, 25)] = 0.99f;
  check(approximation, 32, x);
}
