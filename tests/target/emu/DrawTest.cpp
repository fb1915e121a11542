// Numbers that clusters draw from a counter and tell their blocks.
#include "KernelHarness.h"

using tk::DType;
using tk::test::KernelHarness;

static bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// Clusters of 2 blocks of 64 threads take numbers below `count` until there are none; each thread
/// writes its place of each number. `drawn` is what they draw next.
static std::string report(int clusters, int count, const std::string &drawn) {
  KernelHarness k(R"(#include "cluster.cuh"
extern "C" __global__ void __launch_bounds__(64)
k(int *y, int *counter, const int count) {
  auto *const told = reinterpret_cast<tk::Told *>(tk::shared_memory());
  auto *const exchange = reinterpret_cast<tk::Exchange<int, 1, 2, 2> *>(tk::shared_memory() + 32);
  int round = 0, rounds = 0;
  if (tk::thread_index() == 0) {
    tk::prepare_told(told);
    tk::prepare_exchange(exchange);
    tk::phase_init_fence();
  }
  tk::cluster_sync();
  for (int number = tk::block_x() / 2; number < count;) {
    const int drawn = )" +
                  drawn + R"(;
    tk::tell_number<2, 2>(told, drawn, round);
    int one[1] = {1};
    tk::reduce_cluster<tk::Sum>(one, exchange, rounds);
    tk::put(&y[(number * 2 + tk::cluster_rank()) * 64 + tk::thread_index()], one[0]);
    number = tk::told_number(told, round) + tk::grid_x() / 2;
  }
})");
  k.threads = 64;
  k.cluster = 2;
  k.grid = int64_t{2} * clusters;
  k.sharedBytes = 256;
  std::vector<int> y(static_cast<size_t>(count) * 128);
  k.out(y, DType::i32);
  k.counter();
  k.integer(count);
  // Late, early and by chance; the counter is 0 again for each.
  std::string text = k.run();
  for (int times = 0; text.empty() && times < 2; ++times)
    text = k.again();
  for (int value : y)
    if (text.empty() && value != 4)
      return "a sum of " + std::to_string(value) + " warps";
  return text;
}

TEST_CASE("clusters take every number once", "[emu]") {
  const std::string draw = "tk::draw_number<2>(counter, count)";
  CHECK(report(1, 1, draw) == "");
  CHECK(report(1, 7, draw) == "");
  CHECK(report(3, 3, draw) == "");
  CHECK(report(3, 11, draw) == "");
}

TEST_CASE("counters are left as they were, and nothing else is drawn from", "[emu]") {
  std::string text = report(2, 5, "tk::draw_number<2>(counter, count + 1)");
  INFO(text);
  CHECK(has(text, "does not leave byte 0 of scratch buffer 'counter' as it was"));
  text = report(2, 5, "tk::draw_number<2>(y, count)");
  INFO(text);
  CHECK(has(text, "draws from"));
  CHECK(has(text, "which is not 0 when launches begin"));
}
