//===- CompileEmu.cpp - emitted CUDA, run on the CPU and checked ----------===//
#include "compiler/codegen/emu/CompileEmu.h"

#include "compiler/codegen/cuda/Comments.h"
#include "compiler/codegen/emu/Cluster.h"
#include "compiler/codegen/emu/TextBatch.h"
#include "runtime/Environment.h"
#include "runtime/Interrupt.h"
#include "runtime/LaunchObserver.h"
#include "runtime/SharedCode.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <tuple>
#include <utility>

namespace tk {
namespace emu {
namespace {

/// A tensor map as a kernel gets it; see TensorBox::mark.
struct alignas(64) MapParameter {
  uint64_t words[16];
};

/// One kernel of the loaded text.
struct Entry {
  Cluster::Kernel call = nullptr;
  std::vector<Parameter> parameters;
  unsigned blocks = 1; ///< that share a multiprocessor's registers, as its launch bounds say
};

class EmulatedKernels final : public detail::Emulator {
public:
  /// The kernels of a plan whose text is in the batch.
  EmulatedKernels(std::shared_ptr<TextBatch> batch, const LaunchPlan &plan, EmuOptions options)
      : batch(std::move(batch)), options(std::move(options)) {
    for (const Launch &launch : plan.launches)
      symbols.push_back(launch.symbol);
  }
  /// Finds the kernels; the first of a batch to ask has it compiled.
  Status load() const;
  void run(const detail::EmulatedPlan &plan) const override;

private:
  void launch(const detail::EmulatedPlan &plan, size_t index, Timing timing, Order &order,
              Sites &sites, GlobalMemory &memory, const std::vector<TensorBox> &boxes) const;
  Timing timing() const;

