//===- Session.cpp - a kernel with its arguments on a device --------------===//
#include "compiler/tkc/Session.h"

#include "compiler/arch/Architecture.h"
#include "compiler/tkc/RowGaps.h"

#include "runtime/Kernel.h"
#include "runtime/LaunchObserver.h"
#include "runtime/cuda/GpuModule.h"
#include "runtime/cuda/Memory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Host.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace tk::tkc {

/// The tensors of a run. On a GPU: one buffer a tensor; on the CPU: the last run's memory.
struct Session::Tensors {
  std::vector<cuda::DeviceBuffer> buffers;
  std::vector<std::vector<std::byte>> memory;
  std::vector<void *> pointers;
};

struct Session::State {
  std::shared_ptr<CompiledSource> source;
  std::shared_ptr<detail::KernelImpl> kernel;
  std::shared_ptr<const detail::BoundImpl> bound;
  std::string target;
  cuda::DeviceContext *device = nullptr;
  std::unique_ptr<cuda::OwnedStream> stream;
  std::shared_ptr<Tensors> tensors = std::make_shared<Tensors>();

  void *streamHandle() const { return stream ? stream->handle() : nullptr; }
};

Session::Session() : state(std::make_unique<State>()) {}
Session::~Session() = default;

const Signature &Session::signature() const { return state->kernel->signature(); }
const std::string &Session::target() const { return state->target; }
size_t Session::numLaunches() const {
  return state->bound->variant->executable.plan.launches.size();
}

const Facts &Session::facts() const { return state->bound->variant->facts; }

std::string Session::deviceName() const {
  return state->device ? state->device->name : llvm::sys::getHostCPUName().str();
}

std::string Session::driverName() const {
  if (!state->device)
    return "";
  const int version = state->device->driver->version; // 13000 is 13.0
  return "driver " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Whether every element of a tensor is overwritten by the kernel.
static bool isResult(const Signature &signature, unsigned tensor) {
  return tensor >= signature.num_tensors() - signature.results.size();
}

Expected<std::unique_ptr<Session>> Session::create(std::shared_ptr<CompiledSource> source,
                                                   size_t kernel, const std::string &target,
                                                   const RunArguments &arguments,
                                                   const Session *beside) {
  return detail::capture([&] {
    std::unique_ptr<Session> session(new Session());
    State &state = *session->state;
    state.source = source;
    state.target = resolve_target(target).value();
    if (state.target != "cpu") // a wrong name is told as such, also where there is no GPU
      (void)findArchitecture(detail::architecture_of(state.target)).value();
    CompileOptions options;
    options.target = state.target;
    options.plan_dims = source->getPlanDims();
    state.kernel = std::make_shared<detail::KernelImpl>(source, kernel, state.target, options);
    bool gpu = state.kernel->on_gpu();
    if (gpu) {
      state.device = cuda::DeviceContext::get(0).value();
      state.stream = std::make_unique<cuda::OwnedStream>(*state.device);
    }
    // On the CPU a run moves the memory, and another thread may bind meanwhile.
    const bool isShared = beside && gpu;
    if (isShared)
      state.tensors = beside->state->tensors;
    Tensors &tensors = *state.tensors;
    detail::Arguments checked;
    for (auto [t, tensor] : llvm::enumerate(arguments.tensors)) {
      const auto &layout = arguments.layouts[t];
      if (!isShared) {
        tensors.memory.push_back(spreadRows(tensor, layout));
        if (gpu)
          tensors.buffers.emplace_back(*state.device, tensors.memory.back().size());
        tensors.pointers.push_back(gpu ? tensors.buffers.back().data()
                                       : tensors.memory.back().data());
      }
      checked.tensors.emplace_back(TensorView(tensors.pointers[t], tensor.dtype, tensor.shape,
                                              stridesOf(tensor.shape, layout),
                                              gpu ? Device::cuda(0) : Device::cpu()));
    }
    for (const Scalar &scalar : arguments.scalars)
      checked.scalars.push_back(scalar);
    state.bound = state.kernel->bind(checked, nullptr);
    return session;
  });
}

Expected<std::vector<HostTensor>> Session::run(const RunArguments &arguments, uint8_t fill) {
  return detail::capture([&] {
    const Signature &signature = this->signature();
    std::vector<HostTensor> tensors = arguments.tensors;
    for (unsigned t = 0; t < tensors.size(); ++t)
      if (isResult(signature, t) && !tensors[t].bytes.empty())
        std::memset(tensors[t].bytes.data(), fill, tensors[t].bytes.size());
    for (unsigned t = 0; t < tensors.size(); ++t) {
      std::vector<std::byte> &memory = state->tensors->memory[t];
      memory = spreadRows(tensors[t], arguments.layouts[t]);
      if (state->device)
        state->tensors->buffers[t].upload(memory.data(), memory.size(), 0, state->streamHandle());
      else
        state->tensors->pointers[t] = memory.data();
    }
    state->bound->launch(Stream(state->streamHandle()), state->tensors->pointers);
    if (state->device) {
      state->stream->synchronize();
      for (unsigned t = 0; t < tensors.size(); ++t)
        state->tensors->buffers[t].download(state->tensors->memory[t].data(),
                                            state->tensors->memory[t].size());
    }
    for (unsigned t = 0; t < tensors.size(); ++t)
      if (!gatherRows(state->tensors->memory[t], arguments.layouts[t], tensors[t]))
        throw Error(ErrorCode::internal, "kernel '" + signature.name +
                                             "' wrote between the elements of '" +
                                             signature.tensor(t).name + "'");
    return tensors;
  });
}

Expected<double> Session::time(double seconds) {
  return detail::capture([&] {
    using Clock = std::chrono::steady_clock;
    const std::chrono::duration<double> least(seconds);
    std::vector<double> times;
    auto launch = [&] {
      state->bound->launch(Stream(state->streamHandle()), state->tensors->pointers);
    };
    for (int i = 0; i < 3; ++i)
      launch();
    Clock::time_point begin = Clock::now();
    if (!state->device) {
      while (times.size() < 5 || Clock::now() - begin < least) {
        Clock::time_point start = Clock::now();
        launch();
        times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
      }
    } else {
      cuda::Event first(*state->device), last(*state->device);
      state->stream->synchronize();
      while (times.size() < 20 || (times.size() < 200 && Clock::now() - begin < least)) {
        first.record(state->streamHandle());
        launch();
        last.record(state->streamHandle());
        last.synchronize();
        times.push_back(last.since(first));
      }
    }
    std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
  });
}

int64_t Session::spilledBytes() const {
  if (!state->device)
    return 0;
  const detail::Executable &executable = state->bound->variant->executable;
  auto module = cuda::GpuModule::load(*state->device, executable.cubin);
  int bytes = 0;
  for (const Launch &launch : executable.plan.launches)
    bytes = std::max(bytes, module->resources(launch.symbol, 0, 1).spill_bytes);
  return bytes;
}

namespace {

/// Times the launches of calls, on a device by events in the stream, else by the clock.
class LaunchTimer final : public detail::LaunchObserver {
public:
  explicit LaunchTimer(cuda::DeviceContext *device) : device(device) {
    detail::launch_observer() = this;
  }
  ~LaunchTimer() override { detail::launch_observer() = nullptr; }

  void before(const std::string &symbol, void *stream) override {
    if (number == launches.size())
      launches.push_back({symbol, {}, {}, {}});
    if (device)
      mark(launches[number].first, stream);
    else
      start = std::chrono::steady_clock::now();
  }

  void after(const std::string & /*symbol*/, void *stream) override {
    Timed &launch = launches[number++];
    if (device)
      mark(launch.last, stream);
    else
      launch.times.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
              .count());
  }

  /// After a call, whose stream is done.
  void endCall() {
    number = 0;
    for (Timed &launch : launches)
      if (device)
        launch.times.push_back(launch.last->since(*launch.first));
  }

  std::vector<LaunchTime> medians() {
    std::vector<LaunchTime> result;
    for (Timed &launch : launches) {
      auto middle = launch.times.begin() + static_cast<long>(launch.times.size() / 2);
      std::nth_element(launch.times.begin(), middle, launch.times.end());
      result.push_back({launch.symbol, *middle});
    }
    return result;
  }

private:
  struct Timed {
    std::string symbol;
    std::unique_ptr<cuda::Event> first, last;
    std::vector<double> times;
  };

  void mark(std::unique_ptr<cuda::Event> &event, void *stream) {
    if (!event)
      event = std::make_unique<cuda::Event>(*device);
    event->record(stream);
  }

  cuda::DeviceContext *device;
  std::vector<Timed> launches;
  std::chrono::steady_clock::time_point start;
  size_t number = 0;
};

} // namespace

