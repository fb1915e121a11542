// What stands behind tk::Module and tk::Kernel.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "runtime/Background.h"
#include "runtime/Bind.h"
#include "runtime/KnownCalls.h"

namespace tk::detail {

class ModuleImpl {
public:
  std::shared_ptr<CompiledModule> compiled;
  CompileOptions options;
  std::string target; ///< resolved
  std::vector<std::shared_ptr<KernelImpl>> kernels;
  /// Whether compiling is an error; the kernels share it.
  std::shared_ptr<std::atomic<bool>> frozen = std::make_shared<std::atomic<bool>>(false);
  /// What compiles beside calls; the kernels share it.
  std::shared_ptr<Background> background = std::make_shared<Background>();

  /// Makes the kernels of what is compiled.
  void add_kernels();

  bool on_gpu() const { return target.starts_with("sm_"); }
};

class KernelImpl : public std::enable_shared_from_this<KernelImpl> {
public:
  KernelImpl(std::shared_ptr<CompiledModule> compiled, size_t index, std::string target,
             CompileOptions options,
             std::shared_ptr<const std::atomic<bool>> frozen =
                 std::make_shared<const std::atomic<bool>>(false),
             std::shared_ptr<Background> background = std::make_shared<Background>())
      : m_compiled(std::move(compiled)), m_index(index), m_target(std::move(target)),
        m_options(std::move(options)), m_frozen(std::move(frozen)),
        m_background(std::move(background)) {
    auto checks = m_compiled->gather_checks();
    if (checks && !checks->signatures()[m_index].results.empty())
      m_checks = std::make_shared<KernelImpl>(std::move(checks), m_index, m_target, m_options,
                                              m_frozen, m_background);
  }

  const Signature &signature() const { return m_compiled->signatures()[m_index]; }
  bool on_gpu() const { return m_target.starts_with("sm_"); }
  const std::string &target() const { return m_target; }
  CompiledModule &compiled() const { return *m_compiled; }
  size_t index() const { return m_index; }
  const CompileOptions &options() const { return m_options; }

  /// Checks, compiles, loads. Without a stream, the call's own variant is compiled at once.
  std::shared_ptr<const BoundImpl> bind(const Arguments &arguments, const Stream *stream);
  /// Launches a call that has passed every check before, and says whether it has.
  bool launch_known(Stream stream, std::span<const tk_value> values, const CallKey &key);
  /// Checks and launches; a call with a key is known from then on.
  void launch(Stream stream, const Arguments &arguments, const CallKey *key = nullptr);
  void launch_named(Stream stream, std::span<const NamedValue> inputs,
                    std::span<const NamedValue> outputs);
  void prepare(const Arguments &arguments);
  size_t prepare_sizes(const SizeRequest &request, const PrepareOptions &options);
  Expected<std::string> stage(std::string_view stage, std::string_view target, const Facts &facts);
  Expected<std::string> text_for(std::string_view stage, std::string_view target,
                                 std::span<const std::optional<int64_t>> dims);
  /// `dims` are the sizes that need it, for messages; empty where no launch does.
  std::shared_ptr<const Variant> variant(const Facts &facts, std::span<const int64_t> dims = {});
  /// What code for a target, by default the module's, depends on: of facts that assume nothing
  /// where none are given, and of the dimensions that are fixed.
  Facts complete(const Facts &facts, std::string_view target = {}) const;

private:
  /// A variant that prepared sizes select: its facts, and the variables of the first and the last
  /// of these sizes.
  struct Job {
    KernelImpl *kernel = nullptr;
    Facts facts;
    std::vector<Scalar> first, last;
    std::shared_ptr<const Variant> variant;
  };
  void add_jobs(const SizeRequest &request, const PrepareOptions &options, std::vector<Job> &jobs);
  void set_classes(const SizeRequest &request);
  /// The facts of a launch: of the classes that its sizes are in, where they are in any.
  Facts facts_of_launch(const CheckedArguments &checked);
  /// The arguments of the kernel that checks the gathers of a launch.
  Arguments arguments_of_checks(const CheckedArguments &checked) const;
  /// Compiles a job's variant, and loads it.
  void run(Job &job);
  /// Loads a variant's code on device 0 where there is one, and keeps it.
  void load(const Variant &variant);
  Error frozen_error(std::span<const int64_t> dims) const;
  /// The variant that a call runs, with the facts that it was compiled for: the one of `facts`, or
  /// a general one while that is compiled.
  std::shared_ptr<const Variant> variant_of_call(Facts &facts, const Stream *stream,
                                                 std::span<const int64_t> dims);
  /// Has the variant compiled in the background, once. `m_mutex` is held.
  void compile_later(const Facts &facts);
  void compile_in_background(const Facts &facts);
  std::shared_ptr<const Variant> specialise(const Facts &facts);
  std::shared_ptr<BoundImpl> make_bound(CheckedArguments checked, const Stream *stream);
  std::shared_ptr<cuda::ScratchPool> scratch_pool(cuda::DeviceContext &device);

