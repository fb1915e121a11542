// Shuffles, barriers and reductions over lanes and warps.
#include "KernelHarness.h"

#include <algorithm>
#include <cmath>
#include <limits>

using tk::DType;
using tk::test::counting;
using tk::test::KernelHarness;

TEST_CASE("a shuffle exchanges the values of lanes that differ in the mask's bits", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(64)
k(const float *__restrict__ x, float *__restrict__ y, long long *__restrict__ z) {
  const int i = tk::thread_index();
  tk::put(&y[i], tk::shuffle_xor(tk::get(&x[i]), 5));
  tk::put(&z[i], tk::shuffle_xor((long long)i << 40, 16));
})");
  std::vector<float> x = counting(64), y(64);
  std::vector<int64_t> z(64);
  k.threads = 64;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  k.out(z, DType::i64);
  REQUIRE(k.run() == "");
  for (size_t i = 0; i < 64; ++i) {
    CHECK(y[i] == x[i ^ 5]);
    CHECK(z[i] == static_cast<int64_t>(i ^ 16) << 40);
  }
}

TEST_CASE("reductions over registers, lanes and warps", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(128)
k(const float *__restrict__ x, float *__restrict__ y, int *__restrict__ z) {
  const int i = tk::thread_index();
  float a[2];
  tk::load<2>(a, &x[2 * i]);
  tk::reduce_registers<tk::Sum, 1>(a);
  float s[1] = {a[0]};
  tk::reduce_lanes<tk::Sum, 31>(s);
  tk::reduce_warps<tk::Sum, 3, 4>(s, reinterpret_cast<float *>(tk::shared_memory()));
  tk::put(&y[i], s[0]);
  const float own[1] = {tk::get(&x[(i * 37) % 128])};
  float best[1] = {own[0]};
  tk::reduce_lanes<tk::Maximum, 31>(best);
  tk::reduce_warps<tk::Maximum, 3, 4>(best, reinterpret_cast<float *>(tk::shared_memory()));
  int place[1] = {i};
  tk::find_first<0>(place, own, own, best);
  tk::reduce_lanes<tk::Minimum, 31>(place);
  tk::reduce_warps<tk::Minimum, 3, 4>(place, reinterpret_cast<int *>(tk::shared_memory()));
  tk::put(&z[i], place[0]);
})");
  std::vector<float> x = counting(256), y(128);
  std::vector<int32_t> z(128);
  k.threads = 128;
  k.sharedBytes = 128 * 8;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  k.out(z, DType::i32);
  REQUIRE(k.run() == "");
  int where = 0;
  while (where * 37 % 128 != 127)
    ++where;
  for (size_t i = 0; i < 128; ++i) {
    CHECK(y[i] == 256 * 257 / 2);
    CHECK(z[i] == where);
  }
}

TEST_CASE("lanes and warps at once have the bits of one after the other", "[emu]") {
  const unsigned count = GENERATE(1, 2, 4, 16);
  const std::string lanes = std::to_string(GENERATE(1, 8, 24, 22, 31));
  const unsigned warps = GENERATE(2, 8), mask = GENERATE(1, 5) & (warps - 1);
  KernelHarness k("constexpr int columns = " + std::to_string(count) + ", lanes = " + lanes +
                  ", mask = " + std::to_string(mask) + ", warps = " + std::to_string(warps) + R"(;
extern "C" __global__ void __launch_bounds__(32 * warps)
k(const float *__restrict__ x, float *__restrict__ y, float *__restrict__ z) {
  float *const scratch = reinterpret_cast<float *>(tk::shared_memory());
  const int t = tk::thread_index();
  float a[columns], b[columns];
  for (int r = 0; r < columns; ++r)
    a[r] = b[r] = tk::get(&x[columns * t + r]);
  tk::reduce_lanes<tk::Sum, lanes>(a);
  tk::reduce_warps<tk::Sum, mask, warps>(a, scratch);
  tk::reduce_threads<tk::Sum, lanes, mask, warps>(b, scratch);
  for (int r = 0; r < columns; ++r) {
    tk::put(&y[columns * t + r], a[r]);
    tk::put(&z[columns * t + r], b[r]);
  }
})");
  const size_t n = size_t(32) * warps * count;
  std::vector<float> x(n), y(n), z(n);
  for (size_t i = 0; i < n; ++i)
    x[i] = 1.0f / float(i * 37 % 1009 + 1);
  k.threads = 32 * warps;
  k.sharedBytes = 4 * unsigned(n);
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  k.out(z, DType::f32);
  REQUIRE(k.run() == "");
  CHECK(y == z);
}

