// Kernels in the C interface: their arguments, the shapes that follow from them, launches and
// texts.
#include "runtime/CApiHandles.h"
#include "runtime/Dlpack.h"
#include "tk/tk_c.h"

#include <cstdlib>
#include <cstring>

struct tk_bound {
  tk::BoundKernel bound;
};

using tk::c_api::guarded;
using tk::c_api::named_values;
using tk::c_api::require;
using tk::c_api::text_or_empty;

namespace {

/// Argument `index` of a kernel, or null.
const tk::Parameter *argument_of(const tk_kernel *kernel, size_t index) {
  const tk::Signature &signature = kernel->kernel.signature();
  if (index < signature.params.size())
    return &signature.params[index];
  index -= signature.params.size();
  return index < signature.results.size() ? &signature.results[index] : nullptr;
}

tk::TensorView view_of(const tk_value &value) {
  require(value.dtype >= 0 && value.dtype < static_cast<int32_t>(tk::num_dtypes),
          "unknown dtype in a tk_value");
  require(value.rank >= 0 && value.rank <= static_cast<int32_t>(tk::max_rank),
          "expected a tensor of rank at most 8");
  require(value.rank == 0 || value.shape, "expected a shape, got NULL");
  auto rank = static_cast<size_t>(value.rank);
  tk::Device device = value.device < 0 ? tk::Device::cpu() : tk::Device::cuda(value.device);
  auto dtype = static_cast<tk::DType>(value.dtype);
  tk::Extents shape(std::span<const int64_t>(value.shape, rank));
  tk::TensorView view =
      value.strides
          ? tk::TensorView(value.data, dtype, shape,
                           tk::Extents(std::span<const int64_t>(value.strides, rank)), device)
          : tk::TensorView(value.data, dtype, shape, device);
  view.storage_bytes = value.storage_bytes;
  return view;
}

/// Adds what one tk_sizes says.
void add_sizes(const tk_sizes &given, tk::SizeRequest &sizes, tk::PrepareOptions &options) {
  require(given.name, "expected the name of a dimension or scalar, got NULL");
  const std::string name = given.name;
  switch (given.kind) {
  case TK_SIZES_LIST:
    require(given.list || given.count == 0, "expected a list of sizes, got NULL");
    sizes.emplace(name, std::vector<int64_t>(given.list, given.list + given.count));
    break;
  case TK_SIZES_RANGE:
    sizes.emplace(name, tk::SizeRange{given.first, given.last, given.step});
    break;
  case TK_SIZES_SCALAR:
    options.scalars.emplace(name, tk::Scalar(given.scalar));
    break;
  default:
    require(false, "unknown kind in a tk_sizes");
  }
}

/// A copy that tk_text_free frees.
void give_text(const std::string &result, char **text, size_t *size) {
  auto *copy = static_cast<char *>(std::malloc(result.size() + 1));
  if (!copy)
    throw std::bad_alloc();
  std::memcpy(copy, result.c_str(), result.size() + 1);
  *text = copy;
  if (size)
    *size = result.size();
}

} // namespace

/// The values by name, without the absent ones.
std::vector<tk::NamedValue> tk::c_api::named_values(const tk_kernel *kernel, const tk_value *values,
                                                    size_t count) {
  const tk::Signature &signature = kernel->kernel.signature();
  size_t expected = signature.params.size() + signature.results.size();
  if (count > expected)
    throw tk::Error(tk::ErrorCode::invalid_argument,
                    "kernel '" + signature.name + "' takes " + std::to_string(expected) +
                        " arguments, got " + std::to_string(count));
  std::vector<tk::NamedValue> result;
  for (size_t i = 0; i < count; ++i) {
    const std::string &name = argument_of(kernel, i)->name;
    switch (values[i].kind) {
    case TK_ABSENT:
      break;
    case TK_TENSOR:
      result.emplace_back(name, view_of(values[i]));
      break;
    case TK_INTEGER:
      result.emplace_back(name, tk::Scalar(values[i].integer));
      break;
    case TK_REAL:
      result.emplace_back(name, tk::Scalar(values[i].real));
      break;
    default:
      require(false, "unknown kind in a tk_value");
    }
  }
  return result;
}

const char *tk_kernel_name(const tk_kernel *kernel) { return kernel->kernel.name().c_str(); }
const char *tk_kernel_signature(const tk_kernel *kernel) { return kernel->signature.c_str(); }
size_t tk_kernel_num_dims(const tk_kernel *kernel) { return kernel->kernel.dims().size(); }
const char *tk_kernel_dim_name(const tk_kernel *kernel, size_t index) {
  return index < kernel->kernel.dims().size() ? kernel->kernel.dims()[index].c_str() : nullptr;
}

