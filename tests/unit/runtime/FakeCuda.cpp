#include "tests/unit/runtime/FakeCuda.h"

#include "runtime/cuda/Driver.h"
#include "tests/unit/runtime/FakeOneShot.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace tk::cuda;

namespace {
tk::test::FakeCudaState state;

/// Kernels of one-shot exchanges, whose handles are their numbers from `first_one_shot` on.
constexpr uintptr_t first_one_shot = 100;
std::mutex one_shot_mutex;
std::vector<std::string> one_shot_names;

CUfunction one_shot_of(const char *name) {
  std::lock_guard lock(one_shot_mutex);
  one_shot_names.emplace_back(name);
  return reinterpret_cast<CUfunction>(first_one_shot + one_shot_names.size() - 1);
}

std::string name_of_one_shot(CUfunction function) {
  const auto number = reinterpret_cast<uintptr_t>(function);
  if (number < first_one_shot) // other launches cost no lock
    return "";
  std::lock_guard lock(one_shot_mutex);
  return one_shot_names.at(number - first_one_shot);
}
} // namespace

extern "C" {

tk::test::FakeCudaState *fake_cuda_state() { return &state; }

CUresult cuDriverGetVersion(int *version) {
  // A process that only tests the refusal of an old driver says so before it loads this library.
  const char *asked = std::getenv("FAKE_CUDA_VERSION");
  *version = asked ? std::atoi(asked) : state.driver_version;
  return 0;
}
CUresult cuCtxPushCurrent_v2(CUcontext) {
  ++state.contexts_pushed;
  ++state.contexts_current;
  return 0;
}
CUresult cuCtxPopCurrent_v2(CUcontext *) {
  --state.contexts_current;
  return 0;
}
CUresult cuInit(unsigned) {
  const char *asked = std::getenv("FAKE_CUDA_INIT");
  return asked ? std::atoi(asked) : 0;
}
CUresult cuGetErrorName(CUresult error, const char **name) {
  *name = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY"
                       : "CUDA_ERROR_FAKE";
  return 0;
}
CUresult cuGetErrorString(CUresult, const char **text) {
  *text = "as planted";
  return 0;
}
CUresult cuDeviceGetCount(int *count) {
  *count = state.device_count;
  return 0;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return 0;
}
CUresult cuDeviceGetName(char *name, int size, CUdevice) {
  std::snprintf(name, static_cast<size_t>(size), "Fake GPU");
  return 0;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 97 ? 232448 : 1;
  return 0;
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *, unsigned, int *, void **) {
  if (state.load_result)
    return state.load_result;
  if (state.capturing && state.capture_mode != 2)
    return 900;
  *module = reinterpret_cast<CUmodule>(static_cast<uintptr_t>(++state.modules_loaded));
  return 0;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
  if (std::string(name).starts_with(tk::test::one_shot_prefix)) {
    *function = one_shot_of(name);
    return 0;
  }
  if (std::strcmp(name, "gemm_0") != 0)
    return 500;
  *function = reinterpret_cast<CUfunction>(uintptr_t{1});
  return 0;
}
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  if (state.alloc_result)
    return state.alloc_result;
  if (state.capturing && state.capture_mode != 2)
    return 900;
  ++state.live_allocations;
  ++state.allocations;
  *address = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return 0;
}
CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  *pointer = state.host_result ? nullptr : std::calloc(1, bytes);
  return state.host_result;
}
CUresult cuMemFreeHost(void *pointer) {
  std::free(pointer);
  return 0;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  --state.live_allocations;
  std::free(reinterpret_cast<void *>(address));
  return 0;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream) {
  ++state.memsets;
  std::memset(reinterpret_cast<void *>(to), value, bytes);
  return 0;
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream) {
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream) {
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return 0;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
  return 0;
}
CUresult cuMemcpy2DAsync_v2(const Memcpy2D *copy, CUstream) {
  for (size_t row = 0; row < copy->height; ++row)
    std::memcpy(reinterpret_cast<void *>(copy->to_device + row * copy->to_pitch),
                reinterpret_cast<void *>(copy->from_device + row * copy->from_pitch), copy->width);
  return 0;
}
CUresult cuIpcGetMemHandle(IpcHandle *handle, CUdeviceptr address) {
  if (state.ipc_result)
    return state.ipc_result;
  std::memcpy(handle->reserved, &address, sizeof address);
  return 0;
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, IpcHandle handle, unsigned) {
  std::memcpy(address, handle.reserved, sizeof *address);
  ++std::atomic_ref(state.opened_handles);
  return 0;
}
CUresult cuIpcCloseMemHandle(CUdeviceptr) {
  --std::atomic_ref(state.opened_handles);
  return 0;
}
// Streams run at once, so what waits for a peer waits here.
CUresult cuStreamBatchMemOp_v2(CUstream, unsigned count, StreamOperation *operations, unsigned) {
  if (state.capturing)
    return 0;
  ++std::atomic_ref(state.memory_operations);
  for (unsigned i = 0; i < count; ++i) {
    std::atomic_ref<uint32_t> word(*reinterpret_cast<uint32_t *>(operations[i].address));
    const auto value = static_cast<uint32_t>(operations[i].value);
    if (operations[i].kind == StreamOperation::write)
      word.store(value);
    else
      while (word.load() != value)
        std::this_thread::yield();
  }
  return 0;
}
CUresult cuStreamIsCapturing(CUstream, int *status) {
  *status = state.capturing;
  return 0;
}
CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(*mode, state.capture_mode);
  return 0;
}
CUresult cuPointerGetAttribute(void *value, int, CUdeviceptr) {
  *static_cast<unsigned *>(value) = 2;
  return state.pointer_result;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction, int, size_t) {
  *blocks = state.active_blocks;
  return 0;
}
CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction, const LaunchConfig *config) {
  *clusters = config->num_attributes == 1 ? state.active_clusters : -1;
  return 0;
}
CUresult cuLaunchKernelEx(const LaunchConfig *config, CUfunction function, void **parameters,
                          void **) {
  if (state.launch_result)
    return state.launch_result;
  if (const std::string name = name_of_one_shot(function); !name.empty()) {
    ++std::atomic_ref(state.one_shots);
    if (state.capturing)
      return 0;
    return tk::test::run_one_shot(name, parameters[0], config->grid[0]) ? 0 : 1;
  }
  tk::test::FakeCudaState::Launch launch{};
  std::memcpy(launch.grid, config->grid, sizeof launch.grid);
  std::memcpy(launch.block, config->block, sizeof launch.block);
  launch.shared = config->shared_bytes;
  launch.num_attributes = config->num_attributes;
  for (unsigned i = 0; i < config->num_attributes; ++i) {
    if (config->attributes[i].id == attribute_programmatic_serialization)
      launch.overlapped = config->attributes[i].flag == 1;
    if (config->attributes[i].id == attribute_cluster_dimension) {
      const auto &cluster = config->attributes[i].cluster;
      launch.cluster[0] = cluster.x, launch.cluster[1] = cluster.y, launch.cluster[2] = cluster.z;
    }
  }
  for (unsigned i = 0; i < state.num_arguments; ++i)
    launch.arguments.push_back(*static_cast<uint64_t *>(parameters[i]));
  state.launches.push_back(launch);
  return 0;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, unsigned rank, void *address,
                                const uint64_t *extents, const uint64_t *strides,
                                const uint32_t *box, const uint32_t *, int, int swizzle,
                                int promotion, int fill) {
  if (state.encode_result)
    return state.encode_result;
  state.maps.push_back({type,
                        swizzle,
                        promotion,
                        fill,
                        {extents, extents + rank},
                        {strides, strides + rank - 1},
                        {box, box + rank},
                        {},
                        {},
                        {}});
  map->opaque[0] = reinterpret_cast<uint64_t>(address);
  return 0;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, int type, unsigned rank, void *address,
                                 const uint64_t *extents, const uint64_t *strides, const int *lower,
                                 const int *upper, unsigned channels, unsigned pixels,
                                 const uint32_t *steps, int, int swizzle, int promotion, int fill) {
  if (state.encode_result)
    return state.encode_result;
  state.maps.push_back({type,
                        swizzle,
                        promotion,
                        fill,
                        {extents, extents + rank},
                        {strides, strides + rank - 1},
                        {channels, pixels},
                        {lower, lower + rank - 2},
                        {upper, upper + rank - 2},
                        {steps, steps + rank}});
  map->opaque[0] = reinterpret_cast<uint64_t>(address);
  return 0;
}

} // extern "C"