TEST_CASE("joining warps whose lanes agree, all of them and some", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(256)
k(float *__restrict__ all, float *__restrict__ pairs) {
  float *const shared = reinterpret_cast<float *>(tk::shared_memory());
  const int w = tk::warp_index();
  float a[2] = {(float)w, (float)(w * w)};
  tk::reduce_uniform_warps<tk::Sum, 7, 8>(a, shared);
  tk::put(&all[tk::thread_index()], a[0] + 1000 * a[1]);
  float b[1] = {(float)w};
  tk::reduce_uniform_warps<tk::Maximum, 5, 8>(b, shared + 16);
  tk::put(&pairs[tk::thread_index()], b[0]);
})");
  std::vector<float> all(256), pairs(256);
  k.threads = 256;
  k.sharedBytes = 128;
  k.out(all, DType::f32);
  k.out(pairs, DType::f32);
  REQUIRE(k.run() == "");
  for (size_t i = 0; i < 256; ++i) {
    CHECK(all[i] == 28 + 1000 * 140);
    CHECK(pairs[i] == ((i / 32 & 2) ? 7 : 5)); // warps that differ in bits 0 and 2
  }
}

TEST_CASE("maxima of floats as integers", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const float *__restrict__ x, float *__restrict__ y, float *__restrict__ z) {
  const int t = tk::thread_index();
  float a[16], b[16];
  for (int r = 0; r < 16; ++r)
    a[r] = b[r] = tk::get(&x[16 * t + r]);
  tk::reduce_registers<tk::Maximum, 13>(a);
  tk::maximum_as_integers<13>(b);
  for (int r = 0; r < 2; ++r) {
    tk::put(&y[2 * t + r], a[2 * r]);
    tk::put(&z[2 * t + r], b[2 * r]);
  }
})");
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x(512), y(64), z(64);
  for (size_t i = 0; i < 512; ++i)
    x[i] = float(i * 37 % 101) - (i < 256 ? 50.0f : 101.0f); // those of the last 16 threads below 0
  x[5] = -std::numeric_limits<float>::quiet_NaN();
  x[16 + 5] = infinity, x[32 + 5] = -infinity, x[48 + 5] = -0.0f;
  for (size_t r = 0; r < 16; ++r)
    x[64 + r] = r % 3 ? -0.0f : 0.0f, x[80 + r] = r == 9 ? 1e-45f : -1e-45f;
  k.threads = 32;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  k.out(z, DType::f32);
  REQUIRE(k.run() == "");
  CHECK(std::isnan(z[0]));
  for (size_t i = 1; i < 32; ++i) {
    CAPTURE(i);
    CHECK((y[i] == z[i] || y[i] < 0));
  }
  for (size_t i = 32; i < 64; ++i)
    CHECK((z[i] < 0 && z[i] <= y[i]));
}

TEST_CASE("what all threads of a named barrier say", "[emu]") {
  KernelHarness k(R"(#include "hopper.cuh"
extern "C" __global__ void __launch_bounds__(256)
k(int *__restrict__ y) {
  const int t = tk::thread_index();
  int word = 0;
  for (int i = 0; i < 4; ++i)
    word |= (int)tk::named_barrier_all(1 + t / 128, 128,
                                       i == 0 || (i == 1 && t != 200) || (i == 3 && t < 128))
            << i;
  tk::put(&y[t], word);
})");
  std::vector<int> y(256);
  k.threads = 256;
  k.out(y, DType::i32);
  REQUIRE(k.run() == "");
  for (size_t t = 0; t < 256; ++t)
    CHECK(y[t] == (t < 128 ? 11 : 1));
}