Expected<std::vector<LaunchTime>> Session::timeOfLaunches() {
  return detail::capture([&] {
    auto call = [&] {
      state->bound->launch(Stream(state->streamHandle()), state->tensors->pointers);
    };
    // The emulator's times say nothing of a device, and its calls take long.
    const int numCalls = state->device ? 53 : 1, numWarmUp = state->device ? 3 : 0;
    for (int i = 0; i < numWarmUp; ++i)
      call();
    LaunchTimer timer(state->device);
    for (int i = numWarmUp; i < numCalls; ++i) {
      call();
      if (state->stream)
        state->stream->synchronize();
      timer.endCall();
    }
    return timer.medians();
  });
}

double Session::copyRate(const std::string &target) {
  if (!llvm::StringRef(target).starts_with("sm_"))
    return 0;
  constexpr size_t bytes = size_t{1} << 28;
  Expected<double> rate = detail::capture([&] {
    cuda::DeviceContext &device = *cuda::DeviceContext::get(0).value();
    cuda::OwnedStream stream(device);
    cuda::DeviceBuffer from(device, bytes), to(device, bytes);
    cuda::Event first(device), last(device);
    std::vector<double> times;
    for (int i = 0; i < 12; ++i) {
      first.record(stream.handle());
      device.check(device.driver->memcpy_dtod_async(to.address(), from.address(), bytes,
                                                    static_cast<cuda::CUstream>(stream.handle())),
                   "cuMemcpyDtoDAsync");
      last.record(stream.handle());
      last.synchronize();
      times.push_back(last.since(first));
    }
    std::nth_element(times.begin(), times.begin() + 6, times.end());
    return 2.0 * static_cast<double>(bytes) / (times[6] * 1e-3);
  });
  return rate ? *rate : 0;
}

std::string Session::ceilings(double bytesPerSecond) const {
  double rate = copyRate(state->target);
  if (rate == 0)
    return "";
  char text[80];
  std::snprintf(text, sizeof text, " (%.0f %% of this machine's copy, %.0f GB/s)",
                100 * bytesPerSecond / rate, rate * 1e-9);
  return text;
}

} // namespace tk::tkc
