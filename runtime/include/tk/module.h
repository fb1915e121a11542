// Compiled modules and kernels: what a program that uses tk holds.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "tk/backend.h"
#include "tk/error.h"
#include "tk/plan.h"
#include "tk/prepare.h"
#include "tk/tensor.h"

namespace tk {

/// Where GPU work is ordered: a CUstream or cudaStream_t; null is the legacy default stream. CPU
/// launches ignore it and are done when they return.
struct Stream {
  void *handle = nullptr;
  Stream() = default;
  Stream(void *handle) : handle(handle) {}
};

/// A tensor or a scalar, as a caller passes it.
using Value = std::variant<TensorView, Scalar>;

/// An argument by name.
struct NamedValue {
  std::string_view name;
  Value value;
  NamedValue(std::string_view name, TensorView view) : name(name), value(view) {}
  NamedValue(std::string_view name, Scalar scalar) : name(name), value(scalar) {}
};

/// What a compiled GPU kernel uses, for one launch of the plan.
struct Resources {
  std::string symbol;
  int registers = 0;
  int shared_bytes = 0; ///< static and dynamic
  int spill_bytes = 0;  ///< local memory a thread
  int blocks_per_sm = 0;
  int max_threads = 0;
};

namespace detail {
class KernelImpl;
class ModuleImpl;
class BoundImpl;
struct KernelAccess;
} // namespace detail

/// A kernel bound to shapes, strides, types, scalars and a device: checked once, launched often.
/// Launches on one stream, or on several where the plan has no scratch, may overlap freely.
class BoundKernel {
public:
  /// Launches on addresses in the order of Signature::tensor (tensor parameters, then results).
  /// Checks alignment only. Asynchronous on a GPU.
  void launch(Stream stream, std::span<void *const> pointers) const;
  Status try_launch(Stream stream, std::span<void *const> pointers) const;
  void launch(Stream stream, std::initializer_list<void *> pointers) const {
    launch(stream, std::span<void *const>(pointers.begin(), pointers.size()));
  }
  /// The dimensions' values, in the order of Signature::dims.
  const std::vector<int64_t> &dims() const;
  /// Bytes of scratch memory that one launch uses.
  int64_t scratch_bytes() const;
  /// The plan of the variant that these shapes selected.
  const LaunchPlan &plan() const;
  const detail::Executable &executable() const;

private:
  friend class detail::KernelImpl;
  friend class Kernel;
  std::shared_ptr<detail::KernelImpl> m_kernel; ///< keeps the signature and the code alive
  std::shared_ptr<const detail::BoundImpl> m_impl;
};

/// A kernel of a module. Immutable, cheap to copy, usable from any thread.
class Kernel {
public:
  const Signature &signature() const;
  const std::string &name() const { return signature().name; }
  const std::vector<std::string> &dims() const { return signature().dims; }

  /// Checks the arguments by name, compiles where needed, launches.
  void operator()(Stream stream, std::span<const NamedValue> inputs,
                  std::span<const NamedValue> outputs) const;
  void operator()(Stream stream, std::initializer_list<NamedValue> inputs,
                  std::initializer_list<NamedValue> outputs) const {
    (*this)(stream, std::span(inputs.begin(), inputs.size()),
            std::span(outputs.begin(), outputs.size()));
  }
  Status try_launch(Stream stream, std::span<const NamedValue> inputs,
                    std::span<const NamedValue> outputs) const;

  /// Checks the arguments once, compiles and loads the variant, and returns the fast path. Values
  /// are given in the order of the signature: parameters, then results; trailing scalars with a
  /// default that are left out are filled in. Addresses may be null: they come with the launch.
  BoundKernel bind(std::span<const Value> values) const;
  BoundKernel bind(std::initializer_list<Value> values) const {
    return bind(std::span(values.begin(), values.size()));
  }
  template <typename... V>
    requires(std::is_constructible_v<Value, const V &> && ...)
  BoundKernel bind(const V &...values) const {
    return bind({Value(values)...});
  }
  BoundKernel bind_named(std::span<const NamedValue> values) const;
  Expected<BoundKernel> try_bind(std::span<const Value> values) const;
  Expected<BoundKernel> try_bind_named(std::span<const NamedValue> values) const;

