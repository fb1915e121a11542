// libcuda, loaded at run time. The build needs no CUDA header: the few types are declared here as
// the driver's stable ABI has them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "tk/error.h"

namespace tk::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;

struct alignas(64) CUtensorMap {
  uint64_t opaque[16];
};

/// CUDA_MEMCPY2D between device memory.
struct Memcpy2D {
  size_t from_x = 0, from_y = 0;
  unsigned from_kind = 2; ///< CU_MEMORYTYPE_DEVICE
  const void *from_host = nullptr;
  CUdeviceptr from_device = 0;
  void *from_array = nullptr;
  size_t from_pitch = 0;
  size_t to_x = 0, to_y = 0;
  unsigned to_kind = 2;
  void *to_host = nullptr;
  CUdeviceptr to_device = 0;
  void *to_array = nullptr;
  size_t to_pitch = 0;
  size_t width = 0, height = 0; ///< bytes of a row, and rows
};
static_assert(sizeof(Memcpy2D) == 128);

/// CUipcMemHandle.
struct IpcHandle {
  char reserved[64];
};

/// CUstreamBatchMemOpParams: a stream waits for a word of memory, or writes one.
struct StreamOperation {
  enum Kind : int { wait = 1, write = 2 }; // of 32 bits
  static constexpr unsigned until_equal = 1;
  Kind kind = wait;
  int padding = 0;
  CUdeviceptr address = 0;
  uint64_t value = 0;
  unsigned flags = 0;
  unsigned padding_behind = 0;
  CUdeviceptr alias = 0;
  uint64_t rest = 0;
};
static_assert(sizeof(StreamOperation) == 48);

struct LaunchAttribute {
  int id;
  int padding;
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int flag;
  };
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  CUstream stream;
  LaunchAttribute *attributes;
  unsigned num_attributes;
};

inline constexpr int attribute_cluster_dimension = 4;
inline constexpr int attribute_programmatic_serialization = 6;
inline constexpr int function_max_threads = 0;
inline constexpr int function_static_shared = 1;
inline constexpr int function_local_bytes = 3;
inline constexpr int function_registers = 4;
inline constexpr int function_max_dynamic_shared = 8;
inline constexpr int function_non_portable_cluster = 14;

/// The least driver version: cuLaunchKernelEx and cubins of CUDA 12.
inline constexpr int min_driver_version = 12000;
/// From which graphs have launches that begin before those before them have ended.
inline constexpr int overlap_driver_version = 12030;

/// The driver's functions.
class Driver {
public:
  /// The process's driver, loaded on first use (TK_LIBCUDA, else libcuda.so.1). The same error each
  /// time where there is none: no_driver, driver_too_old or no_device.
  static Expected<const Driver *> get();
  /// Loads a library, or the default one for "".
  static Expected<std::unique_ptr<Driver>> load(const std::string &path);

  /// The error of a failed call: "cuLaunchKernelEx failed: CUDA_ERROR_INVALID_VALUE (invalid
  /// argument)".
  Error error(CUresult result, const std::string &what, ErrorCode code) const;
  /// Throws that error unless the result is success; out of memory has its own code.
  void check(CUresult result, const char *what, ErrorCode code = ErrorCode::launch_failed) const {
    if (result != 0) [[unlikely]]
      throw error(result, what, code);
  }

  int version = 0;
#define TK_DRIVER(member, symbol, parameters) CUresult(*member) parameters = nullptr;
#define TK_DRIVER_OPTIONAL TK_DRIVER
#include "runtime/cuda/DriverSymbols.def"
};

/// Whether the error breaks the context for good, whatever was called.
bool is_sticky(CUresult result);

/// One GPU with its primary context, which the frameworks use too.
class DeviceContext {
public:
  /// The device of that number, kept for the life of the process.
  static Expected<DeviceContext *> get(int index);
  static Expected<int> count();

  int index = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  std::string name;
  int major = 0, minor = 0;
  int num_sms = 0;
  int shared_optin = 0; ///< bytes a block may ask for
  int shared_per_sm = 0;
  int l2_bytes = 0;
  int clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;
  size_t memory_bytes = 0;
  const Driver *driver = nullptr;

  /// "sm_90a": the architecture to compile for; from 9.0 on the one with the chip's own features.
  std::string arch() const;

  /// Remembers the last kernel launched, for the message of a sticky error. The record must live as
  /// long as the process or until it is replaced.
  /// The description lives as long as the process.
  void note_launch(const std::string *description) {
    m_last_launch.store(description, std::memory_order_relaxed);
  }
  /// Throws for a failed call; a sticky error becomes "context poisoned by 'attn' (attn.tk:41)".
  void check(CUresult result, const char *what, ErrorCode code = ErrorCode::launch_failed) {
    if (result != 0) [[unlikely]]
      fail(result, what, code);
  }

private:
  [[noreturn]] void fail(CUresult result, const char *what, ErrorCode code);
  std::atomic<const std::string *> m_last_launch = nullptr;
};

/// Makes a device's context current while in scope. Scopes within one of the same device call
/// nothing.
class ScopedContext {
public:
  explicit ScopedContext(DeviceContext &device) : m_device(device), m_outer(innermost) {
    if (m_outer != &m_device)
      m_device.check(m_device.driver->ctx_push_current(m_device.context), "cuCtxPushCurrent");
    innermost = &m_device;
  }
  ~ScopedContext() {
    innermost = m_outer;
    CUcontext previous;
    if (m_outer != &m_device)
      m_device.driver->ctx_pop_current(&previous);
  }
  ScopedContext(const ScopedContext &) = delete;
  ScopedContext &operator=(const ScopedContext &) = delete;

private:
  static inline thread_local const DeviceContext *innermost = nullptr;
  DeviceContext &m_device;
  const DeviceContext *m_outer;
};

} // namespace tk::cuda