size_t tk_kernel_num_arguments(const tk_kernel *kernel) {
  const tk::Signature &signature = kernel->kernel.signature();
  return signature.params.size() + signature.results.size();
}

tk_status tk_kernel_argument(const tk_kernel *kernel, size_t index, tk_argument *argument) {
  return guarded([&] {
    require(kernel && argument, "expected kernel and argument, got NULL");
    const tk::Parameter *parameter = argument_of(kernel, index);
    require(parameter, "argument index out of range");
    *argument = {parameter->name.c_str(), static_cast<int32_t>(parameter->dtype),
                 parameter->is_tensor,    index >= kernel->kernel.signature().params.size(),
                 parameter->strided,      parameter->in_out,
                 parameter->has_default,  static_cast<int32_t>(parameter->shape.size())};
  });
}

const char *tk_kernel_extent(const tk_kernel *kernel, size_t index, size_t axis) {
  const tk::Parameter *parameter = argument_of(kernel, index);
  return parameter && axis < parameter->shape.size() ? parameter->shape[axis].text.c_str()
                                                     : nullptr;
}

tk_status tk_value_from_dlpack(const struct DLTensor *tensor, tk_value *value) {
  return guarded([&] {
    require(tensor && value, "expected tensor and value, got NULL");
    tk::TensorView view = tk::from_dlpack(*tensor).value();
    *value = {};
    value->kind = TK_TENSOR;
    value->dtype = static_cast<int32_t>(view.dtype);
    value->rank = static_cast<int32_t>(view.rank());
    value->device = view.device.kind == tk::Device::Kind::cpu ? -1 : view.device.index;
    value->data = view.data;
    value->shape = tensor->shape;
    value->strides = tensor->strides;
    value->storage_bytes = -1;
  });
}

tk_status tk_kernel_solve(const tk_kernel *kernel, const tk_value *values, size_t count,
                          int64_t *dims) {
  return guarded([&] {
    require(kernel && dims && (values || count == 0), "expected kernel, values and dims, got NULL");
    const tk::Signature &signature = kernel->kernel.signature();
    std::vector<std::optional<tk::Extents>> shapes(signature.num_tensors());
    for (const tk::NamedValue &value : named_values(kernel, values, count))
      if (const auto *view = std::get_if<tk::TensorView>(&value.value))
        if (auto tensor = signature.find_tensor(value.name))
          shapes[*tensor] = view->shape;
    std::vector<std::optional<int64_t>> solved = tk::solve_dims(signature, shapes).value();
    for (size_t i = 0; i < solved.size(); ++i)
      dims[i] = solved[i].value_or(-1);
  });
}

tk_status tk_kernel_shape(const tk_kernel *kernel, size_t index, const int64_t *dims,
                          int64_t *shape, int32_t *rank) {
  return guarded([&] {
    require(kernel && dims && shape && rank, "expected kernel, dims, shape and rank, got NULL");
    const tk::Parameter *parameter = argument_of(kernel, index);
    require(parameter, "argument index out of range");
    std::vector<tk::Scalar> variables(dims, dims + kernel->kernel.dims().size());
    tk::Extents extents = tk::shape_of(*parameter, variables).value();
    std::copy(extents.begin(), extents.end(), shape);
    *rank = static_cast<int32_t>(extents.size());
  });
}

