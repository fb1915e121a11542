#include "runtime/cpu/CpuLaunch.h"

#include "runtime/Bind.h"
#include "runtime/Interrupt.h"
#include "runtime/LaunchArray.h"
#include "runtime/cpu/ThreadPool.h"

#include <cstdlib>
#include <cstring>

namespace tk::cpu {
namespace {

constexpr size_t scratch_alignment = 256;

void parallel_for(void *pool, int64_t count, int64_t grain, tk_cpu_body body, void *context) {
  static_cast<ThreadPool *>(pool)->parallel_for(count, grain, body, context);
}

struct FreeMemory {
  void operator()(void *memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, FreeMemory>;

Memory allocate(int64_t bytes) {
  if (bytes == 0)
    return nullptr;
  void *memory = std::aligned_alloc(scratch_alignment, static_cast<size_t>(bytes));
  if (!memory)
    throw Error(ErrorCode::out_of_memory,
                "cannot allocate " + std::to_string(bytes) + " bytes of scratch memory");
  return Memory(memory);
}

ResolvedLaunch resolve_launch(const Launch &launch, const Signature &signature,
                              std::span<const Scalar> variables,
                              std::span<const TensorView> tensors) {
  ResolvedLaunch result;
  for (const Arg &arg : launch.args) {
    switch (arg.kind) {
    case ArgKind::tensor:
      result.addresses.push_back(arg.index);
      break;
    case ArgKind::scratch:
      result.addresses.push_back(signature.num_tensors() + arg.index);
      break;
    case ArgKind::integer:
      if (is_float(arg.dtype))
        result.floats.push_back(arg.value.evaluate(variables).value().as_double());
      else
        result.ints.push_back(arg.value.evaluate_integer(variables).value());
      break;
    case ArgKind::stride:
      result.ints.push_back(tensors[arg.index].strides[arg.axis]);
      break;
    case ArgKind::scalar: {
      const Scalar &value = variables[signature.dims.size() + arg.index];
      if (is_float(signature.scalar(arg.index).dtype))
        result.floats.push_back(value.as_double());
      else
        result.ints.push_back(value.i);
      break;
    }
    case ArgKind::tensor_map:
      throw Error(ErrorCode::internal, "a tensor map in a launch on the CPU", {launch.span});
    }
  }
  return result;
}

} // namespace

ResolvedPlan resolve_plan(const detail::Executable &executable, const Signature &signature,
                          std::span<const Scalar> variables, std::span<const TensorView> tensors) {
  ResolvedPlan resolved;
  resolved.executable = &executable;
  resolved.num_tensors = signature.num_tensors();
  const std::vector<Launch> &launches = executable.plan.launches;
  if (executable.entries.size() != launches.size())
    throw Error(ErrorCode::internal, "expected one CPU entry a launch");
  for (size_t i = 0; i < launches.size(); ++i) {
    resolved.launches.push_back(resolve_launch(launches[i], signature, variables, tensors));
    resolved.launches.back().entry = executable.entries[i];
  }
  detail::ScratchLayout layout = detail::lay_out_scratch(executable.plan, variables);
  resolved.scratch_offsets = std::move(layout.offsets);
  resolved.scratch_bytes = std::move(layout.bytes);
  resolved.scratch_total = layout.total;
  return resolved;
}

void launch_plan(const ResolvedPlan &resolved, std::span<void *const> pointers) {
  // A launch is interrupted between two pieces of a loop, and behind each launch of a plan.
  const bool has_one = resolved.launches.size() == 1;
  using Scope = detail::InterruptScope;
  Scope scope(has_one ? Scope::From::long_work : Scope::From::now);
  Memory scratch = allocate(resolved.scratch_total);
  auto *base = static_cast<char *>(scratch.get());
  const LaunchPlan &plan = resolved.executable->plan;
  for (size_t i = 0; i < plan.scratch.size(); ++i)
    if (plan.scratch[i].zeroed && resolved.scratch_bytes[i] > 0)
      std::memset(base + resolved.scratch_offsets[i], 0,
                  static_cast<size_t>(resolved.scratch_bytes[i]));
  ThreadPool &pool = ThreadPool::shared();
  detail::LaunchArray<void *> addresses;
  for (size_t i = 0; i < resolved.launches.size(); ++i) {
    const ResolvedLaunch &launch = resolved.launches[i];
    addresses.resize(launch.addresses.size());
    for (size_t a = 0; a < launch.addresses.size(); ++a) {
      const uint32_t number = launch.addresses[a];
      addresses[a] = number < resolved.num_tensors
                         ? pointers[number]
                         : base + resolved.scratch_offsets[number - resolved.num_tensors];
    }
    tk_cpu_args args{addresses.data(),
                     launch.ints.data(),
                     launch.floats.data(),
                     parallel_for,
                     &pool,
                     static_cast<int64_t>(pool.num_threads())};
    if (int32_t code = launch.entry(&args))
      throw Error(ErrorCode::launch_failed,
                  "'" + plan.launches[i].symbol + "' failed with code " + std::to_string(code),
                  {plan.launches[i].span});
    detail::stop_if_interrupted();
  }
}

} // namespace tk::cpu
