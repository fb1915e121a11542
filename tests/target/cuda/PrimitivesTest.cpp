// The device primitives on a real GPU against the host: conversions bit for bit, functions within
// 2 ulp. Says so and passes where the machine has no GPU or no NVRTC.
#include "tests/unit/catch.h"

#include "compiler/codegen/cuda/EmitCuda.h"
#include "runtime/cuda/GpuModule.h"
#include "runtime/cuda/Memory.h"
#include "runtime/cuda/Nvrtc.h"
#include "tk/dtype.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace tk;
using namespace tk::cuda;

namespace {

constexpr char source[] = R"(
#include "tk_device.cuh"
__device__ int at() { return blockIdx.x * 256 + threadIdx.x; }
extern "C" __global__ void round_f16(const float *x, unsigned *y) { y[at()] = tk::from_float<tk::f16>(x[at()]).bits; }
extern "C" __global__ void round_bf16(const float *x, unsigned *y) { y[at()] = tk::from_float<tk::bf16>(x[at()]).bits; }
extern "C" __global__ void round_e4m3(const float *x, unsigned *y) { y[at()] = tk::from_float<tk::f8e4m3>(x[at()]).bits; }
extern "C" __global__ void round_e5m2(const float *x, unsigned *y) { y[at()] = tk::from_float<tk::f8e5m2>(x[at()]).bits; }
extern "C" __global__ void widen_e4m3(const float *, float *y) { y[at()] = tk::to_float(tk::f8e4m3{(tk::u8)at()}); }
extern "C" __global__ void widen_e5m2(const float *, float *y) { y[at()] = tk::to_float(tk::f8e5m2{(tk::u8)at()}); }
template <class T, class F> __device__ unsigned widen_pair() {
  const F x[2] = {F{(tk::u8)at()}, F{(tk::u8)(255 - at())}};
  T wide[2];
  tk::widen(wide, x);
  return wide[0].bits | wide[1].bits << 16;
}
extern "C" __global__ void e4m3_in_f16(const float *, unsigned *y) { y[at()] = widen_pair<tk::f16, tk::f8e4m3>(); }
extern "C" __global__ void e4m3_in_bf16(const float *, unsigned *y) { y[at()] = widen_pair<tk::bf16, tk::f8e4m3>(); }
extern "C" __global__ void e5m2_in_f16(const float *, unsigned *y) { y[at()] = widen_pair<tk::f16, tk::f8e5m2>(); }
extern "C" __global__ void e5m2_in_bf16(const float *, unsigned *y) { y[at()] = widen_pair<tk::bf16, tk::f8e5m2>(); }
extern "C" __global__ void e4m3_in_f32(const float *, float *y) {
  const tk::f8e4m3 x[2] = {tk::f8e4m3{(tk::u8)at()}, tk::f8e4m3{(tk::u8)(255 - at())}};
  float wide[2];
  tk::widen(wide, x);
  y[at()] = threadIdx.x & 1 ? wide[1] : wide[0];
}
extern "C" __global__ void f_exp(const float *x, float *y) { y[at()] = tk::exp(x[at()]); }
extern "C" __global__ void f_tanh(const float *x, float *y) { y[at()] = tk::tanh(x[at()]); }
extern "C" __global__ void f_erf(const float *x, float *y) { y[at()] = tk::erf(x[at()]); }
extern "C" __global__ void f_log1p(const float *x, float *y) { y[at()] = tk::log1p(tk::abs(x[at()])); }
extern "C" __global__ void f_rsqrt(const float *x, float *y) { y[at()] = tk::rsqrt(tk::abs(x[at()]) + 1); }
extern "C" __global__ void f_sin(const float *x, float *y) { y[at()] = tk::sin(x[at()]); }
extern "C" __global__ void f_pow(const float *x, float *y) { y[at()] = tk::pow(tk::abs(x[at()]), 2.5f); }
extern "C" __global__ void f_exp_diff(const float *x, float *y) { y[at()] = tk::exp_diff(x[at()], 3.0f); }
extern "C" __global__ void f_divide(const float *x, float *y) { y[at()] = tk::divide(x[at()], tk::Divisor(1021.0f)); }
extern "C" __global__ void f_quotient(const float *x, float *y) { y[at()] = tk::divide(x[at()], x[at() ^ 1]); }
extern "C" __global__ void f_inverse(const float *x, float *y) { y[at()] = tk::inverse(x[at()]); }
extern "C" __global__ void f_sqrt(const float *x, float *y) { y[at()] = tk::sqrt(x[at()]); }
extern "C" __global__ void f_divide_approx(const float *x, float *y) { y[at()] = tk::divide_approx(3.0f, x[at()]); }
extern "C" __global__ void f_divide_by_reciprocal(const float *x, float *y) { y[at()] = tk::divide_by_reciprocal(3.0f, tk::abs(x[at()]) + 1); }
extern "C" __global__ void f_erf_approx(const float *x, float *y) { y[at()] = tk::erf_approx(x[at()]); }
extern "C" __global__ void f_tanh_approx(const float *x, float *y) {
  const float in[1] = {x[at()]};
  float out[1];
  tk::tanh_approx(out, in);
  y[at()] = out[0];
}
extern "C" __global__ void f_max(const float *x, float *y) { y[at()] = tk::maximum(x[at()], 0.5f); }
)";

