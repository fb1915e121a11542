// Bulk copies: what arrives where, out of bounds too, in each swizzle; stores, reductions,
// multicast.
#include "tests/target/hopper/OnBoth.h"

#include <numeric>

using tk::DType;
using tk::test::KernelHarness;

namespace {

const char *const head = "#include \"hopper.cuh\"\n";

std::vector<int> counting(size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

/// Copies `words` words of shared memory from byte 1024 on to y.
std::string dumpText(int words) {
  return "  for (int i = tk::thread_index(); i < " + std::to_string(words) +
         "; i += 128)\n    tk::put(&y[i], tk::get(reinterpret_cast<int *>(shared + 1024) + i));\n";
}
const char *const prologue = R"(
  tk::u8 *const shared = tk::shared_memory();
  auto *const ready = reinterpret_cast<tk::PhaseBarrier *>(shared);
  if (tk::thread_index() == 0) {
    tk::phase_init(ready, 1);
    tk::phase_init_fence();
  }
  tk::barrier();
)";

} // namespace

TEST_CASE("a box of three axes arrives, with zeros where it leaves the tensor", "[hopper]") {
  // x[3, 5, 8]; boxes of [2, 4, 8] at (-4, 3, 2), (0, -1, 0) and (0, 0, -2).
  std::vector<int> x = counting(3 * 5 * 8), y(3 * 64);
  const int at[3][3] = {{-4, 3, 2}, {0, -1, 0}, {0, 0, -2}};
  std::string body = std::string(head) + R"(extern "C" __global__ void __launch_bounds__(128)
k(const __grid_constant__ tk::TensorMap x, int *y) {)" +
                     prologue +
                     "  if (tk::thread_index() == 0) {\n    tk::phase_expect(ready, 768);\n";
  for (int box = 0; box < 3; ++box)
    body += "    tk::bulk_load<3>(shared + " + std::to_string(1024 + box * 256) + ", &x, {" +
            std::to_string(at[box][0]) + ", " + std::to_string(at[box][1]) + ", " +
            std::to_string(at[box][2]) + "}, ready);\n";
  body += "  }\n  tk::phase_wait(ready, 0);\n" + dumpText(192) + "}";
  KernelHarness k(body);
  k.threads = 128;
  k.sharedBytes = 2048;
  k.inView({x.data(), DType::i32, tk::Extents{3, 5, 8}});
  k.mapped({8, 4, 2}, 0);
  k.out(y, DType::i32);
  tk::test::runOnBoth(k, [&] {
    size_t wrong = 0;
    for (int box = 0; box < 3; ++box)
      for (int i = 0; i < 64; ++i) {
        const int column = at[box][0] + i % 8, row = at[box][1] + i / 8 % 4,
                  plane = at[box][2] + i / 32;
        const bool inside =
            column >= 0 && column < 8 && row >= 0 && row < 5 && plane >= 0 && plane < 3;
        wrong += y[static_cast<size_t>(box * 64 + i)] !=
                 (inside ? x[static_cast<size_t>((plane * 5 + row) * 8 + column)] : 0);
      }
    CHECK(wrong == 0);
  });
}

