// Reductions along registers, and scans.
#include "KernelHarness.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using tk::DType;
using tk::test::counting;
using tk::test::KernelHarness;

TEST_CASE("registers are reduced along any bits of their numbers", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const int *__restrict__ x, int *__restrict__ y) {
  const int i = tk::thread_index();
  int a[16], b[16], c[6], d[1];
  TK_UNROLL for (int r = 0; r < 16; ++r) a[r] = b[r] = tk::get(&x[i * 16 + r]);
  TK_UNROLL for (int r = 0; r < 6; ++r) c[r] = a[r];
  d[0] = a[0];
  tk::reduce_registers<tk::Sum, 5>(a);
  tk::reduce_registers<tk::Maximum, 10>(b);
  tk::reduce_registers<tk::Sum, 7>(c);
  tk::reduce_registers<tk::Sum, 1>(d);
  for (int r = 0; r < 4; ++r) {
    tk::put(&y[i * 10 + r], a[(r & 1) * 2 + (r & 2) * 4]);
    tk::put(&y[i * 10 + 4 + r], b[(r & 1) + (r & 2) * 2]);
  }
  tk::put(&y[i * 10 + 8], c[0]);
  tk::put(&y[i * 10 + 9], d[0]);
})");
  std::vector<int32_t> x(512), y(320);
  for (int n = 0; n < 512; ++n)
    x[static_cast<size_t>(n)] = n * 7919 % 101;
  k.in(x, DType::i32);
  k.out(y, DType::i32);
  REQUIRE(k.run() == "");
  auto joined = [&](int i, int first, int mask, bool isSum) {
    int32_t result = 0;
    for (int r = 0; r < 16; ++r)
      if ((r & ~mask) == first) {
        int32_t value = x[static_cast<size_t>(i * 16 + r)];
        result = isSum ? result + value : std::max(result, value);
      }
    return result;
  };
  for (int i = 0; i < 32; ++i) {
    const int32_t *got = &y[static_cast<size_t>(i) * 10], *from = &x[static_cast<size_t>(i) * 16];
    for (int r = 0; r < 4; ++r) {
      CHECK(got[r] == joined(i, (r & 1) * 2 + (r & 2) * 4, 5, true));
      CHECK(got[4 + r] == joined(i, (r & 1) + (r & 2) * 2, 10, false));
    }
    CHECK(got[8] == std::accumulate(from, from + 6, 0));
    CHECK(got[9] == from[0]);
  }
}

TEST_CASE("first extrema over registers: ties, NaN, infinities", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const float *__restrict__ x, int *__restrict__ most, int *__restrict__ least) {
  const int i = tk::thread_index();
  float value[8], a[8], b[8];
  int largest[8], smallest[8];
  TK_UNROLL for (int r = 0; r < 8; ++r) {
    value[r] = a[r] = b[r] = tk::get(&x[i * 8 + r]);
    largest[r] = smallest[r] = 100 - r;
  }
  tk::reduce_registers<tk::Maximum, 6>(a);
  tk::find_first<6>(largest, value, a, a);
  tk::reduce_registers<tk::Minimum, 7>(b);
  tk::find_first<7>(smallest, value, b, b);
  tk::put(&most[2 * i], largest[0]);
  tk::put(&most[2 * i + 1], largest[1]);
  tk::put(&least[i], smallest[0]);
})");
  const float nan = std::nanf(""), inf = INFINITY;
  std::vector<float> x(256);
  std::vector<int32_t> most(64), least(32);
  auto row = [&](size_t i, std::array<float, 8> values) {
    std::copy_n(values.data(), 8, &x[i * 8]);
  };
  row(0, {1, 5, 3, 5, 3, 2, 0, 1});
  row(1, {1, nan, 3, 2, nan, 2, 7, nan});
  row(2, {-inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf});
  row(3, {inf, 0.0f, -0.0f, -0.0f, inf, 0.0f, 1, -inf});
  k.threads = 32;
  k.in(x, DType::f32);
  k.out(most, DType::i32);
  k.out(least, DType::i32);
  REQUIRE(k.run() == "");
  // The least index of the extremum; indices fall with the register's number here. Registers of
  // even and odd number are groups of their own for the greatest.
  CHECK(std::vector(most.begin(), most.begin() + 8) ==
        std::vector<int32_t>{96, 97, 96, 93, 94, 93, 96, 95});
  CHECK(std::vector(least.begin(), least.begin() + 4) == std::vector<int32_t>{94, 93, 93, 93});
}

