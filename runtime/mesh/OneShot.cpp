#include "runtime/mesh/OneShot.h"

#include <atomic>
#include <mutex>

#include "runtime/Environment.h"
#include "runtime/cuda/Memory.h"
#include "runtime/cuda/NvrtcIdentity.h"

namespace tk::detail {
namespace {

constexpr const char *header_name = "runtime/mesh/OneShotCall.h";
constexpr const char *header_text =
#include "runtime/mesh/OneShotCall.inc"
    ;
constexpr const char *kernel_text =
#include "runtime/mesh/one_shot.inc"
    ;

/// How the kernel combines elements of a type; null: it does not.
const char *type_in_kernel(DType dtype) {
  switch (dtype) {
  case DType::f64:
    return "Plain<double>";
  case DType::f32:
    return "Plain<float>";
  case DType::f16:
    return "Half";
  case DType::bf16:
    return "Brain";
  case DType::i64:
    return "Plain<long long>";
  case DType::i32:
    return "Plain<int>";
  case DType::i8:
    return "Small<signed char>";
  case DType::u8:
  case DType::boolean:
    return "Small<unsigned char>";
  default:
    return nullptr;
  }
}

const char *combine_in_kernel(MeshCombine combine) {
  switch (combine) {
  case MeshCombine::prod:
    return "prod";
  case MeshCombine::max:
  case MeshCombine::any: // of 0 and 1
    return "max";
  case MeshCombine::min:
  case MeshCombine::all:
    return "min";
  case MeshCombine::sum:
    break;
  }
  return "sum";
}

std::string symbol_of(OneShotKind kind) {
  return "tk_one_shot_" + std::string(name(kind.first)) + "_" + combine_in_kernel(kind.second);
}

std::string text_of(OneShotKind kind) {
  return std::string(kernel_text) +
         "extern \"C\" __global__ void __launch_bounds__(tk::one_shot::block_threads)\n" +
         symbol_of(kind) +
         "(const __grid_constant__ tk::one_shot::Call call) {\n"
         "  using namespace tk::one_shot;\n"
         "  exchange<" +
         type_in_kernel(kind.first) + ", Combine::" + combine_in_kernel(kind.second) +
         ">(call);\n}\n";
}

/// The machine code for an architecture, from the cache or from NVRTC.
std::string code_of(OneShotKind kind, const std::string &arch) {
  cuda::NvrtcOptions options;
  options.arch = arch;
  options.file_name = "one_shot.cu";
  options.headers = {{header_name, header_text}};
  options.line_info = options.resource_usage = false;
  const std::string text = text_of(kind);
  const Cache cache = Cache::from_environment();
  std::optional<Digest> key;
  if (cache.enabled()) {
    CacheKey parts;
    parts.add("entry", "one shot");
    parts.add("nvrtc", cuda::nvrtc_identity(cache).value().key());
    for (const std::string &flag : cuda::Nvrtc::flags(options))
      parts.add("flag", flag);
    parts.add("header", header_text).add("text", text);
    key = parts.digest();
    if (std::optional<CacheEntry> entry = cache.load(*key); entry && !(*entry)["cubin"].empty())
      return (*entry)["cubin"];
  }
  std::string cubin = cuda::Nvrtc::get().value()->compile(text, options).value().cubin;
  if (key)
    cache.store(*key, {{"cubin", cubin}});
  return cubin;
}

} // namespace

OneShot::~OneShot() {
  if (!m_lost)
    return;
  m_device.driver->ctx_push_current(m_device.context);
  m_device.driver->mem_free_host(m_lost);
  cuda::CUcontext previous;
  m_device.driver->ctx_pop_current(&previous);
}

bool OneShot::combines(DType dtype) { return type_in_kernel(dtype) != nullptr; }

std::string OneShot::prepare() {
  if (!m_device.driver->mem_host_alloc || !m_device.driver->mem_free_host)
    return "the driver has no cuMemHostAlloc";
  try {
    cuda::ScopedContext scope(m_device);
    constexpr unsigned portable = 1, device_map = 2;
    void *word = nullptr;
    m_device.check(m_device.driver->mem_host_alloc(&word, sizeof(uint32_t), portable | device_map),
                   "cuMemHostAlloc", ErrorCode::out_of_memory);
    m_lost = static_cast<uint32_t *>(word);
    forget_lost_rank();
    function_for({DType::f32, MeshCombine::sum});
  } catch (const Error &error) {
    return error.message();
  }
  return {};
}

int64_t OneShot::lost_rank() const {
  return m_lost ? static_cast<int64_t>(std::atomic_ref(*m_lost).load()) - 1 : -1;
}

void OneShot::forget_lost_rank() {
  if (m_lost)
    std::atomic_ref(*m_lost).store(0);
}

cuda::CUfunction OneShot::function_for(OneShotKind kind) {
  cuda::CUfunction &function = m_functions[kind];
  if (function)
    return function;
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::string> codes; // by symbol and chip
  std::string code;
  {
    std::lock_guard lock(mutex);
    std::string &known = codes[{symbol_of(kind), m_device.arch()}];
    if (known.empty())
      known = code_of(kind, m_device.arch());
    code = known;
  }
  m_modules.push_back(cuda::GpuModule::load(m_device, code));
  function = m_modules.back()->function(symbol_of(kind), 0, false);
  return function;
}

void OneShot::launch(one_shot::Call call, OneShotKind kind, unsigned blocks, void *stream) {
  cuda::ScopedContext scope(m_device);
  call.failure = reinterpret_cast<one_shot::Address>(m_lost);
  cuda::LaunchConfig config = {};
  config.grid[0] = blocks, config.grid[1] = config.grid[2] = 1;
  config.block[0] = one_shot::block_threads, config.block[1] = config.block[2] = 1;
  config.stream = static_cast<cuda::CUstream>(stream);
  void *parameters[] = {&call};
  m_device.check(
      m_device.driver->launch_kernel_ex(&config, function_for(kind), parameters, nullptr),
      "cuLaunchKernelEx");
}

} // namespace tk::detail