TEST_CASE("rows are places of windows that the copy counts through", "[hopper]") {
  // x[3, 7, 6, 8]; windows of 3 x 3 that begin 1 before the tensor, 2 rows and 1 column apart: 4 x
  // 6 places an image. 32 rows from place 40 on leave the tensor behind its last image.
  struct Copy {
    int first, byRow, byColumn;
  };
  const Copy copies[] = {{0, 0, 0}, {5, 2, 1}, {17, 1, 2}, {40, 1, 1}, {66, 0, 2}};
  std::vector<int> x = counting(3 * 7 * 6 * 8), y(5 * 256);
  std::string body = std::string(head) + R"(extern "C" __global__ void __launch_bounds__(128)
k(const __grid_constant__ tk::TensorMap x, int *y) {)" +
                     prologue +
                     "  if (tk::thread_index() == 0) {\n    tk::phase_expect(ready, 5120);\n";
  for (int n = 0; n < 5; ++n) {
    const Copy &copy = copies[n];
    const int image = copy.first / 24, row = copy.first / 6 % 4, column = copy.first % 6;
    body += "    tk::bulk_load_windows<4>(shared + " + std::to_string(1024 + n * 1024) +
            ", &x, {0, " + std::to_string(column - 1) + ", " + std::to_string(2 * row - 1) + ", " +
            std::to_string(image) + "}, {" + std::to_string(copy.byColumn) + ", " +
            std::to_string(copy.byRow) + "}, ready);\n";
  }
  body += "  }\n  tk::phase_wait(ready, 0);\n" + dumpText(5 * 256) + "}";
  KernelHarness k(body);
  k.threads = 128;
  k.sharedBytes = 1024 + 5120;
  k.inView({x.data(), DType::i32, tk::Extents{3, 7, 6, 8}});
  k.mapped({8, 32, 1, 1}, 0);
  k.atPlaces({{-1, 1, tk::Expr(int64_t{6})}, {-1, 2, tk::Expr(int64_t{4})}});
  k.out(y, DType::i32);
  tk::test::runOnBoth(k, [&] {
    size_t wrong = 0;
    for (int i = 0; i < 5 * 256; ++i) {
      const Copy &copy = copies[i / 256];
      const int place = copy.first + i / 8 % 32, image = place / 24;
      const int row = 2 * (place / 6 % 4) - 1 + copy.byRow, column = place % 6 - 1 + copy.byColumn;
      const bool inside = image < 3 && row >= 0 && row < 7 && column >= 0 && column < 6;
      wrong += y[static_cast<size_t>(i)] !=
               (inside ? x[static_cast<size_t>(((image * 7 + row) * 6 + column) * 8 + i % 8)] : 0);
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("swizzles permute chunks of 16 bytes by the rows of 128 bytes", "[hopper]") {
  for (int swizzle : {0, 1, 2, 3}) {
    const int row = swizzle ? 4 << swizzle : 8; // words
    std::vector<int> x = counting(static_cast<size_t>(16 * row)), y(x.size());
    KernelHarness k(std::string(head) + R"(extern "C" __global__ void __launch_bounds__(128)
k(const __grid_constant__ tk::TensorMap x, int *y) {)" +
                    prologue + "  if (tk::thread_index() == 0) {\n    tk::phase_expect(ready, " +
                    std::to_string(64 * row) +
                    ");\n    tk::bulk_load<2>(shared + 1024, &x, {0, 0}, ready);\n  }\n"
                    "  tk::phase_wait(ready, 0);\n" +
                    dumpText(16 * row) + "}");
    k.threads = 128;
    k.sharedBytes = 4096;
    k.inView({x.data(), DType::i32, tk::Extents{16, row}});
    k.mapped({static_cast<uint32_t>(row), 16}, static_cast<uint8_t>(swizzle));
    k.out(y, DType::i32);
    INFO("swizzle " << swizzle);
    tk::test::runOnBoth(k, [&] {
      size_t wrong = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t chunk = i / 4, line = chunk / 8; // a line is 128 bytes
        const size_t place = chunk ^ (line & ((size_t{1} << swizzle) - 1));
        wrong += y[place * 4 + i % 4] != x[i];
      }
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("stores leave out what is outside; additions add", "[hopper]") {
  for (const bool add : {false, true}) {
    // A box of [4, 8] at (4, 3) of y[5, 8], where x is 1, 2, ... and y was 100 where it is added
    // to.
    KernelHarness k(std::string(head) + R"(extern "C" __global__ void __launch_bounds__(128)
k(const float *x, const __grid_constant__ tk::TensorMap whole,
  const __grid_constant__ tk::TensorMap y) {
  float *const shared = reinterpret_cast<float *>(tk::shared_memory());
  const int i = tk::thread_index();
  if (i < 64)
    tk::put(&shared[i], i < 40 ? 100.0f : 0.0f);
  if (i >= 64 && i < 96)
    tk::put(&shared[i], tk::get(&x[i - 64]));
  tk::fence_async_proxy();
  tk::barrier();
  if (i == 0) {
    tk::bulk_store<2>(&whole, {0, 0}, shared);
    tk::bulk_commit();
    tk::bulk_wait<0>();
    tk::)" + std::string(add ? "bulk_add" : "bulk_store") +
                    R"(<2>(&y, {4, 3}, shared + 64);
    tk::bulk_commit();
    tk::bulk_wait_read<0>();
  }
})");
    k.threads = 128;
    k.sharedBytes = 512;
    std::vector<float> x(32), y(40);
    std::iota(x.begin(), x.end(), 1.0f);
    k.in(x, DType::f32);
    k.outView({y.data(), DType::f32, tk::Extents{5, 8}});
    k.mapped({8, 5}, 0);
    k.mappedAgain({8, 4}, 0);
    tk::test::runOnBoth(k, [&] {
      size_t wrong = 0;
      for (size_t i = 0; i < 40; ++i) {
        const size_t row = i / 8, column = i % 8;
        const bool inside = row >= 3 && column >= 4;
        const float stored = inside ? x[(row - 3) * 8 + column - 4] : 0;
        wrong += y[i] != (inside && !add ? stored : 100 + stored);
      }
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("runs of bytes without a map", "[hopper]") {
  KernelHarness k(std::string(head) + R"(extern "C" __global__ void __launch_bounds__(128)
k(const int *x, int *y) {)" +
                  prologue + R"(
  if (tk::thread_index() == 0) {
    tk::phase_expect(ready, 256);
    tk::bulk_copy(shared + 1024, x, 128, ready);
    tk::bulk_copy(shared + 1152, x + 64, 128, ready);
    tk::phase_wait(ready, 0);
    tk::bulk_copy_out(y, shared + 1024, 256);
    tk::bulk_commit();
    tk::bulk_wait<0>();
  }
})");
  k.threads = 128;
  k.sharedBytes = 2048;
  std::vector<int> x = counting(96), y(64);
  k.in(x, DType::i32);
  k.out(y, DType::i32);
  tk::test::runOnBoth(k, [&] {
    size_t wrong = 0;
    for (size_t i = 0; i < 64; ++i)
      wrong += y[i] != x[i < 32 ? i : i + 32];
    CHECK(wrong == 0);
  });
}

TEST_CASE("phases are counted; multicast and remote memory reach the other block", "[hopper]") {
  // Each of two blocks loads its half of a row of 64 for both, three times; then adds what the
  // other one has at the same place.
  KernelHarness k(std::string(head) + R"(
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
k(const __grid_constant__ tk::TensorMap x, int *y) {)" +
                  prologue + R"(
  const int rank = tk::cluster_rank(), i = tk::thread_index();
  int *const row = reinterpret_cast<int *>(shared + 1024);
  tk::cluster_sync();
  int sum = 0;
  for (int step = 0; step < 3; ++step) {
    if (i == 0) {
      tk::phase_expect(ready, 256);
      tk::bulk_load_multicast<2>(row + 32 * rank, &x, {32 * rank, step}, ready, 3);
    }
    tk::phase_wait(ready, step & 1);
    if (i < 64)
      sum += tk::get(&row[i]);
    tk::cluster_sync();
  }
  if (i < 64)
    tk::put(&row[i], rank + 1);
  tk::cluster_sync();
  if (i < 64)
    sum += 1000 * tk::get(tk::map_shared_rank(&row[i], rank ^ 1));
  tk::cluster_sync();
  if (i < 64)
    tk::put(&y[tk::block_x() * 64 + i], sum);
})");
  k.threads = 128;
  k.grid = 4;
  k.cluster = 2;
  k.sharedBytes = 2048;
  std::vector<int> x = counting(3 * 64), y(256);
  k.inView({x.data(), DType::i32, tk::Extents{3, 64}});
  k.mapped({32, 1}, 0);
  k.out(y, DType::i32);
  tk::test::runOnBoth(k, [&] {
    size_t wrong = 0;
    for (size_t i = 0; i < 256; ++i)
      wrong += y[i] != x[i % 64] + x[64 + i % 64] + x[128 + i % 64] + (i / 64 % 2 ? 1000 : 2000);
    CHECK(wrong == 0);
  });
}

TEST_CASE("the blocks of a cluster join values, round after round", "[hopper]") {
  // Four blocks of two warps: the sum and the largest of what eight warps have, three times.
  KernelHarness k(std::string(head) + R"(
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(64)
k(int *y) {
  auto *const sums = reinterpret_cast<tk::Exchange<int, 1, 2, 4> *>(tk::shared_memory());
  auto *const pairs = reinterpret_cast<tk::Exchange<double, 2, 2, 4> *>(tk::shared_memory() + 256);
  if (tk::thread_index() == 0) {
    tk::prepare_exchange(sums);
    tk::prepare_exchange(pairs);
    tk::phase_init_fence();
  }
  tk::cluster_sync();
  const int warp = tk::cluster_rank() * 2 + tk::warp_index();
  int round = 0, other = 0;
  for (int step = 0; step < 5; ++step) {
    int sum[1] = {step * warp};
    double largest[2] = {10.0 * step - warp, warp == step ? 100.0 : 1.0 * step};
    tk::reduce_cluster<tk::Sum>(sum, sums, round);
    tk::reduce_cluster<tk::Maximum>(largest, pairs, other);
    const int both = (int)largest[0] + (int)largest[1];
    tk::put(&y[(step * 4 + tk::cluster_rank()) * 64 + tk::thread_index()], 1000 * sum[0] + both);
  }
})");
  k.threads = 64;
  k.grid = k.cluster = 4;
  k.sharedBytes = 1024;
  std::vector<int> y(5 * 256);
  k.out(y, DType::i32);
  tk::test::runOnBoth(k, [&] {
    size_t wrong = 0;
    for (int i = 0; i < 5 * 256; ++i)
      wrong += y[i] != 1000 * (i / 256) * 28 + 10 * (i / 256) + 100;
    CHECK(wrong == 0);
  });
}