TEST_CASE("an inclusive scan over registers, lanes and warps", "[emu]") {
  // The last number that is not 0: which of two comes first matters.
  KernelHarness k(R"(struct Last {
  TK_DEVICE static float apply(float a, float b) { return b != 0 ? b : a; }
};
template <class Op> TK_DEVICE void scan(float (&p)[2], float (&t)[2]) {
  float *shared = reinterpret_cast<float *>(tk::shared_memory());
  tk::scan_registers<Op, 1>(p, t);
  tk::scan_lanes<Op, 1, 1>(p, t);
  tk::scan_lanes<Op, 2, 1>(p, t);
  tk::scan_lanes<Op, 4, 1>(p, t);
  tk::scan_lanes<Op, 8, 1>(p, t);
  tk::scan_lanes<Op, 16, 1>(p, t);
  tk::scan_warps<Op, 7, 8, 1>(p, t, shared);
}
extern "C" __global__ void __launch_bounds__(256)
k(const float *__restrict__ x, const float *__restrict__ v, float *__restrict__ y,
  float *__restrict__ w, float *__restrict__ all) {
  const int i = tk::thread_index();
  float p[2], t[2];
  tk::load<2>(p, &x[2 * i]);
  tk::load<2>(t, &x[2 * i]);
  scan<tk::Sum>(p, t);
  tk::store<2>(&y[2 * i], p);
  tk::put(&all[i], t[1]);
  tk::load<2>(p, &v[2 * i]);
  tk::load<2>(t, &v[2 * i]);
  scan<Last>(p, t);
  tk::store<2>(&w[2 * i], p);
})");
  std::vector<float> x = counting(512), v(512), y(512), w(512), all(256);
  for (size_t i : {3, 4, 90, 255, 256, 301, 510})
    v[i] = static_cast<float>(i);
  k.threads = 256;
  k.sharedBytes = 256 * 2 * 4;
  k.in(x, DType::f32);
  k.in(v, DType::f32);
  k.out(y, DType::f32);
  k.out(w, DType::f32);
  k.out(all, DType::f32);
  REQUIRE(k.run() == "");
  float last = 0;
  for (size_t i = 0; i < 512; ++i) {
    CHECK(y[i] == static_cast<float>((i + 1) * (i + 2) / 2));
    CHECK(all[i / 2] == y[511]);
    last = v[i] != 0 ? v[i] : last;
    CHECK(w[i] == last);
  }
}

TEST_CASE("scans of what one thread has, forward and backward", "[emu]") {
  // Bits 1 and 2 of the register's number are the axis: registers 0, 2, 4, 6 and 1, 3, 5, 7.
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const float *__restrict__ x, float *__restrict__ y, float *__restrict__ z,
  float *__restrict__ all) {
  const int i = tk::thread_index();
  float p[8], t[8], q[8], u[8];
  for (int r = 0; r < 8; ++r)
    p[r] = q[r] = tk::get(&x[8 * i + r]);
  tk::scan_in_thread<tk::Sum, 6>(p, t);
  tk::scan_in_thread<tk::Sum, 6, true>(q, u);
  for (int r = 0; r < 8; ++r) {
    tk::put(&y[8 * i + r], p[r]);
    tk::put(&z[8 * i + r], q[r]);
  }
  for (int r = 0; r < 2; ++r) {
    tk::put(&all[4 * i + r], t[r]);
    tk::put(&all[4 * i + 2 + r], u[r]);
  }
})");
  std::vector<float> x = counting(256), y(256), z(256), all(128);
  k.threads = 32;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  k.out(z, DType::f32);
  k.out(all, DType::f32);
  REQUIRE(k.run() == "");
  for (size_t thread = 0; thread < 32; ++thread)
    for (size_t r = 0; r < 8; ++r) {
      const size_t first = 8 * thread + r % 2;
      float before = 0, behind = 0, whole = 0;
      for (size_t n = 0; n < 4; ++n) {
        const float value = x[first + 2 * n];
        before += n <= r / 2 ? value : 0;
        behind += n >= r / 2 ? value : 0;
        whole += value;
      }
      CHECK(y[8 * thread + r] == before);
      CHECK(z[8 * thread + r] == behind);
      CHECK(all[4 * thread + r % 2] == whole);
      CHECK(all[4 * thread + 2 + r % 2] == whole);
    }
}

TEST_CASE("a scan over some of the warps", "[emu]") {
  // Warps that differ in bits 0 and 2 are one group; each lane is scanned by itself.
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(256)
k(const float *__restrict__ x, float *__restrict__ y) {
  const int i = tk::thread_index();
  float p[1] = {tk::get(&x[i])}, t[1] = {p[0]};
  tk::scan_warps<tk::Sum, 5, 8, 0>(p, t, reinterpret_cast<float *>(tk::shared_memory()));
  tk::put(&y[i], p[0]);
})");
  std::vector<float> x = counting(256), y(256);
  k.threads = 256;
  k.sharedBytes = 256 * 4;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  REQUIRE(k.run() == "");
  for (size_t i = 0; i < 256; ++i) {
    float want = 0;
    for (size_t warp = 0; warp <= i / 32; ++warp)
      if ((warp & 2) == (i / 32 & 2))
        want += x[warp * 32 + i % 32];
    CHECK(y[i] == want);
  }
}