class PrimitiveRunner {
public:
  PrimitiveRunner() {
    Expected<DeviceContext *> found = DeviceContext::get(0);
    Expected<const Nvrtc *> nvrtc = Nvrtc::get();
    if (!found || !nvrtc) {
      WARN("not run: no GPU or no NVRTC");
      return;
    }
    NvrtcOptions options;
    options.arch = (*found)->arch();
    for (const DeviceHeader &header : deviceHeaders())
      options.headers.emplace_back(header.name.str(), header.text.str());
    module = GpuModule::load(**found, (*nvrtc)->compile(source, options).value().cubin);
    device = *found;
  }

  /// y[i] = f(x[i]) for a multiple of 256 elements of 4 bytes.
  template <typename T> std::vector<T> run(const char *symbol, const std::vector<float> &x) {
    ScopedContext scope(*device);
    DeviceBuffer in(*device, x.size() * 4), out(*device, x.size() * 4);
    in.upload(x.data(), x.size() * 4);
    out.fill(0xff);
    CUdeviceptr pointers[] = {reinterpret_cast<CUdeviceptr>(in.data()),
                              reinterpret_cast<CUdeviceptr>(out.data())};
    void *arguments[] = {&pointers[0], &pointers[1]};
    LaunchConfig config{
        {static_cast<unsigned>(x.size() / 256), 1, 1}, {256, 1, 1}, 0, nullptr, nullptr, 0};
    device->check(device->driver->launch_kernel_ex(&config, module->function(symbol, 0, false),
                                                   arguments, nullptr),
                  "launch");
    std::vector<T> y(x.size());
    out.download(y.data(), y.size() * 4);
    return y;
  }

  DeviceContext *device = nullptr;
  std::shared_ptr<GpuModule> module;
};

/// Floats of every exponent, with the special ones.
std::vector<float> everyMagnitude() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 4099) {
    const uint32_t word = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, 4);
    x.push_back(value);
  }
  for (float special : {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 448.0f, 464.0f, 57344.0f, 65504.0f})
    x.push_back(special);
  x.resize((x.size() + 255) / 256 * 256);
  return x;
}

double ulps(float got, double want) {
  if (std::isnan(want) || std::isinf(static_cast<float>(want)))
    return (std::isnan(got) && std::isnan(want)) || got == static_cast<float>(want) ? 0 : 1e9;
  const float near = static_cast<float>(std::abs(want));
  const double step = std::nextafter(near, INFINITY) - static_cast<double>(near);
  return std::abs(got - want) / step;
}

} // namespace

TEST_CASE("conversions on the GPU are those of the runtime", "[gpu]") {
  PrimitiveRunner runner;
  if (!runner.device)
    return;
  const std::vector<float> x = everyMagnitude();
  auto compare = [&](const char *symbol, auto host, uint32_t quiet) {
    const std::vector<uint32_t> y = runner.run<uint32_t>(symbol, x);
    size_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i)
      wrong += std::isnan(x[i]) ? (y[i] & quiet) < quiet : y[i] != host(x[i]);
    INFO(symbol);
    CHECK(wrong == 0);
  };
  // A NaN's payload is free; that it is one is not.
  compare("round_f16", f32_to_f16, 0x7c00);
  compare("round_bf16", f32_to_bf16, 0x7f80);
  compare("round_e4m3", f32_to_f8e4m3, 0x7f);
  compare("round_e5m2", f32_to_f8e5m2, 0x7c);
  const std::vector<float> codes(256);
  const std::vector<float> e4m3 = runner.run<float>("widen_e4m3", codes);
  const std::vector<float> e5m2 = runner.run<float>("widen_e5m2", codes);
  for (unsigned code = 0; code < 256; ++code) {
    CHECK(ulps(e4m3[code], f8e4m3_to_f32(static_cast<uint8_t>(code))) == 0);
    CHECK(ulps(e5m2[code], f8e5m2_to_f32(static_cast<uint8_t>(code))) == 0);
  }
  auto comparePairs = [&](const char *symbol, auto host, auto narrow) {
    const std::vector<uint32_t> pairs = runner.run<uint32_t>(symbol, codes);
    INFO(symbol);
    for (unsigned code = 0; code < 256; ++code)
      for (unsigned half : {0u, 1u}) {
        const float value = narrow(static_cast<uint8_t>(half ? 255 - code : code));
        const uint32_t bits = pairs[code] >> 16 * half & 0xffff, wanted = host(value);
        CHECK((std::isnan(value) ? (bits & wanted & 0x7fff) > 0x7c00 : bits == wanted));
      }
  };
  const std::vector<float> wide = runner.run<float>("e4m3_in_f32", codes);
  for (unsigned code = 0; code < 256; ++code) {
    const unsigned read = code & 1 ? 255 - code : code;
    CHECK(ulps(wide[code], f8e4m3_to_f32(static_cast<uint8_t>(read))) == 0);
  }
  comparePairs("e4m3_in_f16", f32_to_f16, f8e4m3_to_f32);
  comparePairs("e4m3_in_bf16", f32_to_bf16, f8e4m3_to_f32);
  comparePairs("e5m2_in_f16", f32_to_f16, f8e5m2_to_f32);
  comparePairs("e5m2_in_bf16", f32_to_bf16, f8e5m2_to_f32);
}