  std::shared_ptr<const BoundImpl> bind_checks(const CheckedArguments &checked,
                                               const Stream *stream);

  std::shared_ptr<CompiledModule> m_compiled;
  size_t m_index;
  std::string m_target;
  CompileOptions m_options;
  std::shared_ptr<const std::atomic<bool>> m_frozen;
  std::shared_ptr<Background> m_background;
  std::shared_ptr<KernelImpl> m_checks; ///< of the gathers; null where there are none

  std::mutex m_mutex;
  std::map<std::string, std::shared_future<std::shared_ptr<const Variant>>> m_variants;
  std::set<std::string> m_compiled_later; ///< keys of variants that went to the background
  uint64_t m_improved = 0;                ///< how many of these are there
  std::map<int, std::shared_ptr<cuda::ScratchPool>> m_scratch;
  /// How the sizes of a dimension were prepared: those of a list have their own keys.
  struct PreparedSizes {
    std::vector<SizeClass> classes;
    std::set<int64_t> listed;
  };
  std::map<size_t, PreparedSizes> m_prepared;             ///< by dimension
  std::vector<std::shared_ptr<cuda::GpuModule>> m_loaded; ///< ahead of launches
  /// Bound kernels by the exact sizes, strides, alignments and scalars of a call.
  std::unordered_map<std::string, std::shared_ptr<const BoundImpl>> m_bound;
  KnownCalls m_known;
};

inline Error empty_handle() {
  return Error(ErrorCode::invalid_argument, "this handle is empty: nothing was assigned to it");
}
/// What a handle holds; throws where that is nothing.
template <typename T> T &held(const std::shared_ptr<T> &impl) {
  if (!impl)
    throw empty_handle();
  return *impl;
}

/// Runs something that throws tk::Error, and returns it as a value.
template <typename F> auto capture(F &&function) -> Expected<decltype(function())> {
  using Result = decltype(function());
  try {
    try {
      if constexpr (std::is_void_v<Result>) {
        function();
        return {};
      } else {
        return function();
      }
    } catch (const Error &error) {
      return error; // a copy: others may wait for the same one
    } catch (const std::bad_alloc &) {
      throw;
    } catch (const std::exception &error) {
      return Error(ErrorCode::internal, error.what());
    }
  } catch (const std::bad_alloc &) {
    // Also where copying an error took more memory than there was. The text is short enough for
    // the string to need none.
    return Error(ErrorCode::out_of_memory, "out of memory");
  }
}

/// What stands behind a kernel's handle.
struct KernelAccess {
  static KernelImpl &impl(const Kernel &kernel) { return held(kernel.m_impl); }
  static Kernel make(std::shared_ptr<KernelImpl> impl) {
    Kernel kernel;
    kernel.m_impl = std::move(impl);
    return kernel;
  }
};

} // namespace tk::detail
