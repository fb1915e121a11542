// Products in f32 by parts in bf16 (tk-split-significands), of any size and on the emulator:
// numbers of every magnitude, what is not finite, sums that are exact, several products and
// epilogues.
#include "tests/unit/api/ForcedPass.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace tk;

namespace {

/// Runs the example with its products by parts, whatever their size.
std::vector<HostTensor> run_by_parts(const Example &example, int64_t shares = 1,
                                     const char *disabled = nullptr) {
  return run_forced(
      example, "tk-split-significands", [&] { return createSplitSignificands({true, shares}); },
      disabled);
}

constexpr const char *product = R"(
kernel product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) {
  c[i, j] = sum[k](a[i, k] * b[k, j])
})";
constexpr const char *along = R"(
kernel along(a: f32[M, K], b: f32[N, K]) -> (c: f32[M, N]) {
  c[i, j] = sum[k](a[i, k] * b[j, k])
})";

const Fill as_drawn = [](size_t, double normal) { return normal; };

Fill scaled(double scale) {
  return [scale](size_t, double normal) { return normal * scale; };
}

/// Magnitudes from 2^-spread to 2^spread, any neighbours of which differ.
Fill spread(int exponents) {
  return [exponents](size_t n, double normal) {
    return std::ldexp(normal, static_cast<int>(n * 37 % (2 * exponents + 1)) - exponents);
  };
}

} // namespace

TEST_CASE("parts of normal numbers, in either order of the factors") {
  run_by_parts({product, {{"M", 128}, {"N", 256}, {"K", 192}}, {as_drawn, as_drawn}});
  run_by_parts({along, {{"M", 128}, {"N", 128}, {"K", 192}}, {as_drawn, as_drawn}});
}

TEST_CASE("sums of one slice, whose loop is that over the pairs of parts") {
  run_by_parts({product, {{"M", 256}, {"N", 256}, {"K", 128}}, {as_drawn, as_drawn}});
  run_by_parts({along, {{"M", 136}, {"N", 264}, {"K", 115}}, {as_drawn, as_drawn}});
}

TEST_CASE("parts of sums over a range that rows bound, along axes of no whole slices") {
  for (const char *range : {"i..K", "0..i + 1", "i..min(K, i + 40)"})
    for (int64_t terms : {71, 200}) {
      const std::string source = "kernel bounded(a: f32[K, K], b: f32[K, N]) -> (c: f32[K, N]) {"
                                 "c[i, j] = sum[k in " +
                                 std::string(range) + "](a[i, k] * b[k, j]) }";
      run_by_parts({source.c_str(), {{"K", terms}, {"N", 136}}, {as_drawn, as_drawn}});
    }
}

TEST_CASE("parts of tensors that end within tiles and slices") {
  run_by_parts({product, {{"M", 77}, {"N", 136}, {"K", 72}}, {as_drawn, as_drawn}});
  run_by_parts({along, {{"M", 65}, {"N", 130}, {"K", 40}}, {as_drawn, as_drawn}});
}

TEST_CASE("parts that warps multiply") {
  run_by_parts({product, {{"M", 80}, {"N", 96}, {"K", 264}}, {as_drawn, as_drawn}}, 1,
               "tk-form-warpgroup-dots");
}

TEST_CASE("pairs of parts that blocks share out") {
  for (int64_t shares : {2, 3, 6})
    run_by_parts({R"(
kernel linear(a: f32[M, K], b: f32[N, K], bias: f32[N]) -> (c: f32[M, N]) {
  c[i, j] = relu(sum[k](a[i, k] * b[j, k]) + bias[j])
})",
                  {{"M", 72}, {"N", 128}, {"K", 160}},
                  {as_drawn, as_drawn, as_drawn}},
                 shares);
}

TEST_CASE("parts of rows that begin anywhere") {
  run_by_parts({product, {{"M", 77}, {"N", 135}, {"K", 71}}, {as_drawn, as_drawn}});
  run_by_parts({along, {{"M", 65}, {"N", 131}, {"K", 37}}, {as_drawn, as_drawn}});
  run_by_parts({R"(
kernel across(a: f32[K, M], b: f32[K, N]) -> (c: f32[M, N]) {
  c[i, j] = sum[k](a[k, i] * b[k, j])
})",
                {{"M", 70}, {"N", 131}, {"K", 201}},
                {as_drawn, as_drawn}});
}

