// Launching a plan on the CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tk/backend.h"

namespace tk::cpu {

struct ResolvedLaunch {
  tk_cpu_entry entry = nullptr;
  std::vector<uint32_t> addresses; ///< tensor number, or num_tensors + scratch number
  std::vector<int64_t> ints;
  std::vector<double> floats;
};

/// A plan for given sizes, ready to be launched from any thread.
struct ResolvedPlan {
  const detail::Executable *executable = nullptr;
  unsigned num_tensors = 0;
  std::vector<ResolvedLaunch> launches;
  std::vector<int64_t> scratch_offsets;
  std::vector<int64_t> scratch_bytes;
  int64_t scratch_total = 0;
};

ResolvedPlan resolve_plan(const detail::Executable &executable, const Signature &signature,
                          std::span<const Scalar> variables, std::span<const TensorView> tensors);
/// Runs the launches in order and returns when all is done.
void launch_plan(const ResolvedPlan &resolved, std::span<void *const> pointers);

} // namespace tk::cpu
