// Planted faults of shared memory and of threads that wait: each is reported at its line.
#include "KernelHarness.h"

using tk::DType;
using tk::test::KernelHarness;

/// A kernel of 64 threads whose body begins at line 4 and gets x[64] and y[64].
static std::string report(const std::string &body, int64_t sharedBytes = 256) {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(64)
k(const float *__restrict__ x, float *y) {
  float *shared = reinterpret_cast<float *>(tk::shared_memory()); const int i = tk::thread_index();
)" + body + "\n}");
  std::vector<float> x(64, 1.0f), y(64);
  k.threads = 64;
  k.sharedBytes = sharedBytes;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  return k.run();
}
static bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a missing barrier between a write and a read", "[emu]") {
  CHECK(report(R"(  tk::put(&shared[i], tk::get(&x[i]));
  tk::barrier();
  tk::put(&y[i], tk::get(&shared[63 - i]));)") == "");
  const std::string text = report(R"(  tk::put(&shared[i], tk::get(&x[i]));
  tk::put(&shared[i], 2.0f);
  if (i >= 32)
    tk::put(&y[i], tk::get(&shared[63 - i]));)");
  INFO(text);
  CHECK(has(text, "k.tk:7: kernel 'k', block (0, 0, 0): thread 32 (warp 1, lane 0) reads byte 124 "
                  "of shared memory, which thread 31 (warp 0, lane 31) wrote at k.tk:5 with no "
                  "barrier in between"));
}

TEST_CASE("a missing barrier between a read and a write", "[emu]") {
  const std::string text = report(R"(  tk::put(&shared[i], tk::get(&x[i]));
  tk::barrier();
  float v = tk::get(&shared[63 - i]);
  tk::put(&shared[i], v);
  tk::put(&y[i], v);)");
  INFO(text);
  // Which of the two comes second depends on the order in which threads run.
  CHECK(has(text, "k.tk:6: "));
  CHECK(has(text, "wrote at k.tk:7 with no barrier in between"));
}

TEST_CASE("two threads that write one place", "[emu]") {
  const std::string text = report("  tk::put(&shared[i / 2], 1.0f);");
  INFO(text);
  CHECK(has(text, "k.tk:4: "));
  CHECK(has(text, "thread 1 (warp 0, lane 1) writes byte 0 of shared memory, which thread 0"));
}

TEST_CASE("a missing barrier inside a shared primitive is reported at its caller", "[emu]") {
  const std::string text = report(R"(  float v[1] = {1.0f};
  tk::put(&shared[63 - i], 1.0f);
  tk::reduce_warps<tk::Sum, 1, 2>(v, shared);
  tk::put(&shared[i], v[0]);)");
  INFO(text);
  // Which of the two comes second depends on the order in which threads run.
  CHECK(has(text, "k.tk:6: "));
  CHECK(has(text, "wrote at k.tk:7 with no barrier in between"));
}

TEST_CASE("an uninitialised read of shared memory", "[emu]") {
  const std::string text = report(R"(  if (i < 63)
    tk::put(&shared[i], 1.0f);
  tk::barrier();
  tk::put(&y[i], tk::get(&shared[i]));)");
  INFO(text);
  CHECK(has(text, "k.tk:7: "));
  CHECK(has(text, "thread 63 (warp 1, lane 31) reads byte 252 of shared memory, which is not "
                  "written yet"));
}

TEST_CASE("shared memory out of bounds, and unaligned", "[emu]") {
  std::string text = report("  tk::put(&shared[i], 1.0f);", 252);
  INFO(text);
  CHECK(has(text, "k.tk:4: "));
  CHECK(has(text, "thread 63 (warp 1, lane 31) writes 4 bytes at byte 252 of shared memory, which "
                  "has 252 bytes"));
  CHECK(has(report("  tk::put(&shared[i - 1], 1.0f);"), "writes 4 bytes at byte -4"));
  CHECK(has(report("  float v[4] = {}; if (i == 0) tk::store<4>(&shared[2], v);"),
            "not aligned to 16 bytes"));
}

TEST_CASE("a barrier that some threads do not reach", "[emu]") {
  const std::string text = report(R"(  if (i < 32)
    tk::barrier();)");
  INFO(text);
  CHECK(has(text, "k.tk:5: "));
  CHECK(has(text, "deadlock: threads 0-31 at a barrier at k.tk:5; threads 32-63 ended"));
}

TEST_CASE("a warp that diverges", "[emu]") {
  std::string text = report(R"(  float v = 0;
  if (i != 5)
    v = tk::shuffle_xor(1.0f, 1);
  tk::put(&y[i], v);)");
  INFO(text);
  CHECK(has(text, "deadlock: threads 0-4, 6-31 at a shuffle at k.tk:6; threads 5, 32-63 ended"));
  text = report(R"(  float v = i < 3 ? tk::shuffle_xor(1.0f, 1)
                  : tk::shuffle_xor(1.0f, 1);
  tk::put(&y[i], v);)");
  INFO(text);
  CHECK(has(text, "the warp diverged"));
  text = report(R"(  if (i & 1)
    tk::barrier();
  else
    tk::barrier();)");
  INFO(text);
  CHECK(has(text, "a barrier that its warp has not in common"));
}

TEST_CASE("load_matrix checks the rows that lanes name", "[emu]") {
  std::string text = report(R"(  tk::put(&shared[i], 1.0f);
  tk::barrier();
  tk::f16 v[2];
  tk::load_matrix<1, false>(v, (const tk::f16 *)&shared[(i % 8) * 4 + 40]);)");
  INFO(text);
  CHECK(has(text, "k.tk:7: "));
  CHECK(has(text, "thread 6 (warp 0, lane 6) reads 16 bytes at byte 256"));
  text = report(R"(  tk::f16 v[2];
  tk::load_matrix<1, false>(v, (const tk::f16 *)&shared[0]);)");
  CHECK(has(text, "not written yet"));
}

TEST_CASE("a number of another width than its parameter", "[emu]") {
  KernelHarness k("extern \"C\" __global__ void k(float *x, long long n) { tk::put(x, 0.0f); }");
  std::vector<float> x(1);
  k.out(x, DType::f32);
  k.integer(7);
  const std::string text = k.run();
  INFO(text);
  CHECK(has(text, "kernel 'k': parameter 1 has 8 bytes, its argument 4"));
}

TEST_CASE("text that does not compile is a bug of ours, with the compiler's words", "[emu]") {
  const std::string text = report("  this is not C++;");
  INFO(text);
  CHECK(has(text, "the host's compiler rejected the emitted text"));
  CHECK(has(text, "k.tk:4"));
}
