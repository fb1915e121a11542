// Atomic additions to shared memory, and sums by a key.
#include "KernelHarness.h"

using tk::DType;
using tk::test::KernelHarness;

static bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// 64 threads add to one word, which begins as 5; `between` stands before thread 1 reads it, and
/// `before` before the additions.
static std::string report(const std::string &before, const std::string &between) {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(64)
k(int *y) {
  int *const sum = reinterpret_cast<int *>(tk::shared_memory());
  if (tk::thread_index() == 0)
    tk::put(sum, 5);
  )" + before + R"(
  tk::add_shared(sum, tk::thread_index());
  )" + between + R"(
  if (tk::thread_index() == 1)
    tk::put(y, tk::get(sum));
})");
  k.threads = 64;
  k.sharedBytes = 4;
  std::vector<int> y(1);
  k.out(y, DType::i32);
  const std::string text = k.run();
  return text.empty() && y[0] != 5 + 63 * 32 ? "a sum of " + std::to_string(y[0]) : text;
}

TEST_CASE("atomic additions do not race with each other", "[emu]") {
  CHECK(report("tk::barrier();", "tk::barrier();") == "");
}

TEST_CASE("atomic additions race with other accesses", "[emu]") {
  std::string text = report("", "tk::barrier();");
  INFO(text);
  CHECK(has(text, "adds to byte 0 of shared memory, which"));
  text = report("tk::barrier();", "");
  INFO(text);
  CHECK(has(text, "reads byte 0 of shared memory, which"));
  text = report("tk::barrier();", "if (tk::thread_index() == 2) tk::put(sum, 1); tk::barrier();");
  INFO(text);
  CHECK(has(text, "writes byte 0 of shared memory, which"));
}

/// Two warps add n terms a thread by key; the sums of `bins` keys.
template <class T> static std::vector<T> sums(const std::string &key, const std::string &type) {
  KernelHarness k("extern \"C\" __global__ void __launch_bounds__(64)\nk(" + type + R"( *y) {
  auto *const sums = reinterpret_cast<)" +
                  type + R"( *>(tk::shared_memory());
  int key[3];
  )" + type + R"( x[3];
  for (int r = 0; r < 3; ++r) {
    const int i = r * 64 + tk::thread_index();
    key[r] = )" + key +
                  R"(;
    x[r] = i;
  }
  tk::add_by_key<16, 2>(sums, key, x, true);
  if (tk::thread_index() < 16)
    tk::put(&y[tk::thread_index()], tk::get(&sums[tk::thread_index()]));
})");
  k.threads = 64;
  k.sharedBytes = 16 * 2 * 4;
  std::vector<T> y(16);
  k.out(y, sizeof(T) == 4 && type == "int" ? DType::i32 : DType::f32);
  const std::string text = k.run();
  INFO(text);
  CHECK(text == "");
  return y;
}

TEST_CASE("sums by a key", "[emu]") {
  for (int divisor : {1, 5, 40, 192}) {
    const std::string key = "i / " + std::to_string(divisor) + " - 2";
    std::vector<int> wanted(16);
    for (int i = 0; i < 192; ++i)
      if (const int own = i / divisor - 2; own >= 0 && own < 16)
        wanted[static_cast<size_t>(own)] += i;
    CHECK(sums<int>(key, "int") == wanted);
    CHECK(sums<float>(key, "float") == std::vector<float>(wanted.begin(), wanted.end()));
  }
  CHECK(sums<float>("3", "float")[3] == 192 * 191 / 2);
}
