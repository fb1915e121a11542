#include "runtime/cuda/Driver.h"

#include "runtime/Environment.h"

#include <array>
#include <vector>

#include <dlfcn.h>

namespace tk::cuda {
namespace {

constexpr CUresult error_out_of_memory = 2;
constexpr CUresult error_no_device = 100;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string dl_message() {
  const char *text = dlerror();
  return text ? text : "unknown error";
}

/// Fills in the functions; returns the name of the first required one that is missing.
const char *resolve(void *library, Driver &driver) {
#define TK_DRIVER(member, symbol, parameters)                                                      \
  driver.member = reinterpret_cast<decltype(driver.member)>(dlsym(library, #symbol));              \
  if (!driver.member)                                                                              \
    return #symbol;
#define TK_DRIVER_OPTIONAL(member, symbol, parameters)                                             \
  driver.member = reinterpret_cast<decltype(driver.member)>(dlsym(library, #symbol));
#include "runtime/cuda/DriverSymbols.def"
  return nullptr;
}

enum DeviceAttribute {
  multiprocessor_count = 16,
  clock_rate = 13,
  memory_clock_rate = 36,
  memory_bus_width = 37,
  l2_cache_size = 38,
  capability_major = 75,
  capability_minor = 76,
  shared_per_multiprocessor = 81,
  shared_per_block_optin = 97,
};

void describe(const Driver &driver, DeviceContext &device) {
  char name[256] = "";
  driver.device_get_name(name, sizeof name, device.device);
  device.name = name;
  driver.device_total_mem(&device.memory_bytes, device.device);
  struct {
    int attribute;
    int *value;
  } const rows[] = {{multiprocessor_count, &device.num_sms},
                    {capability_major, &device.major},
                    {capability_minor, &device.minor},
                    {l2_cache_size, &device.l2_bytes},
                    {clock_rate, &device.clock_khz},
                    {memory_clock_rate, &device.memory_clock_khz},
                    {memory_bus_width, &device.memory_bus_bits},
                    {shared_per_multiprocessor, &device.shared_per_sm},
                    {shared_per_block_optin, &device.shared_optin}};
  for (const auto &row : rows)
    driver.device_get_attribute(row.value, row.attribute, device.device);
}

} // namespace

bool is_sticky(CUresult result) {
  switch (result) {
  case 700: // illegal address
  case 702: // launch timeout
  case 709: // context is destroyed
  case 710: // assert
  case 714: // hardware stack error
  case 715: // illegal instruction
  case 716: // misaligned address
  case 717: // invalid address space
  case 718: // invalid program counter
  case 719: // launch failed
    return true;
  default:
    return false;
  }
}

Expected<std::unique_ptr<Driver>> Driver::load(const std::string &path) {
  const char *file = path.empty() ? "libcuda.so.1" : path.c_str();
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error(ErrorCode::no_driver, "cannot load the CUDA driver: " + dl_message());
  auto driver = std::make_unique<Driver>();
  // The version is asked before the rest, so that an old driver is named as such and not by a
  // symbol.
  auto get_version = reinterpret_cast<CUresult (*)(int *)>(dlsym(library, "cuDriverGetVersion"));
  if (!get_version || get_version(&driver->version) != 0)
    return Error(ErrorCode::driver_too_old,
                 std::string("'") + file + "' is not a usable CUDA driver: no version");
  if (driver->version < min_driver_version)
    return Error(ErrorCode::driver_too_old, "expected a CUDA driver for CUDA " +
                                                version_text(min_driver_version) +
                                                " or later, got " + version_text(driver->version));
  if (const char *missing = resolve(library, *driver))
    return Error(ErrorCode::driver_too_old,
                 std::string("the CUDA driver '") + file + "' lacks " + missing);
  CUresult result = driver->init(0);
  if (result == error_no_device)
    return Error(ErrorCode::no_device, "there is no CUDA device");
  if (result != 0)
    return driver->error(result, "cuInit", ErrorCode::no_device);
  return driver; // the library stays loaded: unloading a driver is not safe
}

Expected<const Driver *> Driver::get() {
  static const Expected<std::unique_ptr<Driver>> loaded =
      load(detail::environment(detail::EnvVar::libcuda).value_or(""));
  if (!loaded)
    return loaded.error();
  return loaded->get();
}

Error Driver::error(CUresult result, const std::string &what, ErrorCode code) const {
  const char *error_name = nullptr, *text = nullptr;
  get_error_name(result, &error_name);
  get_error_string(result, &text);
  std::string message = what + " failed: " +
                        (error_name ? std::string(error_name) : "error " + std::to_string(result));
  if (text)
    message += std::string(" (") + text + ")";
  if (result == error_out_of_memory)
    code = ErrorCode::out_of_memory;
  return Error(is_sticky(result) ? ErrorCode::context_poisoned : code, std::move(message));
}

Expected<int> DeviceContext::count() {
  Expected<const Driver *> driver = Driver::get();
  if (!driver)
    return std::move(driver.error());
  int count = 0;
  if (CUresult result = (*driver)->device_get_count(&count))
    return (*driver)->error(result, "cuDeviceGetCount", ErrorCode::no_device);
  return count;
}

Expected<DeviceContext *> DeviceContext::get(int index) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<DeviceContext>> devices;
  Expected<int> available = count();
  if (!available)
    return std::move(available.error());
  if (index < 0 || index >= *available)
    return Error(ErrorCode::no_device, "there is no cuda:" + std::to_string(index) + ", only " +
                                           std::to_string(*available) + " device(s)");
  std::lock_guard lock(mutex);
  devices.resize(static_cast<size_t>(*available));
  std::unique_ptr<DeviceContext> &slot = devices[static_cast<size_t>(index)];
  if (slot)
    return slot.get();
  const Driver *driver = *Driver::get();
  auto device = std::make_unique<DeviceContext>();
  device->index = index;
  device->driver = driver;
  if (CUresult result = driver->device_get(&device->device, index))
    return driver->error(result, "cuDeviceGet", ErrorCode::no_device);
  describe(*driver, *device);
  if (CUresult result = driver->primary_ctx_retain(&device->context, device->device))
    return driver->error(result, "cuDevicePrimaryCtxRetain", ErrorCode::no_device);
  slot = std::move(device);
  return slot.get();
}

std::string DeviceContext::arch() const {
  return "sm_" + std::to_string(major) + std::to_string(minor) + (major >= 9 ? "a" : "");
}

void DeviceContext::fail(CUresult result, const char *what, ErrorCode code) {
  Error error = driver->error(result, what, code);
  if (!is_sticky(result))
    throw error;
  // Launches are asynchronous: the culprit is the last kernel launched or one queued before it.
  const std::string *last = m_last_launch;
  throw Error(ErrorCode::context_poisoned,
              (last ? "context poisoned by " + *last + " or work queued before it"
                    : std::string("context poisoned by another program's kernel")) +
                  ": " + error.message());
}

} // namespace tk::cuda
