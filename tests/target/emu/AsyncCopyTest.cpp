// Asynchronous copies: groups, masks, and what is wrong with using them too early.
#include "KernelHarness.h"

using tk::DType;
using tk::test::KernelHarness;

static const char *const timings[] = {"late", "early", "random:1", "random:2"};

/// Two stages of 32 floats, the second copied while the first is used. `wait` is the first wait.
static std::string pipelineText(const std::string &wait, const std::string &barrier) {
  return R"(extern "C" __global__ void __launch_bounds__(32)
k(const float *__restrict__ x, float *y) {
  float *shared = reinterpret_cast<float *>(tk::shared_memory());
  const int i = tk::thread_index();
  tk::copy_async<4>(&shared[i], &x[i]);
  tk::async_commit();
  tk::copy_async<4>(&shared[32 + i], &x[32 + i], i < 16);
  tk::async_commit();
  )" + wait +
         R"(;
  )" + barrier +
         R"(;
  float first = tk::get(&shared[31 - i]);
  tk::async_wait<0>();
  tk::barrier();
  tk::put(&y[i], first + tk::get(&shared[32 + (31 - i)]));
})";
}

TEST_CASE("copies arrive by the wait for their group; masked ones are zeros", "[emu]") {
  std::vector<float> x(64), y(32);
  for (size_t i = 0; i < 64; ++i)
    x[i] = static_cast<float>(i);
  for (const char *timing : timings) {
    KernelHarness k(pipelineText("tk::async_wait<1>()", "tk::barrier()"));
    k.sharedBytes = 256;
    k.options.timing = tk::emu::Timing::parse(timing);
    k.in(x, DType::f32);
    k.out(y, DType::f32);
    REQUIRE(k.run() == "");
    for (size_t i = 0; i < 32; ++i)
      CHECK(y[i] == static_cast<float>((31 - i) + (31 - i < 16 ? 63 - i : 0)));
  }
}

static std::string runPipeline(const char *timing, const std::string &wait,
                               const std::string &barrier) {
  std::vector<float> x(64), y(32);
  KernelHarness k(pipelineText(wait, barrier));
  k.sharedBytes = 256;
  k.options.timing = tk::emu::Timing::parse(timing);
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  return k.run();
}

TEST_CASE("a read of data in flight is reported at the read, with the copy", "[emu]") {
  for (const char *timing : timings)
    for (const char *wait : {"tk::async_wait<2>()", ""}) {
      const std::string report = runPipeline(timing, wait, "tk::barrier()");
      INFO(report);
      CHECK(report.find("k.tk:11: ") == 0);
      CHECK(report.find("while an asynchronous copy into it is in flight") != std::string::npos);
      CHECK(report.find("k.tk:5 ") != std::string::npos);
    }
}

TEST_CASE("a wait without a barrier orders the copying thread alone", "[emu]") {
  for (const char *timing : {"late", "early"}) {
    const std::string report = runPipeline(timing, "tk::async_wait<1>()", "");
    INFO(report);
    CHECK(report.find("k.tk:11: ") == 0);
  }
}

TEST_CASE("a buffer is not refilled while others may still read it", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(64)
k(const float *__restrict__ x, float *y) {
  float *shared = reinterpret_cast<float *>(tk::shared_memory());
  const int i = tk::thread_index();
  float sum = 0;
  for (int step = 0; step < 2; ++step) {
    tk::copy_async<4>(&shared[i], &x[step * 64 + i]);
    tk::async_commit();
    tk::async_wait<0>();
    tk::barrier();
    sum += tk::get(&shared[63 - i]);
  }
  tk::put(&y[i], sum);
})");
  std::vector<float> x(128), y(64);
  k.threads = 64;
  k.sharedBytes = 256;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  const std::string report = k.run();
  INFO(report);
  // Which of the two comes second depends on the order in which threads run.
  CHECK(report.find("k.tk:11: ") == 0);
  CHECK(report.find("wrote at k.tk:7 with no barrier in between") != std::string::npos);
}

TEST_CASE("a copy into what others have read is reported as well", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(64)
k(const float *__restrict__ x, float *y) {
  float *shared = reinterpret_cast<float *>(tk::shared_memory());
  const int i = tk::thread_index();
  tk::put(&shared[i], 1.0f);
  tk::barrier();
  if (i < 32) tk::put(&y[i], tk::get(&shared[63 - i]));
  if (i >= 32)
    tk::copy_async<4>(&shared[i], &x[i]);
})");
  std::vector<float> x(64), y(32);
  k.threads = 64;
  k.sharedBytes = 256;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  const std::string report = k.run();
  INFO(report);
  CHECK(report.find("k.tk:9: ") == 0);
  CHECK(report.find("begins to copy to byte 128") != std::string::npos);
  CHECK(report.find("read at k.tk:7 with no barrier in between") != std::string::npos);
}

TEST_CASE("a store into a copy's target in flight is reported", "[emu]") {
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const float *__restrict__ x, float *y) {
  float *shared = reinterpret_cast<float *>(tk::shared_memory());
  const int i = tk::thread_index();
  tk::copy_async<4>(&shared[i], &x[i]);
  tk::put(&shared[i], 0.0f);
  tk::async_commit();
  tk::async_wait<0>();
  tk::put(&y[i], tk::get(&shared[i]));
})");
  std::vector<float> x(32), y(32);
  k.sharedBytes = 128;
  k.in(x, DType::f32);
  k.out(y, DType::f32);
  const std::string report = k.run();
  INFO(report);
  CHECK(report.find("k.tk:6: ") == 0);
  CHECK(report.find("writes byte 0 of shared memory while") != std::string::npos);
}
