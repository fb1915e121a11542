// The GPU's way through the runtime, on fake libraries: what is launched, and every fault as a
// typed error.
#include "tests/unit/catch.h"
#include "tests/unit/runtime/FakeGpu.h"

#include "runtime/cuda/Memory.h"
#include "runtime/cuda/Nvrtc.h"
#include "tk/tk.h"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace tk;
using namespace tk::cuda;

using test::fake;
using test::GpuGemm;

TEST_CASE("libraries that are missing or no drivers", "[driver]") {
  CHECK(Driver::load("/nowhere/libcuda.so.1").error().code() == ErrorCode::no_driver);
  CHECK(Driver::load(FAKE_NVRTC_PATH).error().code() == ErrorCode::driver_too_old);
  ::setenv("FAKE_CUDA_VERSION", "11040", 1);
  auto old = Driver::load(FAKE_CUDA_PATH);
  ::unsetenv("FAKE_CUDA_VERSION");
  REQUIRE(!old);
  CHECK(old.error().code() == ErrorCode::driver_too_old);
  CHECK(old.error().message() == "expected a CUDA driver for CUDA 12.0 or later, got 11.4");
}

TEST_CASE("a driver without a device, and one that does not start", "[driver]") {
  auto loading = [](const char *result) {
    ::setenv("FAKE_CUDA_INIT", result, 1);
    Error error = Driver::load(FAKE_CUDA_PATH).error();
    ::unsetenv("FAKE_CUDA_INIT");
    return error;
  };
  CHECK(loading("100").code() == ErrorCode::no_device);
  CHECK(loading("100").message() == "there is no CUDA device");
  CHECK(loading("999").code() == ErrorCode::no_device);
  CHECK(loading("999").message() == "cuInit failed: CUDA_ERROR_FAKE (as planted)");
  CHECK(loading("2").code() == ErrorCode::out_of_memory);
  CHECK(Driver::load(FAKE_CUDA_PATH));
}

TEST_CASE("NVRTC missing, too old, failing", "[driver]") {
  CHECK(Nvrtc::load("/nowhere/libnvrtc.so").error().code() == ErrorCode::no_nvrtc);
  CHECK(Nvrtc::load(FAKE_CUDA_PATH).error().code() == ErrorCode::nvrtc_too_old);
  CHECK(Nvrtc::load(FAKE_OLD_NVRTC_PATH).error().code() == ErrorCode::nvrtc_too_old);
  auto nvrtc = std::move(Nvrtc::load(FAKE_NVRTC_PATH).value());
  CHECK(nvrtc->version() == "13.4");
  NvrtcOptions options;
  options.arch = "sm_90a";
  auto result = nvrtc->compile("good", options);
  REQUIRE(result);
  CHECK(result->ptx.find("--gpu-architecture=sm_90a\n") == 0);
  CHECK(result->ptx.back() == '\n');
  auto bad = nvrtc->compile("syntax error", options);
  REQUIRE(!bad);
  CHECK(bad.error().code() == ErrorCode::nvrtc_failed);
  CHECK(bad.error().message().find("planted") != std::string::npos);
  options.arch = "sm_120";
  CHECK(nvrtc->compile("good", options).error().message() == "NVRTC 13.4 does not support sm_120");
}

namespace {
volatile std::sig_atomic_t signals = 0;
} // namespace

TEST_CASE("SIGINT stays with the program while NVRTC compiles, and stops that", "[driver]") {
  signals = 0;
  auto *before = std::signal(SIGINT, [](int) { signals = signals + 1; });
  auto nvrtc = std::move(Nvrtc::load(FAKE_NVRTC_PATH).value());
  NvrtcOptions options;
  options.arch = "sm_90";
  auto stopped = nvrtc->compile("raise SIGINT", options);
  CHECK(signals == 1);
  REQUIRE(!stopped);
  CHECK(stopped.error().code() == ErrorCode::interrupted);
  CHECK(nvrtc->compile("good", options));
  std::raise(SIGINT);
  CHECK(signals == 2);
  // Another thread is not the user's to interrupt.
  std::thread([&] { CHECK(nvrtc->compile("raise SIGINT", options)); }).join();
  CHECK(signals == 3);
  std::signal(SIGINT, before);
}

TEST_CASE_METHOD(GpuGemm, "a launch carries the grid, the block and the arguments", "[driver]") {
  REQUIRE(run());
  REQUIRE(fake().launches.size() == 1);
  const auto &launch = fake().launches[0];
  CHECK(launch.grid[0] == 1);
  CHECK(launch.block[0] == 128);
  CHECK(launch.shared == 50000);
  CHECK(launch.num_attributes == 0);
  CHECK(launch.arguments[0] == reinterpret_cast<uint64_t>(storage));
  CHECK(launch.arguments[2] == reinterpret_cast<uint64_t>(storage + 128));
  CHECK(launch.arguments[4] == 2);
  CHECK(launch.arguments[6] == 4);
  float scale = 0;
  std::memcpy(&scale, &launch.arguments[7], 4);
  CHECK(scale == static_cast<float>(1 / std::sqrt(2.0)));
  CHECK(fake().memsets == 1);
  REQUIRE(run());
  CHECK(fake().allocations == 1); // scratch is kept for the stream
  CHECK(backend.last->compilations == 1);
}

