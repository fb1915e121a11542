#include "runtime/Bind.h"

#include "runtime/Views.h"

#include <algorithm>

namespace tk::detail {
namespace {

constexpr int64_t scratch_alignment = 256, restored_alignment = 8;
constexpr uint32_t max_alignment_fact = 16;

/// "argument 2 'k'" or "result 1 'o'", counted as in the source.
std::string label(const Signature &signature, const Parameter &parameter) {
  for (size_t i = 0; i < signature.params.size(); ++i)
    if (&signature.params[i] == &parameter)
      return "argument " + std::to_string(i + 1) + " '" + parameter.name + "'";
  for (size_t i = 0; i < signature.results.size(); ++i)
    if (&signature.results[i] == &parameter)
      return "result " + std::to_string(i + 1) + " '" + parameter.name + "'";
  return "'" + parameter.name + "'";
}

std::string type_text(const Parameter &tensor) {
  std::string text(name(tensor.dtype));
  text += "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? ", " : "") + tensor.shape[i].text;
  return text + "]";
}

Error wrong(const Signature &signature, const Parameter &parameter, const std::string &what) {
  return Error(ErrorCode::invalid_argument, label(signature, parameter) + ": " + what,
               {parameter.span});
}

std::string known_names(const Signature &signature) {
  std::string text;
  for (const auto *list : {&signature.params, &signature.results})
    for (const Parameter &parameter : *list)
      text += (text.empty() ? "" : ", ") + parameter.name;
  return text;
}

void set_tensor(const Signature &signature, Arguments &arguments, unsigned index,
                const TensorView &view) {
  if (arguments.tensors[index])
    throw wrong(signature, signature.tensor(index), "given twice");
  arguments.tensors[index] = view;
}

void set_scalar(const Signature &signature, Arguments &arguments, unsigned index, Scalar value) {
  if (arguments.scalars[index])
    throw wrong(signature, signature.scalar(index), "given twice");
  arguments.scalars[index] = value;
}

/// Puts a value where the parameter wants it; a tensor for a scalar and the reverse are errors.
void set_value(const Signature &signature, Arguments &arguments, const Parameter &parameter,
               unsigned index, const Value &value) {
  if (const auto *view = std::get_if<TensorView>(&value)) {
    if (!parameter.is_tensor)
      throw wrong(signature, parameter, "expected a scalar, got a tensor " + view->str());
    set_tensor(signature, arguments, index, *view);
    return;
  }
  if (parameter.is_tensor)
    throw wrong(signature, parameter,
                "expected a tensor " + type_text(parameter) + ", got a scalar");
  set_scalar(signature, arguments, index, std::get<Scalar>(value));
}

Arguments empty_arguments(const Signature &signature) {
  Arguments arguments;
  arguments.tensors.resize(signature.num_tensors());
  arguments.scalars.resize(signature.num_scalars());
  return arguments;
}

/// Type, rank and device of one tensor.
void check_type(const Signature &signature, const Parameter &expected, const TensorView &view,
                Device device) {
  if (view.dtype != expected.dtype || view.rank() != expected.shape.size() || view.device != device)
    throw wrong(signature, expected,
                "expected " + type_text(expected) + " on " + device.str() + ", got " + view.str() +
                    " on " + view.device.str());
}

void check_strides(const Signature &signature, const Parameter &expected, const TensorView &view,
                   bool written) {
  if (!expected.strided) {
    if (!view.is_contiguous())
      throw wrong(signature, expected,
                  "expected a dense row-major tensor (or declare it 'strided'), got " + view.str());
    return;
  }
  if (!written)
    return;
  for (unsigned axis = 0; axis < view.rank(); ++axis)
    if (view.strides[axis] <= 0 && view.shape[axis] > 1)
      throw wrong(signature, expected,
                  "expected positive strides of a tensor that is written, got stride " +
                      std::to_string(view.strides[axis]) + " on axis " + std::to_string(axis));
  if (may_overlap_itself(view))
    throw wrong(signature, expected,
                "expected distinct addresses of all elements, got " + view.str());
}

void check_storage(const Signature &signature, const Parameter &expected, const TensorView &view) {
  Expected<std::pair<int64_t, int64_t>> range = byte_range(view);
  if (!range)
    throw Error(range.error().code(), label(signature, expected) + ": " + range.error().message(),
                {expected.span});
  if (view.storage_bytes >= 0 && (range->first < 0 || range->second > view.storage_bytes))
    throw wrong(signature, expected,
                "view " + view.str() + " needs bytes " + std::to_string(range->first) + " to " +
                    std::to_string(range->second) + " of a storage of " +
                    std::to_string(view.storage_bytes));
}

/// The device that all tensors must be on: that of the first tensor on the right kind of device.
Device expected_device(const Arguments &arguments, Device::Kind kind) {
  if (kind == Device::Kind::cpu)
    return Device::cpu();
  for (const std::optional<TensorView> &view : arguments.tensors)
    if (view && view->device.kind == kind)
      return view->device;
  return Device::cuda(0);
}

std::vector<std::optional<Extents>> shapes_of(std::span<const TensorView> tensors) {
  std::vector<std::optional<Extents>> shapes;
  for (const TensorView &view : tensors)
    shapes.emplace_back(view.shape);
  return shapes;
}

std::vector<int64_t> solve_all(const Signature &signature, std::span<const TensorView> tensors) {
  std::vector<std::optional<int64_t>> solved = solve_dims(signature, shapes_of(tensors)).value();
  std::vector<int64_t> dims;
  for (size_t d = 0; d < solved.size(); ++d) {
    if (!solved[d])
      throw Error(ErrorCode::invalid_argument,
                  "no argument determines dimension '" + signature.dims[d] + "'", {signature.span});
    dims.push_back(*solved[d]);
  }
  return dims;
}

struct AddressRange {
  uintptr_t begin, end;
};

AddressRange address_range(const TensorView &view, const void *pointer) {
  auto [low, high] = byte_range(view).value();
  auto base = reinterpret_cast<uintptr_t>(pointer);
  return {base + static_cast<uintptr_t>(low), base + static_cast<uintptr_t>(high)};
}

bool is_written(const Signature &signature, unsigned index) {
  unsigned inputs = signature.num_tensors() - static_cast<unsigned>(signature.results.size());
  return index >= inputs || signature.tensor(index).in_out;
}

uint32_t power_of_two_divisor(uint64_t value) {
  return value == 0 ? max_alignment_fact
                    : static_cast<uint32_t>(std::min<uint64_t>(value & -value, max_alignment_fact));
}

} // namespace

ScratchLayout lay_out_scratch(const LaunchPlan &plan, std::span<const Scalar> variables) {
  ScratchLayout layout;
  int64_t restored = 0;
  for (const Scratch &scratch : plan.scratch) {
    int64_t bytes = scratch.bytes.evaluate_integer(variables).value();
    int64_t padded = 0;
    if (scratch.restored) {
      layout.offsets.push_back(restored - cuda::restored_bytes);
      layout.bytes.push_back(bytes);
      restored += (bytes + restored_alignment - 1) / restored_alignment * restored_alignment;
      if (bytes < 0 || restored > cuda::restored_bytes)
        throw Error(ErrorCode::overflow, "too many bytes that launches leave at 0");
      continue;
    }
    layout.offsets.push_back(layout.total);
    layout.bytes.push_back(std::max<int64_t>(bytes, 0));
    if (__builtin_add_overflow(layout.bytes.back(), scratch_alignment - 1, &padded) ||
        __builtin_add_overflow(layout.total, padded / scratch_alignment * scratch_alignment,
                               &layout.total))
      throw Error(ErrorCode::overflow, "scratch memory size overflows 64 bits");
  }
  layout.restores = restored > 0;
  if (layout.restores)
    layout.total = std::max(layout.total, scratch_alignment);
  return layout;
}

Arguments sort_named(const Signature &signature, std::span<const NamedValue> values) {
  Arguments arguments = empty_arguments(signature);
  for (const NamedValue &value : values) {
    if (auto tensor = signature.find_tensor(value.name))
      set_value(signature, arguments, signature.tensor(*tensor), *tensor, value.value);
    else if (auto scalar = signature.find_scalar(value.name))
      set_value(signature, arguments, signature.scalar(*scalar), *scalar, value.value);
    else
      throw Error(ErrorCode::invalid_argument,
                  "kernel '" + signature.name + "' has no argument '" + std::string(value.name) +
                      "'; it has " + known_names(signature),
                  {signature.span});
  }
  return arguments;
}

Arguments sort_positional(const Signature &signature, std::span<const Value> values) {
  Arguments arguments = empty_arguments(signature);
  unsigned tensor = 0, scalar = 0;
  size_t next = 0;
  for (const auto *list : {&signature.params, &signature.results})
    for (const Parameter &parameter : *list) {
      unsigned index = parameter.is_tensor ? tensor++ : scalar++;
      // A scalar with a default may be left out: then a tensor stands in its place.
      bool skip = next < values.size() && !parameter.is_tensor && parameter.has_default &&
                  std::holds_alternative<TensorView>(values[next]);
      if (next < values.size() && !skip)
        set_value(signature, arguments, parameter, index, values[next++]);
    }
  if (next < values.size())
    throw Error(ErrorCode::invalid_argument,
                "kernel '" + signature.name + "' takes " +
                    std::to_string(signature.params.size() + signature.results.size()) +
                    " arguments, got " + std::to_string(values.size()),
                {signature.span});
  return arguments;
}

CheckedArguments check_arguments(const Signature &signature, const Arguments &arguments,
                                 Device::Kind kind) {
  CheckedArguments checked;
  checked.device = expected_device(arguments, kind);
  for (unsigned t = 0; t < signature.num_tensors(); ++t) {
    const Parameter &expected = signature.tensor(t);
    if (!arguments.tensors[t])
      throw wrong(signature, expected, "missing: expected " + type_text(expected));
    const TensorView &view = *arguments.tensors[t];
    check_type(signature, expected, view, checked.device);
    if (Expected<int64_t> bytes = byte_count(view.dtype, view.shape); !bytes)
      throw Error(bytes.error().code(), label(signature, expected) + ": " + bytes.error().message(),
                  {expected.span});
    checked.tensors.push_back(view);
  }
  checked.dims = solve_all(signature, checked.tensors);
  for (unsigned t = 0; t < signature.num_tensors(); ++t) {
    check_strides(signature, signature.tensor(t), checked.tensors[t], is_written(signature, t));
    check_storage(signature, signature.tensor(t), checked.tensors[t]);
    // Axes of extent 1 may come with any stride; code for dense tensors sees the one it expects.
    if (!signature.tensor(t).strided)
      checked.tensors[t].strides = row_major_strides(checked.tensors[t].shape);
    else
      settle_strides(checked.tensors[t], axis_order(checked.tensors[t]));
  }
  checked.variables = complete_variables(signature, checked.dims, arguments.scalars).value();
  check_scalar_extents(signature, shapes_of(checked.tensors), checked.variables).value();
  run_checks(signature, checked.variables).value();
  return checked;
}

void check_addresses(const Signature &signature, std::span<const TensorView> tensors,
                     std::span<void *const> pointers) {
  std::vector<AddressRange> ranges;
  for (unsigned t = 0; t < tensors.size(); ++t) {
    ranges.push_back(address_range(tensors[t], pointers[t]));
    if (ranges[t].begin == ranges[t].end)
      continue;
    const Parameter &expected = signature.tensor(t);
    if (!pointers[t])
      throw wrong(signature, expected, "expected an address, got null");
    if (reinterpret_cast<uintptr_t>(pointers[t]) % size_of(expected.dtype) != 0)
      throw wrong(signature, expected,
                  "expected an address aligned to " + std::to_string(size_of(expected.dtype)) +
                      " bytes");
  }
  for (unsigned a = 0; a < tensors.size(); ++a)
    for (unsigned b = 0; b < a; ++b) {
      if (!is_written(signature, a) && !is_written(signature, b))
        continue;
      if (ranges[a].begin < ranges[b].end && ranges[b].begin < ranges[a].end)
        throw Error(ErrorCode::invalid_argument,
                    label(signature, signature.tensor(a)) + " overlaps " +
                        label(signature, signature.tensor(b)),
                    {signature.tensor(a).span, signature.tensor(b).span});
    }
}

/// Are all sizes, strides and element counts of a launch below small_tensor_limit?
static bool are_small(const CheckedArguments &checked) {
  for (int64_t dim : checked.dims)
    if (dim >= small_tensor_limit)
      return false;
  for (const TensorView &view : checked.tensors) {
    int64_t last = 0; // the offset of the last element
    for (unsigned axis = 0; axis < view.rank(); ++axis) {
      int64_t stride = view.strides[axis], part = 0;
      if (stride < 0 || stride >= small_tensor_limit || view.shape[axis] >= small_tensor_limit)
        return false;
      // Both factors are below 2^30, and a sum that is too large ends the loop.
      part = stride * std::max<int64_t>(view.shape[axis] - 1, 0);
      last += part;
      if (last >= small_tensor_limit - 1)
        return false;
    }
  }
  return true;
}

bool scratch_is_small(const LaunchPlan &plan, std::span<const Scalar> variables) {
  for (const Scratch &scratch : plan.scratch)
    if (scratch.bytes.evaluate_integer(variables).value() >= small_tensor_limit)
      return false;
  return true;
}

Facts facts_of(const Signature &signature, const CheckedArguments &checked) {
  Facts facts = facts_for(checked.dims);
  facts.small_tensors = are_small(checked);
  for (unsigned t = 0; t < checked.tensors.size(); ++t) {
    const TensorView &view = checked.tensors[t];
    TensorFact fact;
    fact.alignment = power_of_two_divisor(reinterpret_cast<uintptr_t>(view.data));
    if (signature.tensor(t).strided) {
      const AxisOrder order = axis_order(view);
      fact.unit_axis = order.unit_axis;
      fact.dense = order.dense;
      fact.stride_divisor = max_alignment_fact;
      const int32_t unit =
          order.unit_axis == last_axis ? static_cast<int32_t>(view.rank()) - 1 : order.unit_axis;
      // Rows that repeat or run backwards are none that the hardware copies in bulk. Code for a
      // dense tensor computes its strides.
      for (int32_t axis = 0; axis < static_cast<int32_t>(view.rank()) && !order.dense; ++axis)
        if (const int64_t stride = view.strides[static_cast<unsigned>(axis)]; axis != unit)
          fact.stride_divisor =
              std::min(fact.stride_divisor,
                       stride > 0 ? power_of_two_divisor(static_cast<uint64_t>(stride)) : 1);
    }
    facts.tensors.push_back(fact);
  }
  facts.schedules = schedule_conditions(signature, checked.variables);
  facts.cases = scalar_cases(signature, checked.variables);
  return facts;
}

void BoundImpl::launch(Stream stream, std::span<void *const> pointers) const {
  if (pointers.size() != checked.tensors.size())
    throw Error(ErrorCode::invalid_argument,
                "kernel '" + signature->name + "' takes " + std::to_string(checked.tensors.size()) +
                    " addresses, got " + std::to_string(pointers.size()));
  for (unsigned t = 0; t < pointers.size(); ++t) {
    if (empty_tensor[t])
      continue;
    if (!pointers[t] || reinterpret_cast<uintptr_t>(pointers[t]) % alignments[t] != 0)
      throw wrong(*signature, signature->tensor(t),
                  pointers[t] ? "expected an address aligned to " + std::to_string(alignments[t]) +
                                    " bytes, as it was bound"
                              : std::string("expected an address, got null"));
  }
  if (gather_checks)
    check_gathers(*gather_checks, stream, pointers);
  if (variant->executable.kind == Executable::Kind::cpu) {
    cpu::launch_plan(cpu, pointers);
    return;
  }
  if (variant->executable.kind == Executable::Kind::emulated) {
    emu::launch_plan(*variant->executable.emulator, emulated, pointers);
    return;
  }
  cuda::DeviceContext &device = gpu.module->device();
  cuda::ScopedContext scope(device); // one for all of the launch
  cuda::CUdeviceptr base = 0;
  if (scratch_bytes > 0) {
    const bool captures = cuda::is_capturing(device, stream.handle);
    base = captures ? 0 : scratch->find(stream.handle, scratch_bytes, restores);
    if (!base)
      base = scratch->acquire(stream.handle, scratch_bytes, captures, restores);
  }
  cuda::launch_plan(gpu, pointers, base, stream.handle);
}

} // namespace tk::detail