TEST_CASE("parts of great, small and denormal numbers") {
  constexpr size_t size = 64;
  auto check = [&](const Fill &left, const Fill &right, double bound) {
    std::vector<HostTensor> tensors =
        run_by_parts({along, {{"M", size}, {"N", size}, {"K", size}}, {left, right}});
    auto at = [&](size_t t, size_t row, size_t column) -> double {
      return reinterpret_cast<const float *>(tensors[t].bytes.data())[row * size + column];
    };
    // The tolerance of the comparison with the reference is of the scale 1e-3 at least.
    double error = 0, norm = 0;
    for (size_t i = 0; i < size; ++i)
      for (size_t j = 0; j < size; ++j) {
        double sum = 0;
        for (size_t k = 0; k < size; ++k)
          sum += at(0, i, k) * at(1, j, k);
        error += std::pow(at(2, i, j) - sum, 2);
        norm += sum * sum;
      }
    const bool is_within = error <= bound * bound * norm;
    CHECK(is_within);
  };
  check(scaled(1e37), as_drawn, 3e-7);
  check(scaled(1e37), scaled(1e-37), 3e-7);
  check(scaled(1e-30), as_drawn, 3e-7);
  check(scaled(1e-41), scaled(1e20), 3e-7);
  check(scaled(1e20), scaled(1e-41), 3e-7);
  check(scaled(0), as_drawn, 0);
  check(spread(40), spread(40), 3e-7);
  check(spread(100), scaled(1e-3), 3e-7);
}

TEST_CASE("no row's parts depend on another row") {
  constexpr size_t size = 64;
  // One element of 1e38 beside rows of 1e-20, and the same without it.
  auto rows = [](bool isGreat) {
    return Fill([isGreat](size_t n, double normal) {
      return isGreat && n == 5 ? 1e38 : normal * (n / size % 2 ? 1e-20 : 1e-3);
    });
  };
  for (const char *source : {along, product}) {
    const Example example{source, {{"M", size}, {"N", size}, {"K", size}}, {rows(true), as_drawn}};
    Example other = example;
    other.fills[0] = rows(false);
    const std::vector<HostTensor> tensors = run_by_parts(example), without = run_by_parts(other);
    auto at = [&](const std::vector<HostTensor> &from, size_t t, size_t row, size_t column) {
      return reinterpret_cast<const float *>(from[t].bytes.data())[row * size + column];
    };
    size_t changed = 0, inexact = 0;
    for (size_t i = 0; i < size; ++i)
      for (size_t j = 0; j < size; ++j) {
        double sum = 0, magnitudes = 0;
        for (size_t k = 0; k < size; ++k) {
          const bool isAlong = source == along;
          const double term = double(at(tensors, 0, i, k)) *
                              double(isAlong ? at(tensors, 1, j, k) : at(tensors, 1, k, j));
          sum += term;
          magnitudes += std::fabs(term);
        }
        inexact += std::fabs(at(tensors, 2, i, j) - sum) > 0x1p-22 * magnitudes;
        changed += i > 0 && at(tensors, 2, i, j) != at(without, 2, i, j);
      }
    CHECK(inexact == 0);
    CHECK(changed == 0);
  }
}

TEST_CASE("columns of a factor have scales of their own") {
  constexpr size_t size = 64;
  // Columns of 1e38, of 1e-40, which are denormal, and of 1.
  Fill columns = [](size_t n, double normal) {
    return std::clamp(normal, -2.0, 2.0) * (n % 3 == 0 ? 1e38 : n % 3 == 1 ? 1e-40 : 1);
  };
  std::vector<HostTensor> tensors =
      run_by_parts({product, {{"M", size}, {"N", size}, {"K", size}}, {scaled(1e-3), columns}});
  auto at = [&](size_t t, size_t row, size_t column) -> double {
    return reinterpret_cast<const float *>(tensors[t].bytes.data())[row * size + column];
  };
  size_t inexact = 0;
  for (size_t i = 0; i < size; ++i)
    for (size_t j = 0; j < size; ++j) {
      double sum = 0, magnitudes = 0;
      for (size_t k = 0; k < size; ++k) {
        sum += at(0, i, k) * at(1, k, j);
        magnitudes += std::fabs(at(0, i, k) * at(1, k, j));
      }
      inexact += std::fabs(at(2, i, j) - sum) > 0x1p-22 * magnitudes + 0x1p-149;
    }
  CHECK(inexact == 0);
}

