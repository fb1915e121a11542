// Bounds, alignment, coverage and races of global memory.
#include "KernelHarness.h"

#include <cmath>

using tk::DType;
using tk::TensorView;
using tk::test::KernelHarness;

static bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// x is f32[4, 15] and y f32[64]; two blocks of 32 threads; `body` is line 3.
static std::string report(const std::string &body, const TensorView *x = nullptr) {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const float *__restrict__ x, float *y) { const int i = tk::block_x() * 32 + tk::thread_index();
)" + body + "\n}");
  std::vector<float> dense(64, 1.0f), y(64);
  k.grid = 2;
  k.inView(x ? *x : TensorView(dense.data(), DType::f32, tk::Extents{4, 15}));
  k.out(y, DType::f32);
  return k.run();
}

TEST_CASE("an unguarded tail is reported with its element", "[emu]") {
  CHECK(report("  tk::put(&y[i], i < 60 ? tk::get(&x[i]) : 0.0f);") == "");
  std::string text = report("  tk::put(&y[i], tk::get(&x[i]));");
  INFO(text);
  CHECK(has(text, "k.tk:3: kernel 'k', block (1, 0, 0): thread 28 (warp 0, lane 28) reads element "
                  "60 of 'x', a f32[4, 15], which is outside"));
  text = report("  float v[4]; tk::load<4>(v, &x[i == 63 ? 0 : 8]); tk::put(&y[i + 1], v[0]);");
  INFO(text);
  CHECK(has(text, "thread 31 (warp 0, lane 31) writes element 64 of 'y', a f32[64], which is "
                  "outside"));
  CHECK(has(report("  tk::put(&y[i], tk::get(&x[i - 1]));"), "reads element -1 of 'x'"));
}

TEST_CASE("vector accesses are aligned", "[emu]") {
  const std::string text = report("  float v[2]; tk::load<2>(v, &x[5]); tk::put(&y[i], v[0]);");
  INFO(text);
  CHECK(has(text, "reads x[0, 5], whose address is not aligned to 8 bytes"));
}

TEST_CASE("elements between a strided tensor's rows are outside", "[emu]") {
  std::vector<float> memory(64, 1.0f);
  const TensorView rows(memory.data(), DType::f32, tk::Extents{4, 15}, tk::Extents{16, 1},
                        tk::Device::cpu());
  CHECK(report("  tk::put(&y[i], i % 16 < 15 ? tk::get(&x[i]) : 0.0f);", &rows) == "");
  const std::string text = report("  tk::put(&y[i], i < 63 ? tk::get(&x[i]) : 0.0f);", &rows);
  INFO(text);
  CHECK(has(text, "thread 15 (warp 0, lane 15) reads x[0, 15], which is between the rows"));
}

TEST_CASE("a result that is not written in full", "[emu]") {
  const std::string text = report("  if (i != 17) tk::put(&y[i], 0.0f);");
  INFO(text);
  CHECK(has(text, "never writes y[17]"));
}

TEST_CASE("results start as NaNs and may not be read before", "[emu]") {
  const std::string text = report("  tk::put(&y[i], tk::get(&y[i]));");
  INFO(text);
  CHECK(has(text, "reads y[0], which is not written yet"));
}

TEST_CASE("parameters may not be written", "[emu]") {
  CHECK(has(report("  tk::put(const_cast<float *>(&x[0]), 1.0f);"),
            "writes x[0, 0], a parameter that is only read"));
}

TEST_CASE("accesses that go round the primitives cannot reach memory", "[emu]") {
  CHECK(has(report("  float v; tk::put(&v + i, 1.0f);"),
            "writes an address that belongs to no tensor"));
}

TEST_CASE("blocks and threads that write one element", "[emu]") {
  std::string text = report("  tk::put(&y[i % 32], i < 32 ? 0.0f : 1.0f);");
  INFO(text);
  CHECK(has(text, "block (1, 0, 0): thread 0 (warp 0, lane 0) writes y[0], which thread 0 (warp 0, "
                  "lane 0) of block number 0 wrote at k.tk:3 in the same launch"));
  text = report("  tk::put(&y[i & ~1], 0.0f);");
  INFO(text);
  CHECK(has(text, "thread 1 (warp 0, lane 1) writes y[0], which thread 0 (warp 0, lane 0) wrote at "
                  "k.tk:3 with no barrier in between"));
  text = report("  tk::put(&y[i], 0.0f); if (i == 40) tk::get(&y[3]);");
  INFO(text);
  CHECK(has(text, "reads y[3], which thread 3 (warp 0, lane 3) of block number 0 wrote"));
}

TEST_CASE("blocks may write the same bits, as tiles that overlap do", "[emu]") {
  CHECK(report("  tk::put(&y[i], 1.0f); if (i >= 32) tk::put(&y[i - 32], 1.0f);") == "");
  // A zero of the other sign is another value, and to read what another block wrote is a race.
  CHECK(has(report("  tk::put(&y[i], 0.0f); if (i >= 32) tk::put(&y[i - 32], -0.0f);"),
            "writes y[0], which thread 0 (warp 0, lane 0) of block number 0 wrote"));
  CHECK(
      has(report("  tk::put(&y[i], 1.0f); if (i >= 32) tk::put(&y[i - 32], tk::get(&y[i - 32]));"),
          "reads y[0], which thread 0 (warp 0, lane 0) of block number 0 wrote"));
}

TEST_CASE("barriers order accesses to global memory within a block", "[emu]") {
  CHECK(report(R"(  tk::put(&y[i], 1.0f); tk::barrier(); const float v = tk::get(&y[i ^ 1]);
  tk::barrier(); tk::put(&y[i], v);)") == "");
  CHECK(has(report("  tk::put(&y[i], 1.0f); tk::get(&y[i ^ 1]);"), "not written yet"));
}
