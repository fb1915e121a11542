// The runtime on a real GPU and a real NVRTC. Each case says so and passes where the machine has
// none.
#include "tests/unit/catch.h"
#include "tests/unit/runtime/FakeBackend.h"

#include "runtime/cuda/GpuLaunch.h"
#include "runtime/cuda/Memory.h"
#include "runtime/cuda/Nvrtc.h"
#include "tk/tk.h"

#include <cmath>

using namespace tk;
using namespace tk::cuda;

namespace {

// Blocks of 128 threads in clusters of two; 50,000 bytes of dynamic shared memory carry the result.
constexpr char source[] = R"(
extern "C" __global__ void gemm_0(const float *a, const float *b, float *c, float *sums, long long M,
                                  int N, long long stride, float scale, long long K) {
  extern __shared__ float tile[];
  unsigned rank, size;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  long long i = blockIdx.x * 64 + threadIdx.x;
  if (threadIdx.x >= 64 || i >= M || size != 2) return;
  if (sums[i] != 0) { c[0] = -1; return; }
  for (int j = blockIdx.y * 32; j < N && j < (int)blockIdx.y * 32 + 32; ++j) {
    float sum = 0;
    for (long long k = 0; k < K; ++k) sum += a[i * K + k] * b[k * stride + j];
    tile[12000 + threadIdx.x] = sum * scale;
    c[i * N + j] = tile[12000 + threadIdx.x];
  }
}
extern "C" __global__ void wild(float *p) { p[1ll << 45] = 1; }
)";

class RealModule : public test::FakeModule {
public:
  Expected<detail::Executable> specialise(size_t, std::string_view target, const Facts &) override {
    NvrtcOptions options;
    options.arch = target;
    Expected<NvrtcResult> code = Nvrtc::get().value()->compile(source, options);
    if (!code)
      return std::move(code.error());
    detail::Executable executable;
    executable.kind = detail::Executable::Kind::cuda;
    executable.plan = test::gemm_plan();
    Launch &launch = executable.plan.launches[0];
    launch.grid[0] = Expr(2) * Expr::ceil_div(launch.grid[0], Expr(2));
    launch.cluster[0] = 2;
    launch.args.push_back({ArgKind::integer, 0, 0, DType::i64, Expr::variable(1)});
    executable.cubin = code->cubin;
    executable.log = code->log;
    return executable;
  }
};

class RealBackend : public test::FakeBackend {
public:
  Expected<std::shared_ptr<detail::CompiledModule>> compile(std::string_view,
                                                            const CompileOptions &) override {
    return std::shared_ptr<detail::CompiledModule>(std::make_shared<RealModule>());
  }
};

/// The device, or null with a note.
DeviceContext *gpu() {
  Expected<DeviceContext *> device = DeviceContext::get(0);
  if (!device) {
    WARN("not run: " << device.error().message());
    return nullptr;
  }
  return *device;
}

struct OnGpu {
  explicit OnGpu(DeviceContext &device)
      : a(device, m * k * 4), b(device, k * stride * 4), c(device, m * n * 4) {
    std::vector<float> ha(m * k), hb(k * stride);
    for (size_t i = 0; i < ha.size(); ++i)
      ha[i] = static_cast<float>(i % 7) - 3;
    for (size_t i = 0; i < hb.size(); ++i)
      hb[i] = static_cast<float>(i % 5) - 2;
    a.upload(ha.data(), ha.size() * 4);
    b.upload(hb.data(), hb.size() * 4);
    c.fill(0xff);
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j) {
        float sum = 0;
        for (size_t p = 0; p < k; ++p)
          sum += ha[i * k + p] * hb[p * stride + j];
        expected.push_back(sum * 0.5f);
      }
  }
  std::vector<Value> values() const {
    auto view = [](const DeviceBuffer &buffer, Extents shape, Extents strides) {
      return TensorView(buffer.data(), DType::f32, shape, strides, Device::cuda(0));
    };
    return {view(a, {m, k}, {k, 1}), view(b, {k, 2 * n}, {stride, 1}), 0.5,
            view(c, {m, n}, {n, 1})};
  }
  std::vector<float> result() const {
    std::vector<float> out(m * n);
    c.download(out.data(), out.size() * 4);
    return out;
  }
  static constexpr size_t m = 131, k = 66, n = 45, stride = 104;
  DeviceBuffer a, b, c;
  std::vector<float> expected;
};

} // namespace