tk_status tk_kernel_shape_for(const tk_kernel *kernel, size_t index, const tk_value *values,
                              size_t count, int64_t *shape, int32_t *rank) {
  return guarded([&] {
    require(kernel && shape && rank && (values || count == 0),
            "expected kernel, values, shape and rank, got NULL");
    const tk::Parameter *parameter = argument_of(kernel, index);
    require(parameter, "argument index out of range");
    const tk::Signature &signature = kernel->kernel.signature();
    std::vector<std::optional<tk::Extents>> shapes(signature.num_tensors());
    std::vector<std::optional<tk::Scalar>> scalars(signature.num_scalars());
    for (const tk::NamedValue &value : named_values(kernel, values, count)) {
      if (const auto *view = std::get_if<tk::TensorView>(&value.value)) {
        if (auto tensor = signature.find_tensor(value.name))
          shapes[*tensor] = view->shape;
      } else if (auto scalar = signature.find_scalar(value.name)) {
        scalars[*scalar] = std::get<tk::Scalar>(value.value);
      }
    }
    std::vector<std::optional<int64_t>> solved = tk::solve_dims(signature, shapes).value();
    std::vector<int64_t> dims;
    for (size_t d = 0; d < solved.size(); ++d) {
      if (!solved[d])
        throw tk::Error(tk::ErrorCode::invalid_argument,
                        "no argument determines dimension '" + signature.dims[d] + "'",
                        {signature.span});
      dims.push_back(*solved[d]);
    }
    std::vector<tk::Scalar> variables = tk::complete_variables(signature, dims, scalars).value();
    tk::check_scalar_extents(signature, shapes, variables).value();
    tk::Extents extents = tk::shape_of(*parameter, variables).value();
    std::copy(extents.begin(), extents.end(), shape);
    *rank = static_cast<int32_t>(extents.size());
  });
}

tk_status tk_kernel_launch(const tk_kernel *kernel, void *stream, const tk_value *values,
                           size_t count) {
  return guarded([&] {
    require(kernel && (values || count == 0), "expected kernel and values, got NULL");
    tk::detail::KernelImpl &impl = tk::detail::KernelAccess::impl(kernel->kernel);
    const std::span<const tk_value> all(values, count);
    const tk::detail::CallKey key(all);
    if (!impl.launch_known(tk::Stream(stream), all, key))
      impl.launch(tk::Stream(stream),
                  tk::detail::sort_named(impl.signature(), named_values(kernel, values, count)),
                  &key);
  });
}

tk_status tk_kernel_prepare(const tk_kernel *kernel, const tk_value *values, size_t count) {
  return guarded([&] {
    require(kernel && (values || count == 0), "expected kernel and values, got NULL");
    kernel->kernel.prepare_named(named_values(kernel, values, count));
  });
}

tk_status tk_kernel_prepare_sizes(const tk_kernel *kernel, const tk_sizes *sizes, size_t count,
                                  uint32_t threads, tk_progress progress, void *context,
                                  size_t *variants) {
  return guarded([&] {
    require(kernel && (sizes || count == 0), "expected kernel and sizes, got NULL");
    tk::SizeRequest request;
    tk::PrepareOptions options;
    options.threads = threads;
    if (progress)
      options.progress = [=](size_t done, size_t total) {
        if (progress(context, done, total) != 0)
          throw tk::Error(tk::ErrorCode::interrupted, "the progress function ended the work");
      };
    for (size_t i = 0; i < count; ++i)
      add_sizes(sizes[i], request, options);
    const size_t found = kernel->kernel.prepare_sizes(request, options);
    if (variants)
      *variants = found;
  });
}

tk_status tk_kernel_bind(const tk_kernel *kernel, const tk_value *values, size_t count,
                         tk_bound **bound) {
  return guarded([&] {
    require(kernel && bound && (values || count == 0),
            "expected kernel, values and bound, got NULL");
    *bound = new tk_bound{kernel->kernel.bind_named(named_values(kernel, values, count))};
  });
}

tk_status tk_bound_launch(const tk_bound *bound, void *stream, void *const *pointers,
                          size_t count) {
  return guarded([&] {
    require(bound && (pointers || count == 0), "expected bound and pointers, got NULL");
    bound->bound.launch(tk::Stream(stream), std::span(pointers, count));
  });
}

void tk_bound_free(tk_bound *bound) { delete bound; }

tk_status tk_kernel_text(const tk_kernel *kernel, const char *stage, const char *target,
                         char **text, size_t *size) {
  return guarded([&] {
    require(kernel && stage && text, "expected kernel, stage and text, got NULL");
    give_text(kernel->kernel.stage(stage, text_or_empty(target)), text, size);
  });
}

tk_status tk_kernel_text_for(const tk_kernel *kernel, const char *stage, const char *target,
                             const int64_t *dims, size_t count, char **text, size_t *size) {
  return guarded([&] {
    require(kernel && stage && text && (dims || count == 0),
            "expected kernel, stage, dims and text, got NULL");
    std::vector<std::optional<int64_t>> known;
    for (size_t d = 0; d < count; ++d)
      known.push_back(dims[d] == -1 ? std::nullopt : std::optional(dims[d]));
    give_text(kernel->kernel.stage_for(stage, text_or_empty(target), known), text, size);
  });
}

void tk_text_free(char *text) { std::free(text); }