TEST_CASE("pairs of reductions in one exchange", "[emu]") {
  const int warps = GENERATE(2, 4, 16, 32);
  KernelHarness k("constexpr int warps = " + std::to_string(warps) + R"(;
extern "C" __global__ void __launch_bounds__(32 * warps)
k(const float *__restrict__ x, float *__restrict__ y) {
  float *const shared = reinterpret_cast<float *>(tk::shared_memory());
  const int t = tk::thread_index();
  int round = 0, uses = 0;
  float own[5], weights[5];
  for (int turn = 0; turn < 3; ++turn) {
    for (int r = 0; r < 5; ++r)
      own[r] = turn + tk::get(&x[5 * t + r]);
    tk::Moments moments = tk::moments_of_warp(own);
    tk::join_warps<warps>(moments, 5 * 32, shared, round);
    tk::Weighed weighed = tk::weigh_warp(weights, own);
    const float most = weighed.first;
    tk::join_warps<warps>(weighed, 5 * 32, shared + 4 * warps, uses);
    float *const to = &y[(turn * 32 * warps + t) * 5];
    tk::put(&to[0], moments.first);
    tk::put(&to[1], moments.second);
    tk::put(&to[2], weighed.first);
    tk::put(&to[3], weighed.second);
    tk::put(&to[4], weights[0] * tk::exp_scale_approx(most, weighed.first));
  }
})");
  const size_t n = size_t(160) * warps;
  std::vector<float> x(n), y(3 * n);
  const bool hasInfinity = GENERATE(false, true);
  // Far from 0, each warp about a mean of its own; one has nothing but -inf for its weights.
  for (size_t i = 0; i < n; ++i)
    x[i] = 10000 + float(i / 160) + float(i * 37 % 101) / 64;
  if (hasInfinity)
    std::fill_n(x.begin(), 160, -std::numeric_limits<float>::infinity());
  k.threads = 32 * warps;
  k.sharedBytes = 32 * warps;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  REQUIRE(k.run() == "");
  double mean = 0, squares = 0, most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (float value : x)
    mean += value / double(n), most = std::max<double>(most, value);
  for (float value : x) {
    squares += (value - mean) * (value - mean);
    sum += std::exp(value - most);
  }
  for (size_t i = 0; i < 3 * n; i += 5) {
    const double turn = double(i / n), own = x[i % n];
    if (!hasInfinity) {
      CHECK(std::abs(y[i] - turn - mean) < 2e-3);
      // Means differ by 1/4 and are rounded at 10000.
      CHECK(std::abs(y[i + 1] - squares) < 1e-3 * squares);
    }
    CHECK(y[i + 2] == float(turn + most));
    // The product under the exponential is rounded at 14427.
    CHECK(std::abs(y[i + 3] - sum) < 2e-3 * sum);
    CHECK(std::abs(y[i + 4] - std::exp(own - most)) <= 2e-3 * std::exp(own - most));
  }
}

TEST_CASE("pairs of parts of more elements than registers hold", "[emu]") {
  KernelHarness k(R"(
extern "C" __global__ void __launch_bounds__(64)
k(const float *__restrict__ x, float *__restrict__ y) {
  float *const shared = reinterpret_cast<float *>(tk::shared_memory());
  const int t = tk::thread_index();
  int round = 0, uses = 0;
  float own[128];
  for (int r = 0; r < 128; ++r)
    own[r] = tk::get(&x[128 * t + r]);
  tk::Moments moments = tk::moments_of_warp(own);
  tk::join_warps<2>(moments, 128 * 32, shared, round);
  tk::Weighed weighed = tk::weigh_warp(own);
  tk::join_warps<2>(weighed, 128 * 32, shared + 8, uses);
  tk::put(&y[4 * t], moments.first);
  tk::put(&y[4 * t + 1], moments.second);
  tk::put(&y[4 * t + 2], weighed.first);
  tk::put(&y[4 * t + 3], weighed.second);
})");
  std::vector<float> x(64 * 128), y(64 * 4);
  // About 1000, quarters of a thread's elements each by another level; for weights one quarter, one
  // thread and one warp have nothing but -inf.
  const bool hasInfinity = GENERATE(false, true);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t thread = i / 128, quarter = i / 32 % 4;
    x[i] = 1000 + float(quarter) + float(i * 37 % 101) / 64;
    if (hasInfinity && (thread >= 32 || thread == 5 || quarter == 0))
      x[i] = -std::numeric_limits<float>::infinity();
  }
  k.threads = 64;
  k.sharedBytes = 64;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  REQUIRE(k.run() == "");
  double mean = 0, squares = 0, most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (float value : x)
    mean += value / double(x.size()), most = std::max<double>(most, value);
  for (float value : x) {
    squares += (value - mean) * (value - mean);
    sum += std::exp(value - most);
  }
  for (size_t i = 0; i < y.size(); i += 4) {
    if (!hasInfinity) {
      CHECK(std::abs(y[i] - mean) < 2e-4);
      CHECK(std::abs(y[i + 1] - squares) < 1e-5 * squares);
    }
    CHECK(y[i + 2] == float(most));
    CHECK(std::abs(y[i + 3] - sum) < 2e-4 * sum);
  }
}