TEST_CASE("the real NVRTC compiles to PTX and cubin", "[nvrtc]") {
  Expected<const Nvrtc *> nvrtc = Nvrtc::get();
  if (!nvrtc) {
    WARN("not run: " << nvrtc.error().message());
    return;
  }
  NvrtcOptions options;
  options.arch = "sm_90a";
  options.headers = {{"tk/zero.cuh", "#define ZERO 0"}};
  Expected<NvrtcResult> code = (*nvrtc)->compile(
      "#include \"tk/zero.cuh\"\nextern \"C\" __global__ void f(int *p) { *p = ZERO; }", options);
  REQUIRE(code);
  CHECK(code->ptx.find(".target sm_90a") != std::string::npos);
  CHECK(code->cubin.substr(1, 3) == "ELF");
  CHECK(code->log.find("registers") != std::string::npos);
  Expected<NvrtcResult> bad = (*nvrtc)->compile("#line 41 \"attn.tk\"\nint f( { }", options);
  REQUIRE(!bad);
  CHECK(bad.error().message().find("attn.tk(41)") != std::string::npos);
}

TEST_CASE("a kernel runs on the GPU, directly and from a graph", "[gpu]") {
  DeviceContext *device = gpu();
  if (!device)
    return;
  RealBackend backend;
  Kernel kernel = compile("gemm", test::for_target("gpu")).kernel("gemm");
  OnGpu data(*device);
  std::vector<Value> values = data.values();
  OwnedStream stream(*device);

  std::vector<NamedValue> named = {{"a", std::get<TensorView>(values[0])},
                                   {"b", std::get<TensorView>(values[1])},
                                   {"scale", 0.5},
                                   {"c", std::get<TensorView>(values[3])}};
  const Driver &driver = *device->driver;
  auto *handle = static_cast<CUstream>(stream.handle());
  ScopedContext scope(*device);
  SECTION("direct") {
    kernel(stream.handle(), named, std::span<const NamedValue>());
    stream.synchronize();
    CHECK(data.result() == data.expected);
  }
  SECTION("bound") {
    BoundKernel bound = kernel.bind(values);
    for (int i = 0; i < 3; ++i)
      bound.launch(stream.handle(), {data.a.data(), data.b.data(), data.c.data()});
    stream.synchronize();
    CHECK(data.result() == data.expected);
  }
  for (const bool prepared : {true, false})
    SECTION(prepared ? "graph of a prepared kernel" : "graph of a cold kernel") {
      if (prepared)
        kernel.prepare(values);
      constexpr int capture_global = 0;
      device->check(driver.stream_begin_capture(handle, capture_global), "begin");
      kernel(stream.handle(), named, std::span<const NamedValue>());
      CUgraph graph = nullptr;
      CUgraphExec exec = nullptr;
      device->check(driver.stream_end_capture(handle, &graph), "end");
      device->check(driver.graph_instantiate(&exec, graph, 0), "instantiate");
      data.c.fill(0xff, stream.handle());
      device->check(driver.graph_launch(exec, handle), "launch");
      device->check(driver.graph_launch(exec, handle), "launch");
      stream.synchronize();
      CHECK(data.result() == data.expected);
      driver.graph_exec_destroy(exec);
      driver.graph_destroy(graph);
    }
  SECTION("host memory is refused") {
    std::vector<float> host(OnGpu::m * OnGpu::k);
    std::get<TensorView>(named[0].value).data = host.data();
    Status status = kernel.try_launch(stream.handle(), named, {});
    REQUIRE(!status);
    CHECK(status.error().code() == ErrorCode::invalid_argument);
  }
}

// Last: nothing works in the process after it.
TEST_CASE("a kernel that breaks the context is named by the next call", "[.poison]") {
  DeviceContext *device = gpu();
  if (!device)
    return;
  NvrtcOptions options;
  options.arch = device->arch();
  auto module =
      GpuModule::load(*device, Nvrtc::get().value()->compile(source, options).value().cubin);
  Signature signature;
  signature.params.push_back(test::tensor("p", DType::f32, {{Expr(1), "1"}}, 1));
  LaunchPlan plan;
  plan.launches.resize(1);
  plan.launches[0].symbol = "wild";
  plan.launches[0].args.resize(1);
  plan.launches[0].span = {"wild.tk", 41, 1, 41, 2};
  DeviceBuffer buffer(*device, 4);
  ResolvedPlan resolved = resolve_plan(plan, signature, module, {}, {});
  void *pointers[] = {buffer.data()};
  launch_plan(resolved, pointers, 0, nullptr);
  try {
    synchronize(*device, nullptr);
    FAIL("the wild write was not noticed");
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::context_poisoned);
    CHECK(error.message().find("context poisoned by 'wild' (wild.tk:41)") == 0);
  }
}

TEST_CASE("A launch that would crowd does not begin as the one before it ends") {
  CHECK(would_crowd(256, 6 * 132, 132)); // two for each multiprocessor, which holds six
  CHECK(would_crowd(384, 9 * 132, 132));
  CHECK(!would_crowd(384, 5 * 132, 132));    // at most five where an equal share is three
  CHECK(!would_crowd(131, 16 * 132, 132));   // too few to matter
  CHECK(!would_crowd(13200, 16 * 132, 132)); // more than fit: others follow where blocks end
  CHECK(!would_crowd(4, 4, 0));
}
