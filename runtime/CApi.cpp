// The C interface on top of the C++ one: errors, and modules with the texts that are compiled.
// CApiKernel.cpp has the calls of kernels. No exception leaves these files.
#include "tk/tk_c.h"

#include "runtime/CApiHandles.h"
#include "tk/bundle.h"

using tk::c_api::guarded;
using tk::c_api::require;
using tk::c_api::text_or_empty;

namespace {

thread_local std::string last_message, last_place;

static_assert(static_cast<int>(tk::ErrorCode::compile_failed) + 1 == TK_COMPILE_FAILED);
static_assert(static_cast<int>(tk::ErrorCode::context_poisoned) + 1 == TK_CONTEXT_POISONED);
static_assert(static_cast<int>(tk::ErrorCode::internal) + 1 == TK_INTERNAL);
static_assert(static_cast<int>(tk::ErrorCode::index_out_of_bounds) + 1 == TK_INDEX_OUT_OF_BOUNDS);
static_assert(static_cast<int>(tk::ErrorCode::interrupted) + 1 == TK_INTERRUPTED);
static_assert(static_cast<int>(tk::ErrorCode::frozen) + 1 == TK_FROZEN);
static_assert(static_cast<int>(tk::ErrorCode::nccl_failed) + 1 == TK_NCCL_FAILED);

tk_status wrap(tk::Module module, tk_module **out) {
  auto handle = std::make_unique<tk_module>();
  handle->names = module.kernel_names();
  handle->diagnostics = module.diagnostics();
  handle->module = std::move(module);
  *out = handle.release();
  return TK_OK;
}

/// `disabled` holds names of passes, separated by commas; texts may be null.
tk::CompileOptions options_of(const char *file_name, const char *target, const char *disabled,
                              const char *schedule) {
  tk::CompileOptions options;
  if (file_name)
    options.file_name = file_name;
  options.target = text_or_empty(target);
  if (schedule && *schedule)
    options.schedule = schedule;
  std::string_view names = disabled ? disabled : "";
  while (!names.empty()) {
    size_t comma = std::min(names.find(','), names.size());
    options.disabled_passes.emplace_back(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return options;
}

tk_status compile_text(const char *source, size_t size, const tk::CompileOptions &options,
                       tk_module **module) {
  return guarded([&] {
    require(source && module, "expected source and module, got NULL");
    wrap(tk::compile(std::string_view(source, size), options), module);
  });
}

} // namespace

tk_status tk::c_api::fail(const tk::Error &error) {
  last_message = error.message();
  last_place = error.span().str();
  return static_cast<tk_status>(static_cast<int>(error.code()) + 1);
}

void tk::c_api::require(bool condition, const char *what) {
  if (!condition)
    throw tk::Error(tk::ErrorCode::invalid_argument, what);
}

const char *tk_version(void) { return "0.1.0"; }
const char *tk_last_error(void) { return last_message.c_str(); }
const char *tk_last_error_place(void) { return last_place.c_str(); }

tk_status tk_compile(const char *source, size_t size, const char *file_name, const char *target,
                     tk_module **module) {
  return tk_compile_with(source, size, file_name, target, nullptr, nullptr, module);
}

tk_status tk_compile_with(const char *source, size_t size, const char *file_name,
                          const char *target, const char *disabled, const char *schedule,
                          tk_module **module) {
  return compile_text(source, size, options_of(file_name, target, disabled, schedule), module);
}

tk_status tk_compile_checked(const char *source, size_t size, const char *file_name,
                             const char *target, const char *disabled, const char *schedule,
                             tk_module **module) {
  tk::CompileOptions options = options_of(file_name, target, disabled, schedule);
  options.checked = true;
  return compile_text(source, size, options, module);
}

tk_status tk_compile_file(const char *path, const char *target, tk_module **module) {
  return guarded([&] {
    require(path && module, "expected path and module, got NULL");
    tk::CompileOptions options;
    options.target = text_or_empty(target);
    wrap(tk::compile_file(path, options), module);
  });
}

tk_status tk_load_bundle(const char *path, tk_module **module) {
  return guarded([&] {
    require(path && module, "expected path and module, got NULL");
    wrap(tk::load_bundle(path), module);
  });
}

void tk_module_free(tk_module *module) { delete module; }
const char *tk_module_target(const tk_module *module) { return module->module.target().c_str(); }
const char *tk_module_diagnostics(const tk_module *module) { return module->diagnostics.c_str(); }
size_t tk_module_num_kernels(const tk_module *module) { return module->names.size(); }
const char *tk_module_kernel_name(const tk_module *module, size_t index) {
  return index < module->names.size() ? module->names[index].c_str() : nullptr;
}

tk_status tk_module_kernel(const tk_module *module, const char *name, tk_kernel **kernel) {
  return guarded([&] {
    require(module && kernel, "expected module and kernel, got NULL");
    require(name || module->names.size() == 1, "expected a kernel's name: there is not just one");
    auto handle = std::make_unique<tk_kernel>();
    handle->kernel = module->module.kernel(name ? std::string_view(name) : module->names.front());
    handle->signature = handle->kernel.signature().str();
    *kernel = handle.release();
  });
}

void tk_kernel_free(tk_kernel *kernel) { delete kernel; }

tk_status tk_module_freeze(tk_module *module) {
  return guarded([&] {
    require(module, "expected module, got NULL");
    module->module.freeze();
  });
}

tk_status tk_module_compile_in_background(tk_module *module) {
  return guarded([&] {
    require(module, "expected module, got NULL");
    module->module.compile_in_background();
  });
}

tk_status tk_module_use_few_keys(tk_module *module) {
  return guarded([&] {
    require(module, "expected module, got NULL");
    module->module.use_few_keys();
  });
}

tk_status tk_module_wait(tk_module *module) {
  return guarded([&] {
    require(module, "expected module, got NULL");
    module->module.wait();
  });
}

tk_status tk_module_resources(const tk_module *module, const char *kernel, tk_resources *resources,
                              size_t *count) {
  return guarded([&] {
    require(module && kernel && count && (resources || *count == 0),
            "expected module, kernel, resources and count, got NULL");
    std::vector<tk::Resources> launches = module->module.resources(kernel);
    for (size_t i = 0; i < std::min(*count, launches.size()); ++i) {
      const tk::Resources &launch = launches[i];
      tk_resources &out = resources[i];
      out = {};
      launch.symbol.copy(out.symbol, sizeof out.symbol - 1);
      out.registers = launch.registers;
      out.shared_bytes = launch.shared_bytes;
      out.spill_bytes = launch.spill_bytes;
      out.blocks_per_sm = launch.blocks_per_sm;
      out.max_threads = launch.max_threads;
    }
    *count = launches.size();
  });
}