TEST_CASE("joining many warps, whose lanes share the work", "[emu]") {
  const int warps = GENERATE(16, 32);
  KernelHarness k("constexpr int warps = " + std::to_string(warps) + R"(;
extern "C" __global__ void __launch_bounds__(32 * warps)
k(const float *__restrict__ x, float *__restrict__ all, int *__restrict__ places) {
  float *const shared = reinterpret_cast<float *>(tk::shared_memory());
  const int w = tk::warp_index();
  float a[2] = {(float)w, (float)(w * w)};
  tk::reduce_uniform_warps<tk::Sum, warps - 1, warps>(a, shared);
  tk::put(&all[tk::thread_index()], a[0] + 1000 * a[1]);
  const float own[1] = {tk::get(&x[w])};
  float best[1] = {own[0]};
  tk::reduce_uniform_warps<tk::Maximum, warps - 1, warps>(best, shared + 2 * warps);
  int place[1] = {w};
  tk::find_first<0>(place, own, own, best);
  tk::reduce_uniform_warps<tk::Minimum, warps - 1, warps>(
      place, reinterpret_cast<int *>(shared + 3 * warps));
  tk::put(&places[tk::thread_index()], place[0]);
})");
  std::vector<float> x(warps, 0.5f), all(32 * warps);
  std::vector<int32_t> places(32 * warps);
  x[11] = x[warps - 3] = 7; // the first of equals
  k.threads = 32 * warps;
  k.sharedBytes = 16 * warps;
  k.in(x, DType::f32);
  k.out(all, DType::f32);
  k.out(places, DType::i32);
  REQUIRE(k.run() == "");
  const int last = warps - 1, sum = last * warps / 2, squares = last * warps * (2 * last + 1) / 6;
  for (int i = 0; i < 32 * warps; ++i) {
    CHECK(all[i] == float(sum + 1000 * squares));
    CHECK(places[i] == 11);
  }
}

TEST_CASE("runs that nobody times are late, early, and by chance", "[emu]") {
  using tk::emu::Timing;
  CHECK(Timing::ofRun(0).kind == Timing::Kind::late);
  CHECK(Timing::ofRun(1).kind == Timing::Kind::early);
  CHECK(Timing::ofRun(2).kind == Timing::Kind::random);
  CHECK(Timing::ofRun(2).seed != Timing::ofRun(3).seed);
}

TEST_CASE("blocks and threads in any order give the same result", "[emu]") {
  struct Order {
    const char *what, *body;
    unsigned grid;
    int (*expected)(int at);
  };
  const Order order = GENERATE(
      Order{"blocks are told apart", "  const int v = tk::block_x() * 1000 + i;", 3,
            [](int at) { return at / 96 * 1000 + at % 96; }},
      Order{"many barriers", R"(  int *shared = reinterpret_cast<int *>(tk::shared_memory());
  int v = i;
  for (int step = 0; step < 50; ++step) {
    tk::put(&shared[i], v);
    tk::barrier();
    v = tk::get(&shared[(i + 1) % 96]);
    tk::barrier();
  })",
            1, [](int at) { return (at + 50) % 96; }});
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(96)
k(int *__restrict__ y) {
  const int i = tk::warp_index() * 32 + tk::lane_index();
)" + std::string(order.body) +
                  "\n  tk::put(&y[tk::block_x() * 96 + tk::thread_index()], v);\n}");
  std::vector<int32_t> y(96 * order.grid);
  k.grid = order.grid;
  k.threads = 96;
  k.sharedBytes = 96 * 4;
  k.out(y, DType::i32);
  for (auto timing : {"late", "early", "random:1", "random:2", "random:3", "random:7"}) {
    INFO(order.what << ", " << timing);
    k.options.timing = tk::emu::Timing::parse(timing);
    REQUIRE(k.run() == "");
    for (size_t at = 0; at < y.size(); ++at)
      CHECK(y[at] == order.expected(static_cast<int>(at)));
  }
}