  std::shared_ptr<TextBatch> batch;
  std::vector<std::string> symbols; ///< one a launch
  EmuOptions options;
  mutable std::mutex loading;
  mutable std::shared_ptr<HostCode> code; ///< null until loaded
  mutable std::vector<Entry> entries;     ///< one a launch
  mutable std::atomic<unsigned> runs = 0; ///< for which no option chose a timing
};

Timing EmulatedKernels::timing() const {
  if (options.timing)
    return *options.timing;
  auto text = detail::environment(detail::EnvVar::emu_mode);
  const unsigned run = runs++;
  if (!text)
    return Timing::ofRun(run);
  auto timing = Timing::parse(*text);
  if (!timing)
    throw Error(ErrorCode::invalid_argument,
                "expected TK_EMU_MODE to be late, early or random:SEED, got '" + *text + "'");
  return timing->inRun(run);
}

[[noreturn]] void report(const Launch &launch, const std::string &what, const Place &place) {
  std::string text = "kernel '" + launch.symbol + "'";
  if (launch.span.valid())
    text += " (" + launch.span.file + ":" + std::to_string(launch.span.line) + ")";
  std::vector<SourceSpan> spans;
  if (place.line > 0) {
    const auto line = static_cast<uint32_t>(place.line);
    spans.push_back({place.file, line, 0, line, 0});
  }
  throw Error(ErrorCode::internal, text + what, std::move(spans));
}

std::string blockText(int64_t x, int64_t y, int64_t z) {
  return ", block (" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) +
         "): ";
}

/// How many bytes the driver would copy of a number; 0 for what is an address or a map.
int bytesOf(const Arg &arg, const Signature &signature) {
  switch (arg.kind) {
  case ArgKind::integer:
  case ArgKind::stride:
    return static_cast<int>(size_of(arg.dtype));
  case ArgKind::scalar:
    return static_cast<int>(size_of(signature.scalar(arg.index).dtype));
  default:
    return 0;
  }
}

/// Places for blocks that go through what there is to do: few, so that they go round.
static constexpr int residentClusters = 3;

void EmulatedKernels::launch(const detail::EmulatedPlan &plan, size_t index, Timing timing,
                             Order &order, Sites &sites, GlobalMemory &memory,
                             const std::vector<TensorBox> &boxes) const {
  const detail::EmulatedLaunch &ready = plan.launches[index];
  const Launch &launch = *ready.launch;
  const Entry &entry = entries[index];
  const unsigned count = launch.block[0] * launch.block[1] * launch.block[2];
  if (entry.parameters.size() != launch.args.size())
    report(launch,
           " takes " + std::to_string(entry.parameters.size()) + " arguments, its launch gives " +
               std::to_string(launch.args.size()),
           {"", 0});
  if (count == 0 || count > 1024 || launch.block[1] != 1 || launch.block[2] != 1)
    report(launch, ": expected a block of 1 to 1024 threads in one dimension", {"", 0});

  for (int axis = 0; axis < 3; ++axis)
    if (launch.cluster[axis] == 0 || ready.grid[axis] % launch.cluster[axis] != 0)
      report(launch, ": its grid is not whole clusters", {"", 0});

  std::vector<uint64_t> values = ready.values;
  std::vector<MapParameter> maps(values.size());
  std::vector<const void *> arguments;
  memory.beginLaunch();
  for (size_t i = 0; i < values.size(); ++i) {
    const Arg &arg = launch.args[i];
    const Parameter &parameter = entry.parameters[i];
    const bool address = arg.kind == ArgKind::tensor || arg.kind == ArgKind::scratch;
    const bool map = arg.kind == ArgKind::tensor_map;
    auto kind = [](bool isAddress, bool isMap) {
      return isMap ? "a tensor map" : isAddress ? "an address" : "a number";
    };
    if (parameter.pointer != address || parameter.map != map)
      report(launch,
             ": parameter " + std::to_string(i) + " is " + kind(parameter.pointer, parameter.map) +
                 ", its argument " + kind(address, map),
             {"", 0});
    if (const int bytes = bytesOf(arg, *plan.signature); bytes > 0 && bytes != parameter.bytes)
      report(launch,
             ": parameter " + std::to_string(i) + " has " + std::to_string(parameter.bytes) +
                 " bytes, its argument " + std::to_string(bytes),
             {"", 0});
    if (address) {
      const size_t buffer = arg.index + (arg.kind == ArgKind::scratch ? plan.tensors.size() : 0);
      values[i] = reinterpret_cast<uint64_t>(memory.address(buffer));
      memory.addParameter(buffer, parameter);
    } else if (map) {
      // Bulk stores may write what a map describes.
      const TensorMap &described = plan.plan->tensor_maps[arg.index];
      const size_t buffer = described.index + (described.of_scratch ? plan.tensors.size() : 0);
      memory.addParameter(buffer,
                          {0, true, true, static_cast<int>(size_of(described.dtype)), false});
      maps[i] = {{TensorBox::mark, arg.index}};
    }
    arguments.push_back(map ? static_cast<const void *>(&maps[i]) : &values[i]);
  }
  order = Order();
  LaunchShape shape;
  shape.threads = count;
  shape.blocks = entry.blocks;
  shape.sharedBytes = static_cast<size_t>(ready.shared_bytes);
  for (int axis = 0; axis < 3; ++axis) {
    shape.cluster[axis] = launch.cluster[axis];
    shape.grid[axis] = static_cast<int>(ready.grid[axis]);
  }
  if (launch.resident)
    shape.grid[0] = std::min<int>(shape.grid[0], residentClusters * launch.cluster[0]);
  Cluster cluster(shape, timing, order, sites, memory, boxes);
  auto attach = reinterpret_cast<void (*)(Engine *)>(code->symbol("tk_emu_attach"));
  attach(&cluster);
  const auto [dx, dy, dz] = std::tuple(shape.cluster[0], shape.cluster[1], shape.cluster[2]);
  for (int64_t z = 0; z < shape.grid[2]; z += dz)
    for (int64_t y = 0; y < shape.grid[1]; y += dy)
      for (int64_t x = 0; x < shape.grid[0]; x += dx) {
        detail::stop_if_interrupted();
        if (auto fault = cluster.run(static_cast<int>(x), static_cast<int>(y), static_cast<int>(z),
                                     entry.call, arguments.data()))
          report(launch,
                 blockText(x + fault->block % dx, y + fault->block / dx % dy,
                           z + fault->block / (dx * dy)) +
                     fault->text,
                 fault->place);
        if (memory.counts)
          memory.counts->endCluster();
      }
}

static void sayCounts(const std::string &symbol, const Counts &counts) {
  char text[256];
  std::snprintf(text, sizeof text,
                "emulated '%s': %.0f bytes read, %.0f written, %.0f multiply-adds", symbol.c_str(),
                counts.read, counts.written, counts.products);
  detail::log_message(text);
}

void EmulatedKernels::run(const detail::EmulatedPlan &plan) const {
  if (Status loaded = load(); !loaded)
    throw loaded.error();
  std::lock_guard lock(code->attached);
  detail::InterruptScope scope;
  const Timing when = timing();
  Order order;
  Sites sites;
  GlobalMemory memory(order, sites);
  const Signature &signature = *plan.signature;
  size_t numParams = 0;
  for (const tk::Parameter &parameter : signature.params)
    numParams += parameter.is_tensor;
  for (size_t t = 0; t < plan.tensors.size(); ++t) {
    const tk::Parameter &tensor = signature.tensor(static_cast<unsigned>(t));
    memory.addTensor(tensor.name, plan.tensors[t],
                     t >= numParams  ? Contents::unwritten
                     : tensor.in_out ? Contents::updated
                                     : Contents::given);
  }
  for (size_t s = 0; s < plan.plan->scratch.size(); ++s)
    memory.addScratch(plan.plan->scratch[s], plan.scratch_bytes[s]);
  std::vector<TensorBox> boxes;
  for (size_t m = 0; m < plan.maps.size(); ++m) {
    const TensorMap &map = plan.plan->tensor_maps[m];
    const size_t buffer = map.index + (map.of_scratch ? plan.tensors.size() : 0);
    boxes.emplace_back(map, plan.maps[m], memory.address(buffer));
  }
  detail::LaunchObserver *const observer = detail::launch_observer();
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const std::string &symbol = plan.launches[i].launch->symbol;
    if (observer)
      observer->before(symbol, nullptr);
    Counts counts;
    if (detail::log_enabled())
      memory.counts = &counts;
    launch(plan, i, when, order, sites, memory, boxes);
    if (std::exchange(memory.counts, nullptr))
      sayCounts(symbol, counts);
    if (observer)
      observer->after(symbol, nullptr);
  }
  if (!memory.complete())
    throw Error(ErrorCode::internal, "kernel '" + signature.name + "' " + memory.complaint,
                {signature.span});
}

std::vector<std::string> distinctSymbols(const LaunchPlan &plan) {
  std::vector<std::string> names;
  for (const Launch &launch : plan.launches)
    if (std::find(names.begin(), names.end(), launch.symbol) == names.end())
      names.push_back(launch.symbol);
  return names;
}

/// The least number of blocks of __launch_bounds__ in front of the kernel's name; 1 without one.
std::string blocksOf(const std::string &text, const std::string &name) {
  const size_t at = text.find(")\n" + name + "(");
  const size_t bounds = at == std::string::npos ? at : text.rfind("__launch_bounds__(", at);
  const size_t comma = bounds == std::string::npos ? bounds : text.find(", ", bounds);
  return comma < at ? text.substr(comma + 2, at - comma - 2) : "1";
}

/// The text with, for each kernel, how to call and describe it.
std::string withEntries(const std::string &text, const std::vector<std::string> &names) {
  std::string result = text + "\n";
  for (const std::string &name : names) {
    result += "extern \"C\" void tk_emu_call_" + name +
              "(const void *const *arguments) { tk::emu::call(::" + name + ", arguments); }\n";
    result += "extern \"C\" int tk_emu_describe_" + name +
              "(tk::emu::Parameter *to, int room) { return tk::emu::describe(::" + name +
              ", to, room); }\n";
    result += "extern \"C\" unsigned tk_emu_blocks_" + name + "() { return " +
              blocksOf(text, name) + "; }\n";
  }
  return result;
}

Expected<Entry> findEntry(const HostCode &code, const std::string &symbol) {
  Entry entry;
  entry.call = reinterpret_cast<Cluster::Kernel>(code.symbol("tk_emu_call_" + symbol));
  auto describe =
      reinterpret_cast<int (*)(Parameter *, int)>(code.symbol("tk_emu_describe_" + symbol));
  auto blocks = reinterpret_cast<unsigned (*)()>(code.symbol("tk_emu_blocks_" + symbol));
  if (!entry.call || !describe || !blocks)
    return Error(ErrorCode::internal, "the emitted text has no kernel '" + symbol + "'");
  entry.parameters.resize(static_cast<size_t>(describe(nullptr, 0)));
  describe(entry.parameters.data(), static_cast<int>(entry.parameters.size()));
  entry.blocks = blocks();
  return entry;
}

Status EmulatedKernels::load() const {
  std::lock_guard lock(loading);
  if (code)
    return {};
  auto compiled = batch->code();
  if (!compiled)
    return compiled.error();
  std::vector<Entry> found;
  for (const std::string &symbol : symbols) {
    auto entry = findEntry(**compiled, symbol);
    if (!entry)
      return entry.error();
    found.push_back(std::move(*entry));
  }
  entries = std::move(found);
  code = std::move(*compiled);
  return {};
}

} // namespace
} // namespace emu

