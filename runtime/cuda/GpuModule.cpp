#include "runtime/cuda/GpuModule.h"

#include "runtime/Environment.h"
#include "runtime/Sha256.h"
#include "runtime/cuda/Memory.h"

#include <map>
#include <mutex>

namespace tk::cuda {
namespace {

constexpr int option_error_log = 5;
constexpr int option_error_log_bytes = 6;

CUmodule load_code(DeviceContext &device, const std::string &cubin) {
  char log[4096] = "";
  int options[] = {option_error_log, option_error_log_bytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  CUmodule module = nullptr;
  CUresult result = device.driver->module_load_data_ex(&module, cubin.data(), 2, options, values);
  std::string what = "loading code for " + device.name + " (" + device.arch() + ")";
  if (log[0])
    what += " [" + std::string(log) + "]";
  device.check(result, what.c_str(), ErrorCode::module_load);
  return module;
}

} // namespace

std::shared_ptr<GpuModule> GpuModule::load(DeviceContext &device, const std::string &cubin) {
  static std::mutex mutex;
  static std::map<std::pair<int, detail::Digest>, std::weak_ptr<GpuModule>> loaded;
  std::pair key(device.index, detail::sha256(cubin));
  std::lock_guard lock(mutex);
  std::weak_ptr<GpuModule> &slot = loaded[key];
  if (auto module = slot.lock())
    return module;
  ScopedContext scope(device);
  RelaxedCapture relaxed(device);
  std::shared_ptr<GpuModule> module(new GpuModule(device, load_code(device, cubin)));
  slot = module;
  detail::log_message("loaded " + std::to_string(cubin.size()) +
                      " bytes of code on cuda:" + std::to_string(device.index));
  return module;
}

GpuModule::~GpuModule() {
  m_device.driver->ctx_push_current(m_device.context);
  m_device.driver->module_unload(m_module);
  CUcontext previous;
  m_device.driver->ctx_pop_current(&previous);
}

CUfunction GpuModule::function(const std::string &symbol, int64_t shared_bytes,
                               bool cluster) const {
  if (shared_bytes > m_device.shared_optin)
    throw Error(ErrorCode::launch_failed, "'" + symbol + "' needs " + std::to_string(shared_bytes) +
                                              " B of shared memory, " + m_device.arch() + " has " +
                                              std::to_string(m_device.shared_optin) + " B");
  ScopedContext scope(m_device);
  CUfunction function = nullptr;
  m_device.check(m_device.driver->module_get_function(&function, m_module, symbol.c_str()),
                 ("cuModuleGetFunction '" + symbol + "'").c_str(), ErrorCode::module_load);
  if (shared_bytes > 0)
    m_device.check(m_device.driver->func_set_attribute(function, function_max_dynamic_shared,
                                                       static_cast<int>(shared_bytes)),
                   "cuFuncSetAttribute");
  if (cluster)
    m_device.driver->func_set_attribute(function, function_non_portable_cluster, 1);
  return function;
}

unsigned GpuModule::resident_blocks(CUfunction function, LaunchConfig config,
                                    LaunchAttribute cluster, bool has_cluster) const {
  ScopedContext scope(m_device);
  int count = 0;
  if (!has_cluster) {
    m_device.check(m_device.driver->occupancy_max_active_blocks(
                       &count, function, static_cast<int>(config.block[0]), config.shared_bytes),
                   "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    return static_cast<unsigned>(std::max(count * m_device.num_sms, 1));
  }
  config.attributes = &cluster;
  config.num_attributes = 1;
  m_device.check(m_device.driver->occupancy_max_active_clusters(&count, function, &config),
                 "cuOccupancyMaxActiveClusters");
  return static_cast<unsigned>(std::max(count, 1)) * cluster.cluster.x;
}

Resources GpuModule::resources(const std::string &symbol, int64_t shared_bytes,
                               unsigned block) const {
  CUfunction code = function(symbol, shared_bytes, false);
  ScopedContext scope(m_device);
  const Driver &driver = *m_device.driver;
  Resources result;
  result.symbol = symbol;
  driver.func_get_attribute(&result.registers, function_registers, code);
  driver.func_get_attribute(&result.shared_bytes, function_static_shared, code);
  driver.func_get_attribute(&result.spill_bytes, function_local_bytes, code);
  driver.func_get_attribute(&result.max_threads, function_max_threads, code);
  result.shared_bytes += static_cast<int>(shared_bytes);
  driver.occupancy_max_active_blocks(&result.blocks_per_sm, code, static_cast<int>(block),
                                     static_cast<size_t>(shared_bytes));
  return result;
}

} // namespace tk::cuda
