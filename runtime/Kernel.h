// What stands behind tk::Module and tk::Kernel.
#pragma once

#include <future>
#include <map>
#include <mutex>
#include <unordered_map>

#include "runtime/Bind.h"

namespace tk::detail {

class ModuleImpl {
public:
  std::shared_ptr<CompiledModule> compiled;
  CompileOptions options;
  std::string target; ///< resolved
  std::vector<std::shared_ptr<KernelImpl>> kernels;

  bool on_gpu() const { return target.starts_with("sm_"); }
};

class KernelImpl : public std::enable_shared_from_this<KernelImpl> {
public:
  KernelImpl(std::shared_ptr<CompiledModule> compiled, size_t index, std::string target,
             CompileOptions options)
      : m_compiled(std::move(compiled)), m_index(index), m_target(std::move(target)),
        m_options(std::move(options)) {
    auto checks = m_compiled->gather_checks();
    if (checks && !checks->signatures()[m_index].results.empty())
      m_checks = std::make_shared<KernelImpl>(std::move(checks), m_index, m_target, m_options);
  }

  const Signature &signature() const { return m_compiled->signatures()[m_index]; }
  bool on_gpu() const { return m_target.starts_with("sm_"); }
  const std::string &target() const { return m_target; }

  /// Checks, compiles, loads. `stream` is asked whether it captures: then nothing may be compiled.
  std::shared_ptr<const BoundImpl> bind(const Arguments &arguments, const Stream *stream);
  void launch(Stream stream, const Arguments &arguments);
  void prepare(const Arguments &arguments);
  Expected<std::string> stage(std::string_view stage, std::string_view target, const Facts &facts);
  std::shared_ptr<const Variant> variant(const Facts &facts, const Stream *stream);
  /// Facts that assume nothing where none are given.
  Facts complete(const Facts &facts) const;

private:
  std::shared_ptr<const Variant> specialise(const Facts &facts);
  std::shared_ptr<BoundImpl> make_bound(CheckedArguments checked, const Stream *stream);
  std::shared_ptr<cuda::ScratchPool> scratch_pool(cuda::DeviceContext &device);

  std::shared_ptr<const BoundImpl> bind_checks(const CheckedArguments &checked,
                                               const Stream *stream);

  std::shared_ptr<CompiledModule> m_compiled;
  size_t m_index;
  std::string m_target;
  CompileOptions m_options;
  std::shared_ptr<KernelImpl> m_checks; ///< of the gathers; null where there are none

  std::mutex m_mutex;
  std::map<std::string, std::shared_future<std::shared_ptr<const Variant>>> m_variants;
  std::map<int, std::shared_ptr<cuda::ScratchPool>> m_scratch;
  /// Bound kernels by the exact sizes, strides, alignments and scalars of a call.
  std::unordered_map<std::string, std::shared_ptr<const BoundImpl>> m_bound;
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

} // namespace tk::detail
