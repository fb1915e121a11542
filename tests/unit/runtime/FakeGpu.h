// The sample kernel on a fake GPU.
#pragma once

#include "tests/unit/catch.h"
#include "tests/unit/runtime/FakeBackend.h"
#include "tests/unit/runtime/FakeCuda.h"

#include "tk/tk.h"

#include <cstdlib>
#include <dlfcn.h>

namespace tk::test {

inline FakeCudaState &fake() {
  static auto *state = [] {
    ::setenv("TK_LIBCUDA", FAKE_CUDA_PATH, 1);
    void *library = dlopen(FAKE_CUDA_PATH, RTLD_NOW);
    REQUIRE(library);
    auto get = reinterpret_cast<FakeCudaState *(*)()>(dlsym(library, "fake_cuda_state"));
    REQUIRE(get);
    return get();
  }();
  return *state;
}

/// The sample kernel on the fake GPU, whose memory is the host's.
struct GpuGemm {
  GpuGemm() {
    fake() = {};
    fake().num_arguments = 9;
    kernel.emplace(compile("gemm", for_target("sm_90a")).kernel("gemm"));
  }
  std::vector<NamedValue> inputs() const {
    return {{"a", view(0, {2, 2})}, {"b", view(64, {2, 4})}};
  }
  std::vector<NamedValue> outputs() const { return {{"c", view(128, {2, 2})}}; }
  TensorView view(size_t offset, Extents shape) const {
    return TensorView(const_cast<char *>(storage) + offset, DType::f32, shape, Device::cuda(0));
  }
  Status run() { return kernel->try_launch(stream, inputs(), outputs()); }
  ErrorCode failure() {
    Status status = run();
    REQUIRE(!status);
    message = status.error().message();
    return status.error().code();
  }
  FakeBackend backend;
  std::optional<Kernel> kernel;
  Stream stream{reinterpret_cast<void *>(uintptr_t{16})};
  std::string message;
  alignas(256) char storage[256] = {};
};

} // namespace tk::test
