// Kernels: variants compiled once a key, bound arguments kept, launches.
#include "runtime/Kernel.h"

#include "runtime/Environment.h"

#include <cstring>

namespace tk {
namespace detail {
namespace {

/// Above this many distinct calls the table of bound kernels starts anew.
constexpr size_t max_bound = 1024;

/// The bytes that two calls share exactly when one BoundImpl serves both.
std::string call_key(const Signature &signature, const CheckedArguments &checked,
                     const Facts &facts) {
  std::string key = facts.key();
  auto add = [&](int64_t value) {
    key.append(reinterpret_cast<const char *>(&value), sizeof value);
  };
  add(checked.device.index);
  for (const Scalar &value : checked.variables) {
    add(value.is_float);
    int64_t bits;
    std::memcpy(&bits, &value.i, sizeof bits);
    add(bits);
  }
  for (unsigned t = 0; t < checked.tensors.size(); ++t)
    if (signature.tensor(t).strided)
      for (int64_t stride : checked.tensors[t].strides)
        add(stride);
  return key;
}

/// Is an address one of a device's memory? Host memory would break the context.
bool is_device_pointer(cuda::DeviceContext &device, const void *pointer) {
  constexpr int attribute_memory_type = 2;
  unsigned type = 0;
  // Memory that the driver has never seen, such as malloc's, is an error of the query.
  return device.driver->pointer_get_attribute(&type, attribute_memory_type,
                                              reinterpret_cast<cuda::CUdeviceptr>(pointer)) == 0;
}

/// Refuses host memory before a GPU kernel reads it.
void check_device_pointers(const BoundImpl &bound, std::span<void *const> pointers) {
  cuda::DeviceContext &device = bound.gpu.module->device();
  cuda::ScopedContext scope(device);
  for (unsigned t = 0; t < pointers.size(); ++t)
    if (pointers[t] && !bound.empty_tensor[t] && !is_device_pointer(device, pointers[t]))
      throw Error(ErrorCode::invalid_argument,
                  "argument '" + bound.signature->tensor(t).name + "': expected memory of " +
                      bound.checked.device.str() + ", got a host pointer",
                  {bound.signature->tensor(t).span});
}

} // namespace

Facts KernelImpl::complete(const Facts &facts, std::string_view target) const {
  Facts result = facts;
  if (result.dims.empty())
    result.dims.assign(signature().dims.size(), DimFact{1, -1, std::nullopt});
  for (size_t d = 0; d < signature().dims.size(); ++d)
    if (auto it = m_options.dims.find(signature().dims[d]); it != m_options.dims.end()) {
      result.dims[d] = fact_for(it->second);
      result.dims[d].exact = it->second;
    }
  return m_compiled->relevant_facts(m_index, target.empty() ? m_target : target, result);
}

std::shared_ptr<const Variant> KernelImpl::specialise(const Facts &facts) {
  log_message("compiling '" + signature().name + "' for " + m_target + " [" + facts.key() + "]");
  auto variant = std::make_shared<Variant>();
  variant->facts = facts;
  variant->executable = m_compiled->specialise(m_index, m_target, facts).value();
  if (!well_formed(variant->executable.plan, signature()))
    throw Error(ErrorCode::internal, "malformed launch plan for '" + signature().name + "'");
  return variant;
}

Error KernelImpl::frozen_error(std::span<const int64_t> dims) const {
  std::string sizes;
  for (size_t d = 0; d < dims.size(); ++d)
    sizes += (d ? ", " : "") + signature().dims[d] + " = " + std::to_string(dims[d]);
  return Error(ErrorCode::frozen,
               "the module is frozen, and '" + signature().name + "' has no code for " +
                   (sizes.empty() ? "unknown sizes" : sizes) + ": prepare them before the freeze",
               {signature().span});
}

std::shared_ptr<const Variant> KernelImpl::variant(const Facts &facts,
                                                   std::span<const int64_t> dims) {
  std::string key = facts.key();
  std::promise<std::shared_ptr<const Variant>> promise;
  std::shared_future<std::shared_ptr<const Variant>> future;
  bool ours = false;
  {
    std::lock_guard lock(m_mutex);
    auto it = m_variants.find(key);
    if (it == m_variants.end()) {
      if (m_frozen->load() && m_compiled->compiles())
        throw frozen_error(dims);
      future = promise.get_future().share();
      m_variants.emplace(key, future);
      ours = true;
    } else {
      future = it->second;
    }
  }
  if (ours) {
    try {
      promise.set_value(specialise(facts));
    } catch (...) {
      // Those who wait get the error; the next call tries again, since memory may be free by then.
      promise.set_exception(std::current_exception());
      std::lock_guard lock(m_mutex);
      m_variants.erase(key);
    }
  }
  return future.get();
}

std::shared_ptr<cuda::ScratchPool> KernelImpl::scratch_pool(cuda::DeviceContext &device) {
  std::lock_guard lock(m_mutex);
  std::shared_ptr<cuda::ScratchPool> &pool = m_scratch[device.index];
  if (!pool)
    pool = std::make_shared<cuda::ScratchPool>(device);
  return pool;
}

std::shared_ptr<BoundImpl> KernelImpl::make_bound(CheckedArguments checked, const Stream *stream) {
  Facts wanted = facts_of_launch(checked), facts = wanted;
  auto bound = std::make_shared<BoundImpl>();
  bound->variant = variant_of_call(facts, stream, checked.dims);
  // How large the buffers between launches are is known once it is known what is launched.
  if (facts.small_tensors &&
      !scratch_is_small(bound->variant->executable.plan, checked.variables)) {
    wanted.small_tensors = false;
    facts = wanted;
    bound->variant = variant_of_call(facts, stream, checked.dims);
  }
  bound->stands_in = facts.key() != wanted.key();
  bound->signature = &signature();
  const Executable &executable = bound->variant->executable;
  for (unsigned t = 0; t < checked.tensors.size(); ++t) {
    auto size = static_cast<uint32_t>(size_of(checked.tensors[t].dtype));
    uint32_t assumed = t < facts.tensors.size() ? facts.tensors[t].alignment : 1;
    bound->alignments.push_back(std::max(size, assumed));
    bound->empty_tensor.push_back(element_count(checked.tensors[t].shape).value() == 0);
  }
  if (executable.kind == Executable::Kind::cpu) {
    bound->cpu = cpu::resolve_plan(executable, signature(), checked.variables, checked.tensors);
    bound->scratch_bytes = bound->cpu.scratch_total;
  } else if (executable.kind == Executable::Kind::emulated) {
    bound->emulated =
        emu::resolve_plan(executable.plan, signature(), checked.variables, checked.tensors);
    bound->scratch_bytes = lay_out_scratch(executable.plan, checked.variables).total;
  } else {
    cuda::DeviceContext &device = *cuda::DeviceContext::get(checked.device.index).value();
    bound->gpu = cuda::resolve_plan(executable.plan, signature(),
                                    cuda::GpuModule::load(device, executable.cubin),
                                    checked.variables, checked.tensors);
    ScratchLayout layout = lay_out_scratch(executable.plan, checked.variables);
    bound->scratch_bytes = layout.total;
    bound->restores = layout.restores;
    bound->scratch = scratch_pool(device);
  }
  if (m_checks)
    bound->gather_checks = m_checks->bind_checks(checked, stream);
  bound->checked = std::move(checked);
  return bound;
}

Facts KernelImpl::facts_of_launch(const CheckedArguments &checked) {
  Facts facts = facts_of(signature(), checked);
  {
    std::lock_guard lock(m_mutex);
    for (const auto &[dim, prepared] : m_prepared)
      if (const int64_t size = checked.dims[dim]; prepared.listed.contains(size))
        facts.dims[dim].own_key = true;
      else
        for (const SizeClass &sizes : prepared.classes)
          if (sizes.holds(size))
            facts.dims[dim] = sizes.fact();
  }
  plan_for(facts, signature(), checked, m_options.plan_dims);
  return complete(facts);
}

Arguments KernelImpl::arguments_of_checks(const CheckedArguments &checked) const {
  Arguments arguments;
  unsigned inputs = signature().num_tensors() - static_cast<unsigned>(signature().results.size());
  for (unsigned t = 0; t < signature().num_tensors(); ++t)
    arguments.tensors.push_back(
        t < inputs ? checked.tensors[t]
                   : TensorView(nullptr, signature().tensor(t).dtype, {}, checked.device));
  for (size_t s = 0; s < signature().num_scalars(); ++s)
    arguments.scalars.push_back(checked.variables[checked.dims.size() + s]);
  return arguments;
}

/// Binds this kernel, which checks the gathers of another, to the other's arguments.
std::shared_ptr<const BoundImpl> KernelImpl::bind_checks(const CheckedArguments &checked,
                                                         const Stream *stream) {
  return bind(arguments_of_checks(checked), stream);
}

std::shared_ptr<const BoundImpl> KernelImpl::bind(const Arguments &arguments,
                                                  const Stream *stream) {
  CheckedArguments checked =
      check_arguments(signature(), arguments, on_gpu() ? Device::Kind::cuda : Device::Kind::cpu);
  for (size_t d = 0; d < checked.dims.size(); ++d)
    if (auto it = m_options.dims.find(signature().dims[d]);
        it != m_options.dims.end() && it->second != checked.dims[d])
      throw Error(ErrorCode::shape_mismatch,
                  "dimension '" + signature().dims[d] + "' was compiled as " +
                      std::to_string(it->second) + ", got " + std::to_string(checked.dims[d]),
                  {signature().span});
  std::string key = call_key(signature(), checked, facts_of(signature(), checked));
  uint64_t improved = 0;
  {
    std::lock_guard lock(m_mutex);
    improved = m_improved;
    if (auto it = m_bound.find(key); it != m_bound.end())
      return it->second;
  }
  std::shared_ptr<const BoundImpl> bound = make_bound(std::move(checked), stream);
  std::lock_guard lock(m_mutex);
  if (bound->stands_in && improved != m_improved)
    return bound; // its own variant may be there: the next call looks again
  if (m_bound.size() >= max_bound)
    m_bound.clear();
  m_bound.emplace(std::move(key), bound);
  return bound;
}

bool KernelImpl::launch_known(Stream stream, std::span<const tk_value> values, const CallKey &key) {
  std::shared_ptr<const KnownCall> call = key.valid() ? m_known.find(key) : nullptr;
  if (!call)
    return false;
  std::array<void *, max_known_arguments> storage;
  std::span<void *> pointers = std::span(storage).first(call->tensors.size());
  if (!call->addresses_of(values, pointers))
    return false; // the checks name the tensor
  std::optional<cuda::ScopedContext> scope;
  if (call->bound->variant->executable.kind == Executable::Kind::cuda) {
    scope.emplace(call->bound->gpu.module->device()); // one for the checks and the launch
    check_device_pointers(*call->bound, pointers);
  }
  call->bound->launch(stream, pointers);
  return true;
}

void KernelImpl::launch(Stream stream, const Arguments &arguments, const CallKey *key) {
  std::shared_ptr<const BoundImpl> bound = bind(arguments, &stream);
  std::vector<TensorView> tensors;
  std::vector<void *> pointers;
  for (const std::optional<TensorView> &view : arguments.tensors) {
    tensors.push_back(*view);
    pointers.push_back(view->data);
  }
  check_addresses(signature(), tensors, pointers);
  if (bound->variant->executable.kind == Executable::Kind::cuda)
    check_device_pointers(*bound, pointers);
  if (key && key->valid() && !bound->stands_in)
    m_known.add(*key, bound);
  bound->launch(stream, pointers);
}

void KernelImpl::launch_named(Stream stream, std::span<const NamedValue> inputs,
                              std::span<const NamedValue> outputs) {
  std::array<tk_value, max_known_arguments> storage;
  const size_t count = signature().params.size() + signature().results.size();
  std::optional<CallKey> key;
  if (count <= storage.size()) {
    std::span<tk_value> values = std::span(storage).first(count);
    if (in_order(signature(), inputs, outputs, values)) {
      key.emplace(values);
      if (launch_known(stream, values, *key))
        return;
    }
  }
  std::vector<NamedValue> all(inputs.begin(), inputs.end());
  all.insert(all.end(), outputs.begin(), outputs.end());
  launch(stream, sort_named(signature(), all), key ? &*key : nullptr);
}

void KernelImpl::prepare(const Arguments &arguments) {
  std::shared_ptr<const BoundImpl> bound = bind(arguments, nullptr);
  if (bound->scratch)
    bound->scratch->reserve(bound->scratch_bytes);
}

Expected<std::string> KernelImpl::stage(std::string_view stage, std::string_view target,
                                        const Facts &facts) {
  if (target.empty())
    return m_compiled->stage_text(m_index, stage, m_target, complete(facts));
  Expected<std::string> resolved = resolve_target(target);
  if (!resolved)
    return resolved;
  return m_compiled->stage_text(m_index, stage, *resolved, complete(facts, *resolved));
}

Expected<std::string> KernelImpl::text_for(std::string_view stage, std::string_view target,
                                           std::span<const std::optional<int64_t>> dims) {
  if (dims.size() != signature().dims.size())
    return Error(ErrorCode::invalid_argument, "kernel '" + signature().name + "': expected " +
                                                  std::to_string(signature().dims.size()) +
                                                  " sizes, one for each dimension, got " +
                                                  std::to_string(dims.size()));
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] && *dims[d] < 0)
      return Error(ErrorCode::invalid_argument, "dimension '" + signature().dims[d] +
                                                    "': expected a size, got " +
                                                    std::to_string(*dims[d]));
  Expected<std::string> resolved = target.empty() ? m_target : resolve_target(target);
  return resolved ? m_compiled->text_for(m_index, stage, *resolved, dims) : resolved;
}

} // namespace detail