TEST_CASE("what is not finite meets what it would in IEEE's arithmetic") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  Fill special = [&](size_t n, double normal) {
    return n % 1031 == 5 ? inf : n % 2063 == 9 ? -inf : n % 4099 == 11 ? nan : normal;
  };
  Fill zeros = [](size_t n, double normal) { return n % 701 == 3 ? 0.0 : normal; };
  run_by_parts({along, {{"M", 64}, {"N", 128}, {"K", 128}}, {special, zeros}});
  run_by_parts({product, {{"M", 64}, {"N", 128}, {"K", 128}}, {zeros, special}});
}

TEST_CASE("parts of f32 beside numbers of 16 bits, which have fewer") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  Fill special = [&](size_t n, double normal) {
    return n % 1031 == 5 ? inf : n % 2063 == 9 ? -inf : n % 4099 == 11 ? nan : normal;
  };
  Fill zeros = [](size_t n, double normal) { return n % 701 == 3 ? 0.0 : normal; };
  for (const char *source : {R"(
kernel brain(a: bf16[M, K], b: f32[N, K]) -> (c: f32[M, N]) {
  c[i, j] = sum[k](a[i, k] * b[j, k])
})",
                             R"(
kernel half(a: f32[M, K], b: f16[K, N]) -> (c: f32[M, N]) {
  c[i, j] = sum[k](a[i, k] * b[k, j])
})",
                             R"(
kernel sixteen(a: f16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) {
  c[i, j] = sum[k](a[i, k] * b[j, k])
})"}) {
    run_by_parts({source, {{"M", 65}, {"N", 130}, {"K", 72}}, {as_drawn, as_drawn}});
    run_by_parts({source, {{"M", 64}, {"N", 131}, {"K", 128}}, {special, zeros}});
    run_by_parts({source, {{"M", 64}, {"N", 128}, {"K", 135}}, {zeros, special}});
  }
  run_by_parts({R"(
kernel brain(a: bf16[M, K], b: f32[N, K]) -> (c: f32[M, N]) {
  c[i, j] = sum[k](a[i, k] * b[j, k])
})",
                {{"M", 72}, {"N", 128}, {"K", 160}},
                {scaled(1e-30), scaled(1e10)}},
               3);
}

TEST_CASE("sums that f32 holds are exact") {
  Fill integers = [](size_t n, double) { return double(n * 7919 % 8191) - 4095; };
  Fill few = [](size_t n, double) { return double(n * 31 % 15) - 7; };
  Example example{along, {{"M", 64}, {"N", 64}, {"K", 128}}, {integers, few}};
  std::vector<HostTensor> tensors = run_by_parts(example);
  const auto *c = reinterpret_cast<const float *>(tensors[2].bytes.data());
  size_t wrong = 0;
  for (size_t i = 0; i < 64; ++i)
    for (size_t j = 0; j < 64; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 128; ++k)
        sum += integers(i * 128 + k, 0) * few(j * 128 + k, 0);
      wrong += c[i * 64 + j] != static_cast<float>(sum);
    }
  CHECK(wrong == 0);
}

TEST_CASE("parts of a tensor that is multiplied by itself, and of several products") {
  run_by_parts({R"(
kernel gram(a: f32[M, K]) -> (c: f32[M, M]) {
  c[i, j] = sum[k](a[i, k] * a[j, k])
})",
                {{"M", 128}, {"K", 64}},
                {as_drawn}});
  run_by_parts({R"(
kernel gate(x: f32[M, K], g: f32[N, K], u: f32[N, K], r: f32[M, N]) -> (y: f32[M, N]) {
  y[i, j] = silu(sum[k](x[i, k] * g[j, k])) * sum[k](x[i, k] * u[j, k]) + r[i, j]
})",
                {{"M", 64}, {"N", 128}, {"K", 64}},
                {as_drawn, as_drawn, as_drawn, as_drawn}});
  run_by_parts({R"(
kernel batches(a: f32[B, M, K], b: f32[B, K, N]) -> (c: f32[B, M, N]) {
  c[g, i, j] = sum[k](a[g, i, k] * b[g, k, j])
})",
                {{"B", 3}, {"M", 64}, {"N", 64}, {"K", 64}},
                {as_drawn, as_drawn}});
}