TEST_CASE_METHOD(GpuGemm, "nothing is launched on an empty grid", "[driver]") {
  std::vector<NamedValue> in = {{"a", view(0, {0, 2})}, {"b", view(64, {2, 4})}};
  std::vector<NamedValue> out = {{"c", view(128, {0, 2})}};
  REQUIRE(kernel->try_launch(stream, in, out));
  CHECK(fake().launches.empty());
}

TEST_CASE_METHOD(GpuGemm, "a capture compiles, loads and allocates where nothing is prepared",
                 "[driver]") {
  fake().capturing = true;
  REQUIRE(run());
  CHECK(backend.last->compilations == 1);
  CHECK(fake().capture_mode == 0); // that of the thread again
  const uint64_t captured = fake().launches[0].arguments[3];
  const int before = fake().allocations;
  REQUIRE(run());
  CHECK(fake().allocations == before);
  fake().capturing = false;
  REQUIRE(run());
  CHECK(fake().launches[2].arguments[3] != captured); // the graph keeps its own scratch
}

TEST_CASE_METHOD(GpuGemm, "a capture behind prepare allocates nothing", "[driver]") {
  kernel->prepare({view(0, {2, 2}), view(64, {2, 4}), view(128, {2, 2})});
  int before = fake().allocations;
  fake().capturing = true;
  REQUIRE(run());
  REQUIRE(run());
  CHECK(fake().allocations == before);
  uint64_t captured = fake().launches[0].arguments[3];
  CHECK(fake().launches[1].arguments[3] == captured);
  fake().capturing = false;
  REQUIRE(run());
  CHECK(fake().launches[2].arguments[3] != captured); // the graph keeps its own scratch
}

TEST_CASE_METHOD(GpuGemm, "what launches leave at 0 is set so once, and by each graph",
                 "[driver]") {
  backend.last->adjust = [](LaunchPlan &plan) {
    plan.scratch.push_back({Expr(4), false, "counter", true});
    plan.scratch.push_back({Expr(4), false, "another", true});
    plan.launches[0].args.push_back({ArgKind::scratch, 1, 0, DType::i64, {}});
    plan.launches[0].args.push_back({ArgKind::scratch, 2, 0, DType::i64, {}});
  };
  fake().num_arguments = 11;
  auto counter = [&](size_t launch) { return fake().launches[launch].arguments[9]; };
  REQUIRE(run());
  CHECK(fake().memsets == 2); // the buffer that is 0 before each launch, and the counters
  CHECK(*reinterpret_cast<uint64_t *>(counter(0)) == 0);
  CHECK(fake().launches[0].arguments[10] != counter(0));
  // They lie before what other variants of the kernel have for scratch memory.
  CHECK(counter(0) + restored_bytes == fake().launches[0].arguments[3]);
  REQUIRE(run());
  CHECK(fake().memsets == 3);
  CHECK(counter(1) == counter(0));
  kernel->prepare({view(0, {2, 2}), view(64, {2, 4}), view(128, {2, 2})});
  fake().capturing = true;
  REQUIRE(run());
  REQUIRE(run());
  CHECK(fake().memsets == 6);
  CHECK(counter(2) != counter(0));
  CHECK(counter(3) == counter(2));
}

TEST_CASE_METHOD(GpuGemm, "a broken context names the last kernel", "[driver]") {
  REQUIRE(run());
  fake().launch_result = 700;
  CHECK(failure() == ErrorCode::context_poisoned);
  CHECK(message.find("context poisoned by 'gemm_0' (gemm.tk:6)") == 0);
}

TEST_CASE_METHOD(GpuGemm, "faults of the driver are typed", "[driver]") {
  SECTION("host pointer") {
    fake().pointer_result = 1;
    CHECK(failure() == ErrorCode::invalid_argument);
    CHECK(message == "argument 'a': expected memory of cuda:0, got a host pointer");
  }
  SECTION("launch") {
    fake().launch_result = 1;
    CHECK(failure() == ErrorCode::launch_failed);
  }
  SECTION("memory") {
    fake().alloc_result = 2;
    CHECK(failure() == ErrorCode::out_of_memory);
  }
  SECTION("module") {
    fake().load_result = 209;
    CHECK(failure() == ErrorCode::module_load);
  }
  CHECK(fake().launches.empty());
  auto device = DeviceContext::get(3);
  REQUIRE(!device);
  CHECK(device.error().message() == "there is no cuda:3, only 1 device(s)");
}

TEST_CASE_METHOD(GpuGemm, "what was allocated is freed with the kernel", "[driver]") {
  REQUIRE(run());
  kernel->prepare({view(0, {2, 2}), view(64, {2, 4}), view(128, {2, 2})});
  CHECK(fake().live_allocations == 2);
  kernel.reset();
  CHECK(fake().live_allocations == 0);
}

TEST_CASE("buffers copy and free", "[driver]") {
  fake() = {};
  DeviceContext &device = *DeviceContext::get(0).value();
  CHECK(device.arch() == "sm_90a");
  {
    DeviceBuffer buffer(device, 16);
    int in[] = {1, 2, 3, 4}, out[4] = {};
    buffer.upload(in, 16);
    buffer.download(out, 8, 8);
    CHECK(out[1] == 4);
    DeviceBuffer other = std::move(buffer);
    CHECK(other.size() == 16);
  }
  CHECK(fake().live_allocations == 0);
}