void BoundKernel::launch(Stream stream, std::span<void *const> pointers) const {
  detail::held(m_impl).launch(stream, pointers);
}
Status BoundKernel::try_launch(Stream stream, std::span<void *const> pointers) const {
  return detail::capture([&] { launch(stream, pointers); });
}
const std::vector<int64_t> &BoundKernel::dims() const { return detail::held(m_impl).checked.dims; }
int64_t BoundKernel::scratch_bytes() const { return detail::held(m_impl).scratch_bytes; }
const LaunchPlan &BoundKernel::plan() const {
  return detail::held(m_impl).variant->executable.plan;
}
const detail::Executable &BoundKernel::executable() const {
  return detail::held(m_impl).variant->executable;
}

const Signature &Kernel::signature() const { return detail::held(m_impl).signature(); }

void Kernel::operator()(Stream stream, std::span<const NamedValue> inputs,
                        std::span<const NamedValue> outputs) const {
  detail::held(m_impl).launch_named(stream, inputs, outputs);
}
Status Kernel::try_launch(Stream stream, std::span<const NamedValue> inputs,
                          std::span<const NamedValue> outputs) const {
  return detail::capture([&] { (*this)(stream, inputs, outputs); });
}

BoundKernel Kernel::bind(std::span<const Value> values) const {
  BoundKernel bound;
  bound.m_kernel = m_impl;
  bound.m_impl = detail::held(m_impl).bind(detail::sort_positional(signature(), values), nullptr);
  return bound;
}
BoundKernel Kernel::bind_named(std::span<const NamedValue> values) const {
  BoundKernel bound;
  bound.m_kernel = m_impl;
  bound.m_impl = detail::held(m_impl).bind(detail::sort_named(signature(), values), nullptr);
  return bound;
}
Expected<BoundKernel> Kernel::try_bind(std::span<const Value> values) const {
  return detail::capture([&] { return bind(values); });
}
Expected<BoundKernel> Kernel::try_bind_named(std::span<const NamedValue> values) const {
  return detail::capture([&] { return bind_named(values); });
}
void Kernel::prepare(std::span<const Value> values) const {
  detail::held(m_impl).prepare(detail::sort_positional(signature(), values));
}
void Kernel::prepare_named(std::span<const NamedValue> values) const {
  detail::held(m_impl).prepare(detail::sort_named(signature(), values));
}
Status Kernel::try_prepare(std::span<const Value> values) const {
  return detail::capture([&] { prepare(values); });
}
size_t Kernel::prepare_sizes(const SizeRequest &sizes, const PrepareOptions &options) const {
  return detail::held(m_impl).prepare_sizes(sizes, options);
}
Expected<size_t> Kernel::try_prepare_sizes(const SizeRequest &sizes,
                                           const PrepareOptions &options) const {
  return detail::capture([&] { return prepare_sizes(sizes, options); });
}
std::string Kernel::stage(std::string_view stage, std::string_view target,
                          const Facts &facts) const {
  return detail::held(m_impl).stage(stage, target, facts).value();
}

std::string Kernel::stage_for(std::string_view stage, std::string_view target,
                              std::span<const std::optional<int64_t>> dims) const {
  return detail::held(m_impl).text_for(stage, target, dims).value();
}

} // namespace tk
