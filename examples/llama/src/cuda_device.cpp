#include "cuda_device.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include <dlfcn.h>

#include <tk/error.h>

namespace llama {

namespace {

/// The driver's functions that the program calls, with the signatures of cuda.h. Handles are
/// pointers there, device addresses 64-bit integers.
struct Driver {
  using Address = uint64_t;
  int (*cuInit)(unsigned);
  int (*cuGetErrorString)(int, const char **);
  int (*cuDeviceGet)(int *, int);
  int (*cuDevicePrimaryCtxRetain)(void **, int);
  int (*cuCtxSetCurrent)(void *);
  int (*cuMemAlloc)(Address *, size_t);
  int (*cuMemFree)(Address);
  int (*cuMemsetD8Async)(Address, unsigned char, size_t, void *);
  int (*cuMemcpyHtoDAsync)(Address, const void *, size_t, void *);
  int (*cuMemcpyDtoHAsync)(void *, Address, size_t, void *);
  int (*cuStreamCreate)(void **, unsigned);
  int (*cuStreamDestroy)(void *);
  int (*cuStreamSynchronize)(void *);
  int (*cuStreamBeginCapture)(void *, int);
  int (*cuStreamEndCapture)(void *, void **);
  int (*cuGraphInstantiate)(void **, void *, unsigned long long);
  int (*cuGraphLaunch)(void *, void *);
  int (*cuGraphDestroy)(void *);
  int (*cuGraphExecDestroy)(void *);

  Driver() {
    const char *path = std::getenv("TK_LIBCUDA");
    void *library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library)
      throw tk::Error(tk::ErrorCode::no_driver, dlerror());
    auto load = [&](auto &function, const char *symbol) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      if (!function)
        throw tk::Error(tk::ErrorCode::driver_too_old,
                        std::string("the CUDA driver has no function ") + symbol);
    };
    load(cuInit, "cuInit");
    load(cuGetErrorString, "cuGetErrorString");
    load(cuDeviceGet, "cuDeviceGet");
    load(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    load(cuCtxSetCurrent, "cuCtxSetCurrent");
    load(cuMemAlloc, "cuMemAlloc_v2");
    load(cuMemFree, "cuMemFree_v2");
    load(cuMemsetD8Async, "cuMemsetD8Async");
    load(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
    load(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
    load(cuStreamCreate, "cuStreamCreate");
    load(cuStreamDestroy, "cuStreamDestroy_v2");
    load(cuStreamSynchronize, "cuStreamSynchronize");
    load(cuStreamBeginCapture, "cuStreamBeginCapture_v2");
    load(cuStreamEndCapture, "cuStreamEndCapture");
    load(cuGraphInstantiate, "cuGraphInstantiateWithFlags");
    load(cuGraphLaunch, "cuGraphLaunch");
    load(cuGraphDestroy, "cuGraphDestroy");
    load(cuGraphExecDestroy, "cuGraphExecDestroy");
  }

  void check(int status, const char *what,
             tk::ErrorCode code = tk::ErrorCode::launch_failed) const {
    if (status == 0)
      return;
    constexpr int out_of_memory = 2;
    const char *text = nullptr;
    cuGetErrorString(status, &text);
    throw tk::Error(status == out_of_memory ? tk::ErrorCode::out_of_memory : code,
                    std::string(what) + ": " + (text ? text : "unknown error"));
  }
};

class CudaGraph : public Graph {
public:
  CudaGraph(const Driver &driver, void *executable, void *stream)
      : m_driver(driver), m_executable(executable), m_stream(stream) {}
  ~CudaGraph() override { m_driver.cuGraphExecDestroy(m_executable); }
  void launch() override {
    m_driver.check(m_driver.cuGraphLaunch(m_executable, m_stream), "cuGraphLaunch");
  }

private:
  const Driver &m_driver;
  void *m_executable, *m_stream;
};

class CudaDevice : public Device {
public:
  CudaDevice() {
    constexpr tk::ErrorCode code = tk::ErrorCode::no_device;
    constexpr unsigned non_blocking = 1;
    int device = 0;
    void *context = nullptr;
    m_driver.check(m_driver.cuInit(0), "cuInit", code);
    m_driver.check(m_driver.cuDeviceGet(&device, 0), "cuDeviceGet", code);
    m_driver.check(m_driver.cuDevicePrimaryCtxRetain(&context, device), "the context", code);
    m_driver.check(m_driver.cuCtxSetCurrent(context), "cuCtxSetCurrent", code);
    m_driver.check(m_driver.cuStreamCreate(&m_stream, non_blocking), "cuStreamCreate", code);
  }
  ~CudaDevice() override { m_driver.cuStreamDestroy(m_stream); }

  tk::Device place() const override { return tk::Device::cuda(0); }
  tk::Stream stream() const override { return m_stream; }

  /// Zeroed, as host memory is, so that two runs are alike.
  void *allocate(size_t bytes) override {
    Driver::Address address = 0;
    m_driver.check(m_driver.cuMemAlloc(&address, bytes ? bytes : 1), "cuMemAlloc");
    m_driver.check(m_driver.cuMemsetD8Async(address, 0, bytes, m_stream), "cuMemsetD8Async");
    return reinterpret_cast<void *>(address);
  }
  void release(void *data) noexcept override {
    m_driver.cuMemFree(reinterpret_cast<Driver::Address>(data));
  }
  /// The driver stages memory that is not pinned before the call returns.
  void upload(void *device, const void *host, size_t bytes) override {
    auto address = reinterpret_cast<Driver::Address>(device);
    m_driver.check(m_driver.cuMemcpyHtoDAsync(address, host, bytes, m_stream), "cuMemcpyHtoDAsync");
  }
  void download(void *host, const void *device, size_t bytes) override {
    auto address = reinterpret_cast<Driver::Address>(device);
    m_driver.check(m_driver.cuMemcpyDtoHAsync(host, address, bytes, m_stream), "cuMemcpyDtoHAsync");
    synchronize();
  }
  void synchronize() override {
    m_driver.check(m_driver.cuStreamSynchronize(m_stream), "cuStreamSynchronize");
  }

  bool has_graphs() const override { return true; }
  void begin_capture() override {
    constexpr int thread_local_mode = 1;
    m_driver.check(m_driver.cuStreamBeginCapture(m_stream, thread_local_mode),
                   "begin of a capture");
  }
  std::unique_ptr<Graph> end_capture() override {
    void *graph = nullptr, *executable = nullptr;
    m_driver.check(m_driver.cuStreamEndCapture(m_stream, &graph), "end of a capture");
    int status = m_driver.cuGraphInstantiate(&executable, graph, 0);
    m_driver.cuGraphDestroy(graph);
    m_driver.check(status, "cuGraphInstantiateWithFlags");
    return std::make_unique<CudaGraph>(m_driver, executable, m_stream);
  }

private:
  Driver m_driver;
  void *m_stream = nullptr;
};

} // namespace

std::unique_ptr<Device> make_cuda_device() { return std::make_unique<CudaDevice>(); }

} // namespace llama