TEST_CASE("functions on the GPU are within 2 ulp", "[gpu]") {
  PrimitiveRunner runner;
  if (!runner.device)
    return;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 10);
  std::vector<float> x(1 << 20);
  for (float &value : x)
    value = normal(random);
  x[0] = INFINITY, x[1] = -INFINITY, x[2] = NAN, x[3] = 0, x[4] = -80, x[5] = 1e-30f;
  auto compare = [&](const char *symbol, auto reference) {
    const std::vector<float> y = runner.run<float>(symbol, x);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i)
      worst = std::max(worst, ulps(y[i], reference(static_cast<double>(x[i]))));
    INFO(symbol);
    CHECK(worst <= 2);
  };
  compare("f_exp", [](double v) { return std::exp(v); });
  compare("f_tanh", [](double v) { return std::tanh(v); });
  compare("f_erf", [](double v) { return std::erf(v); });
  compare("f_log1p", [](double v) { return std::log1p(std::abs(v)); });
  compare("f_rsqrt", [](double v) {
    return 1 / std::sqrt(static_cast<double>(static_cast<float>(std::abs(v)) + 1));
  });
  compare("f_sin", [](double v) { return std::sin(v); });
  compare("f_pow", [](double v) { return std::pow(std::abs(v), 2.5); });
  compare("f_exp_diff",
          [](double v) { return std::exp(static_cast<double>(static_cast<float>(v) - 3.0f)); });
  compare("f_max", [](double v) { return std::isnan(v) ? v : std::max(v, 0.5); });
  compare("f_divide", [](double v) { return v / 1021; });
  compare("f_divide_approx", [](double v) { return 3 / v; });
  compare("f_divide_by_reciprocal",
          [](double v) { return 3 / static_cast<double>(static_cast<float>(std::abs(v)) + 1); });
  const auto within = [&](const char *name, auto exact) {
    const std::vector<float> y = runner.run<float>(name, x);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]))
        CHECK(std::isnan(y[i]));
      else if (double error = std::abs(y[i] - exact(static_cast<double>(x[i]))); error > 0x1p-22)
        FAIL_CHECK(name << "(" << x[i] << ") is off by " << error);
    }
  };
  within("f_erf_approx", [](double v) { return std::erf(v); });
  within("f_tanh_approx", [](double v) { return std::tanh(v); });
}

TEST_CASE("quotients and roots on the GPU are those of IEEE 754", "[gpu]") {
  PrimitiveRunner runner;
  if (!runner.device)
    return;
  auto compare = [&](const char *symbol, const std::vector<float> &x, auto host) {
    const std::vector<float> y = runner.run<float>(symbol, x);
    size_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const float want = host(i);
      wrong += std::memcmp(&y[i], &want, 4) != 0 && !(std::isnan(y[i]) && std::isnan(want));
    }
    INFO(symbol);
    CHECK(wrong == 0);
  };
  // Every mantissa, of two neighbouring exponents, and where reciprocals are subnormal.
  std::vector<float> x;
  for (uint32_t first : {0x3f800000u, 0x7e800000u})
    for (uint32_t word = first; word < first + (1u << 24); ++word) {
      float value;
      std::memcpy(&value, &word, 4);
      x.push_back(value);
    }
  compare("f_inverse", x, [&](size_t i) { return 1.0f / x[i]; });
  compare("f_sqrt", x, [&](size_t i) { return std::sqrt(x[i]); });
  x = everyMagnitude();
  compare("f_inverse", x, [&](size_t i) { return 1.0f / x[i]; });
  compare("f_sqrt", x, [&](size_t i) { return std::sqrt(x[i]); });
  std::mt19937 random(2);
  for (float &value : x) {
    const uint32_t word = static_cast<uint32_t>(random());
    std::memcpy(&value, &word, 4);
  }
  compare("f_quotient", x, [&](size_t i) { return x[i] / x[i ^ 1]; });
}
