#include "tests/target/hopper/OnBoth.h"

#include "compiler/codegen/cuda/EmitCuda.h"
#include "runtime/cuda/GpuLaunch.h"
#include "runtime/cuda/Memory.h"
#include "runtime/cuda/Nvrtc.h"

#include <cstdlib>

namespace tk::test {

static cuda::DeviceContext *hopper() {
  Expected<cuda::DeviceContext *> device = cuda::DeviceContext::get(0);
  return device && (*device)->major == 9 && cuda::Nvrtc::get() ? *device : nullptr;
}

bool runOnGpu(const KernelHarness &harness) {
  cuda::DeviceContext *device = hopper();
  if (!device)
    return false;
  cuda::NvrtcOptions options;
  options.arch = "sm_90a";
  for (const cuda::DeviceHeader &header : cuda::deviceHeaders())
    options.headers.emplace_back(header.name.str(), header.text.str());
  const Expected<cuda::NvrtcResult> code = (*cuda::Nvrtc::get())->compile(harness.text(), options);
  if (!code)
    FAIL(code.error().what());
  auto module = cuda::GpuModule::load(*device, code->cubin);

  cuda::ScopedContext scope(*device);
  std::vector<TensorView> views = harness.tensors();
  std::vector<cuda::DeviceBuffer> buffers;
  std::vector<void *> host, pointers;
  std::vector<size_t> sizes;
  for (TensorView &view : views) {
    const auto [low, high] = byte_range(view).value();
    host.push_back(view.data);
    sizes.push_back(static_cast<size_t>(high));
    buffers.emplace_back(*device, sizes.back());
    buffers.back().upload(view.data, sizes.back());
    view.data = buffers.back().data();
    pointers.push_back(view.data);
  }
  cuda::ResolvedPlan plan =
      cuda::resolve_plan(harness.plan(), harness.kernelSignature(), module, {}, views);
  cuda::OwnedStream stream(*device);
  cuda::launch_plan(plan, pointers, 0, stream.handle());
  stream.synchronize();
  for (size_t i = 0; i < views.size(); ++i)
    buffers[i].download(host[i], sizes[i]);
  return true;
}

void runOnBoth(KernelHarness &harness, const std::function<void()> &check) {
  bool compiled = false;
  for (const char *timing : {"late", "early", "random:1", "random:2"}) {
    ::setenv("TK_EMU_MODE", timing, 1);
    const std::string report = compiled ? harness.again() : harness.run();
    ::unsetenv("TK_EMU_MODE");
    INFO(timing);
    REQUIRE(report == "");
    check();
    compiled = true;
  }
  INFO("on the GPU");
  if (runOnGpu(harness))
    check();
  else
    WARN("the emulator alone: no GPU of sm_90 here, or no NVRTC");
}

} // namespace tk::test