Expected<detail::Executable> compileForEmu(detail::Executable executable,
                                           const Signature &signature, const EmuOptions &options) {
  const std::vector<std::string> names = emu::distinctSymbols(executable.plan);
  const std::string text = emu::withEntries(cuda::withoutComments(executable.cuda), names);
  std::shared_ptr<emu::TextBatch> batch = options.batch;
  const bool together = batch && batch->add(text, names);
  auto failed = [&](const Error &error) {
    return Error(error.code(), "kernel '" + signature.name + "': " + error.message(),
                 {signature.span});
  };
  if (!together) {
    static detail::SharedCode<emu::TextBatch> shared;
    using Made = detail::SharedCode<emu::TextBatch>::Made;
    Made alone = shared.get(detail::sha256(text), [&]() -> Made {
      auto made = std::make_shared<emu::TextBatch>();
      made->add(text, names);
      auto compiled = made->code();
      return compiled ? Made(std::move(made)) : Made(compiled.error());
    });
    if (!alone)
      return failed(alone.error());
    batch = std::move(*alone);
  }
  auto kernels = std::make_shared<emu::EmulatedKernels>(batch, executable.plan, options);
  if (!together)
    if (Status loaded = kernels->load(); !loaded)
      return failed(loaded.error());
  executable.kind = detail::Executable::Kind::emulated;
  executable.target = "emu";
  executable.emulator = std::move(kernels);
  return executable;
}

} // namespace tk
