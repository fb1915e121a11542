// Rows that the threads of a block sort.
#include "KernelHarness.h"

#include <algorithm>

using tk::DType;
using tk::test::KernelHarness;

/// The row of `n` elements a thread that `threads` threads have sorted; element i is `element`.
static std::vector<int64_t> sorted(int n, int threads, const std::string &element) {
  const std::string count = std::to_string(n), all = std::to_string(threads);
  KernelHarness k("extern \"C\" __global__ void __launch_bounds__(" + all + R"()
k(long long *y) {
  auto *const row = reinterpret_cast<long long *>(tk::shared_memory());
  for (int r = 0; r < )" +
                  count + R"(; ++r) {
    const long long i = r * )" +
                  all + R"( + tk::thread_index();
    tk::put(&row[i], )" +
                  element + R"();
  }
  tk::sort_block<)" +
                  count + ", " + all + R"(>(row);
  for (int r = 0; r < )" +
                  count + R"(; ++r) {
    const int i = r * )" +
                  all + R"( + tk::thread_index();
    tk::put(&y[i], tk::get(&row[tk::sorted_place<)" +
                  count + R"(>(i)]));
  }
})");
  k.threads = threads;
  k.sharedBytes = n * threads * 8;
  std::vector<int64_t> y(static_cast<size_t>(n * threads));
  k.out(y, DType::i64);
  const std::string text = k.run();
  INFO(text);
  CHECK(text == "");
  return y;
}

TEST_CASE("sorted rows", "[emu]") {
  struct Row {
    std::string text;
    int64_t (*element)(int64_t);
  };
  const Row rows[] = {
      {"i", [](int64_t i) { return i; }},
      {"-i", [](int64_t i) { return -i; }},
      {"5ll", [](int64_t) { return int64_t(5); }},
      {"i * 7919 % 4099", [](int64_t i) { return i * 7919 % 4099; }},
      {"(i * 7919 % 13 - 6) << 40",
       [](int64_t i) { return (i * 7919 % 13 - 6) * (int64_t(1) << 40); }},
  };
  for (auto [n, threads] :
       {std::pair(8, 32), std::pair(16, 32), std::pair(16, 64), std::pair(16, 256)})
    for (const Row &row : rows) {
      std::vector<int64_t> wanted;
      for (int64_t i = 0; i < n * threads; ++i)
        wanted.push_back(row.element(i));
      std::sort(wanted.begin(), wanted.end());
      CHECK(sorted(n, threads, row.text) == wanted);
    }
}
