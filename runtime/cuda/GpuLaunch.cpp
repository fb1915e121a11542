#include "runtime/cuda/GpuLaunch.h"

#include "runtime/Bind.h"
#include "runtime/LaunchArray.h"
#include "runtime/LaunchObserver.h"
#include "runtime/TensorMaps.h"

#include <cstring>
#include <mutex>
#include <set>

namespace tk::cuda {
namespace {

constexpr int64_t max_grid_x = 2147483647;
constexpr int64_t max_grid_yz = 65535;

uint64_t scalar_bits(DType dtype, const Scalar &value) {
  uint64_t bits = 0;
  if (is_float(dtype))
    store_from_f64(dtype, &bits, value.as_double());
  else
    convert(dtype, &bits, DType::i64, &value.i, 1);
  return bits;
}

uint64_t integer_bits(const Arg &arg, int64_t value, const Launch &launch) {
  if (arg.dtype == DType::i32 && value != static_cast<int32_t>(value))
    throw Error(ErrorCode::overflow,
                "argument of '" + launch.symbol +
                    "' does not fit 32 bits: " + std::to_string(value),
                {launch.span});
  return static_cast<uint64_t>(value);
}

} // namespace

uint64_t argument_bits(const Arg &arg, const Launch &launch, const Signature &signature,
                       std::span<const Scalar> variables, std::span<const TensorView> tensors) {
  switch (arg.kind) {
  case ArgKind::integer:
    if (arg.dtype != DType::i64 && arg.dtype != DType::i32)
      return scalar_bits(arg.dtype, arg.value.evaluate(variables).value());
    return integer_bits(arg, arg.value.evaluate_integer(variables).value(), launch);
  case ArgKind::stride:
    return integer_bits(arg, tensors[arg.index].strides[arg.axis], launch);
  case ArgKind::scalar:
    return scalar_bits(signature.scalar(arg.index).dtype,
                       variables[signature.dims.size() + arg.index]);
  case ArgKind::tensor:
  case ArgKind::scratch:
  case ArgKind::tensor_map:
    return 0; // an address, known at launch
  }
  return 0;
}

namespace {

/// The one text of that content. It outlives what is launched, for the report of a later failure.
const std::string *descriptionOf(std::string text) {
  static std::mutex mutex;
  static auto &texts = *new std::set<std::string>();
  std::lock_guard lock(mutex);
  return &*texts.insert(std::move(text)).first;
}

ResolvedLaunch resolve_launch(const Launch &launch, const Signature &signature, GpuModule &module,
                              std::span<const Scalar> variables,
                              std::span<const TensorView> tensors) {
  ResolvedLaunch result;
  for (unsigned i = 0; i < 3; ++i) {
    int64_t extent = launch.grid[i].evaluate_integer(variables).value();
    if (extent > (i == 0 ? max_grid_x : max_grid_yz))
      throw Error(ErrorCode::overflow,
                  "'" + launch.symbol + "' needs a grid of " + std::to_string(extent) +
                      " blocks in dimension " + std::to_string(i) + ", more than the GPU has",
                  {launch.span});
    if (launch.cluster[i] == 0 || extent % launch.cluster[i] != 0)
      throw Error(ErrorCode::internal,
                  "'" + launch.symbol + "' has a grid of " + std::to_string(extent) +
                      " blocks in dimension " + std::to_string(i) + ", not whole clusters of " +
                      std::to_string(launch.cluster[i]),
                  {launch.span});
    result.empty |= extent <= 0;
    result.config.grid[i] = static_cast<unsigned>(std::max<int64_t>(extent, 0));
    result.config.block[i] = launch.block[i];
  }
  int64_t shared = launch.shared_bytes.evaluate_integer(variables).value();
  result.has_cluster = launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 1;
  result.function = module.function(launch.symbol, shared, result.has_cluster);
  result.config.shared_bytes = static_cast<unsigned>(shared);
  result.cluster.id = attribute_cluster_dimension;
  result.cluster.cluster = {launch.cluster[0], launch.cluster[1], launch.cluster[2]};
  if (launch.resident && !result.empty) {
    unsigned places =
        module.resident_blocks(result.function, result.config, result.cluster, result.has_cluster);
    result.config.grid[0] = std::min(result.config.grid[0], places);
  }
  if (launch.overlapped && !result.has_cluster && !result.empty)
    result.would_crowd =
        would_crowd(uint64_t{result.config.grid[0]} * result.config.grid[1] * result.config.grid[2],
                    module.resident_blocks(result.function, result.config, result.cluster, false),
                    static_cast<uint64_t>(module.device().num_sms));
  for (const Arg &arg : launch.args)
    result.values.push_back(argument_bits(arg, launch, signature, variables, tensors));
  std::string where = launch.span.valid()
                          ? " (" + launch.span.file + ":" + std::to_string(launch.span.line) + ")"
                          : "";
  result.description = descriptionOf("'" + launch.symbol + "'" + where);
  return result;
}

/// The arguments of one launch in the form that the driver takes; lives on the stack of the launch.
class Arguments {
public:
  void fill(const ResolvedPlan &resolved, const Launch &launch, const ResolvedLaunch &ready,
            std::span<void *const> pointers, CUdeviceptr scratch) {
    const size_t count = ready.values.size();
    m_values.resize(count);
    std::copy(ready.values.begin(), ready.values.end(), m_values.data());
    m_parameters.resize(count);
    size_t num_maps = 0;
    for (const Arg &arg : launch.args)
      num_maps += arg.kind == ArgKind::tensor_map;
    m_maps.resize(num_maps);
    size_t next_map = 0;
    for (size_t i = 0; i < count; ++i) {
      const Arg &arg = launch.args[i];
      m_parameters[i] = &m_values[i];
      if (arg.kind == ArgKind::tensor) {
        m_values[i] = reinterpret_cast<uint64_t>(pointers[arg.index]);
      } else if (arg.kind == ArgKind::scratch) {
        m_values[i] = scratch + static_cast<uint64_t>(resolved.scratch_offsets[arg.index]);
      } else if (arg.kind == ArgKind::tensor_map) {
        const TensorMap &map = resolved.plan->tensor_maps[arg.index];
        void *address =
            map.of_scratch
                ? reinterpret_cast<void *>(
                      scratch + static_cast<uint64_t>(resolved.scratch_offsets[map.index]))
                : pointers[map.index];
        resolved.maps[arg.index]->at(resolved.module->device(), address, m_maps[next_map]);
        m_parameters[i] = &m_maps[next_map++];
      }
    }
  }
  void **data() { return m_parameters.data(); }

private:
  detail::LaunchArray<uint64_t> m_values;
  detail::LaunchArray<void *> m_parameters;
  detail::LaunchArray<CUtensorMap, 8> m_maps;
};

} // namespace

bool would_crowd(uint64_t blocks, uint64_t resident, uint64_t processors) {
  if (processors == 0 || blocks < processors || blocks > resident)
    return false;
  const uint64_t share = (blocks + processors - 1) / processors;
  return resident / processors >= 2 * share;
}

ResolvedPlan resolve_plan(const LaunchPlan &plan, const Signature &signature,
                          std::shared_ptr<GpuModule> module, std::span<const Scalar> variables,
                          std::span<const TensorView> tensors) {
  ResolvedPlan resolved;
  resolved.plan = &plan;
  for (const TensorMap &map : plan.tensor_maps)
    resolved.maps.push_back(std::make_unique<const EncodedMap>(
        map, detail::resolve_map(map, signature, variables, tensors)));
  for (const Launch &launch : plan.launches)
    resolved.launches.push_back(resolve_launch(launch, signature, *module, variables, tensors));
  detail::ScratchLayout layout = detail::lay_out_scratch(plan, variables);
  resolved.scratch_offsets = std::move(layout.offsets);
  resolved.scratch_bytes = std::move(layout.bytes);
  resolved.module = std::move(module);
  return resolved;
}

void launch_plan(const ResolvedPlan &resolved, std::span<void *const> pointers, CUdeviceptr scratch,
                 void *stream) {
  DeviceContext &device = resolved.module->device();
  ScopedContext scope(device);
  auto *cuda_stream = static_cast<CUstream>(stream);
  for (size_t i = 0; i < resolved.plan->scratch.size(); ++i)
    if (resolved.plan->scratch[i].zeroed && resolved.scratch_bytes[i] > 0)
      device.check(device.driver->memset_d8_async(
                       scratch + static_cast<uint64_t>(resolved.scratch_offsets[i]), 0,
                       static_cast<size_t>(resolved.scratch_bytes[i]), cuda_stream),
                   "cuMemsetD8Async");
  Arguments arguments;
  // A launch of this plan is in front, not somebody else's. Where the first one waits itself, all
  // do.
  bool follows = !resolved.plan->launches.empty() && resolved.plan->launches.front().overlapped;
  detail::LaunchObserver *const observer = detail::launch_observer();
  for (size_t i = 0; i < resolved.launches.size(); ++i) {
    const ResolvedLaunch &ready = resolved.launches[i];
    if (ready.empty)
      continue;
    arguments.fill(resolved, resolved.plan->launches[i], ready, pointers, scratch);
    LaunchConfig config = ready.config;
    LaunchAttribute attributes[2];
    config.stream = cuda_stream;
    config.attributes = attributes;
    config.num_attributes = 0;
    if (ready.has_cluster)
      attributes[config.num_attributes++] = ready.cluster;
    if (follows && !observer && resolved.plan->launches[i].overlapped && !ready.would_crowd &&
        device.driver->version >= overlap_driver_version) {
      LaunchAttribute &overlap = attributes[config.num_attributes++];
      overlap.id = attribute_programmatic_serialization;
      overlap.flag = 1;
    }
    follows = true;
    if (observer)
      observer->before(resolved.plan->launches[i].symbol, stream);
    CUresult result =
        device.driver->launch_kernel_ex(&config, ready.function, arguments.data(), nullptr);
    if (result != 0)
      device.check(result, ("launch of " + *ready.description).c_str());
    device.note_launch(ready.description);
    if (observer)
      observer->after(resolved.plan->launches[i].symbol, stream);
  }
}

} // namespace tk::cuda