  /// Compiles, loads and reserves scratch for these arguments (as in bind), so that a launch with
  /// the same shapes allocates nothing and can be captured in a CUDA graph.
  void prepare(std::span<const Value> values) const;
  void prepare(std::initializer_list<Value> values) const {
    prepare(std::span(values.begin(), values.size()));
  }
  void prepare_named(std::span<const NamedValue> values) const;
  Status try_prepare(std::span<const Value> values) const;
  /// Compiles every variant that launches of dense tensors with these sizes select, several at
  /// once, and loads it on device 0. Returns how many there are. Every dimension must be given, or
  /// be fixed by CompileOptions::dims; combinations that break a constraint are left out. Tensors
  /// are taken to be aligned to 16 bytes. From then on each class of a range has one variant, but
  /// for sizes that are given in a list.
  size_t prepare_sizes(const SizeRequest &sizes, const PrepareOptions &options = {}) const;
  Expected<size_t> try_prepare_sizes(const SizeRequest &sizes,
                                     const PrepareOptions &options = {}) const;

  /// The text of a stage for a target ("" for the module's) and facts (none assumed by default).
  std::string stage(std::string_view stage, std::string_view target = {},
                    const Facts &facts = {}) const;
  /// The same for usual tensors of sizes that may be known, in the order of dims(); or a report:
  /// "explain", what the passes derived and declined; "inspect", what the code uses, as JSON;
  /// "cost", what the launches cost, as JSON.
  std::string stage_for(std::string_view stage, std::string_view target,
                        std::span<const std::optional<int64_t>> dims) const;

private:
  friend class Module;
  friend class detail::KernelImpl;
  friend struct detail::KernelAccess;
  std::shared_ptr<detail::KernelImpl> m_impl;
};

/// A compiled `.tk` file.
class Module {
public:
  std::vector<std::string> kernel_names() const;
  /// The kernel of that name; throws `invalid_argument` listing those there are.
  Kernel kernel(std::string_view name) const;
  Expected<Kernel> try_kernel(std::string_view name) const;
  /// The resolved target: "cpu", "emu" or "sm_…".
  const std::string &target() const;
  /// The warnings of the compilation, formatted.
  std::string diagnostics() const;

  /// From now on a call that would have to compile fails with `frozen`, which names the kernel and
  /// the sizes. It holds for all handles of this module and of its kernels.
  void freeze() const;
  bool is_frozen() const;

  /// Calls from now on do as with CompileOptions::background.
  void compile_in_background() const;
  /// Calls from now on do as with CompileOptions::few_keys. Call it before the first launch.
  void use_few_keys() const;
  /// Returns once nothing is compiled in the background. Calls then run their own variants.
  void wait() const;

  std::string ir(std::string_view kernel, std::string_view stage) const;
  std::string cuda(std::string_view kernel) const { return ir(kernel, "cuda"); }
  std::string ptx(std::string_view kernel) const { return ir(kernel, "ptx"); }
  /// What each launch uses on this machine's GPU, for a variant with the given facts.
  std::vector<Resources> resources(std::string_view kernel, const Facts &facts = {}) const;

  /// For the runtime itself: compilation and bundles make modules.
  explicit Module(std::shared_ptr<detail::ModuleImpl> impl) : m_impl(std::move(impl)) {}
  /// An empty handle, to be assigned to.
  Module() = default;

private:
  std::shared_ptr<detail::ModuleImpl> m_impl;
};

/// Compiles source text. Throws `compile_failed` with the diagnostics.
Module compile(std::string_view source, const CompileOptions &options = {});
Expected<Module> try_compile(std::string_view source, const CompileOptions &options = {});
/// Reads and compiles a file.
Module compile_file(const std::string &path, CompileOptions options = {});
Expected<Module> try_compile_file(const std::string &path, CompileOptions options = {});

/// "cpu", "emu" or "sm_…" from a requested target: "" is TK_TARGET, else "gpu" where there is one,
/// else "cpu"; "gpu" is the architecture of device 0.
Expected<std::string> resolve_target(std::string_view requested);

} // namespace tk
