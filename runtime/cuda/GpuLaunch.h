// Launching a resolved plan on a GPU.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/GpuModule.h"
#include "tk/backend.h"

namespace tk::cuda {

/// A tensor map for given sizes, encoded again only where its tensor has moved. Used from several
/// threads at once.
class EncodedMap {
public:
  EncodedMap(const TensorMap &map, detail::ResolvedMap resolved);
  /// The map for a tensor at `address`. Throws `invalid_argument`, `driver_too_old` or
  /// `launch_failed`.
  void at(DeviceContext &device, void *address, CUtensorMap &encoded) const;

private:
  const TensorMap *m_map;
  detail::ResolvedMap m_resolved;
  mutable std::mutex m_mutex;
  mutable bool m_valid = false;
  mutable void *m_address = nullptr;
  mutable CUtensorMap m_encoded{};
};

/// One launch with everything computed but the addresses.
struct ResolvedLaunch {
  CUfunction function = nullptr;
  LaunchConfig config{};
  LaunchAttribute cluster{};
  bool has_cluster = false;
  bool empty = false;           ///< a grid of no blocks
  bool would_crowd = false;     ///< does not begin as the launch before it ends (would_crowd)
  std::vector<uint64_t> values; ///< the bits of each argument; addresses are filled in at launch
  const std::string *description = nullptr; ///< "'attn' (attn.tk:41)"
};

/// A plan for given sizes, ready to be launched from any thread.
struct ResolvedPlan {
  const LaunchPlan *plan = nullptr;
  std::shared_ptr<GpuModule> module;
  std::vector<ResolvedLaunch> launches;
  std::vector<std::unique_ptr<const EncodedMap>> maps;
  std::vector<int64_t> scratch_offsets;
  std::vector<int64_t> scratch_bytes;
};

/// The bits of an argument of a launch, as the kernel takes it; 0 for an address. Throws
/// `overflow`.
uint64_t argument_bits(const Arg &arg, const Launch &launch, const Signature &signature,
                       std::span<const Scalar> variables, std::span<const TensorView> tensors);

/// Could a launch of so many blocks end up on half of the multiprocessors if it begins as the
/// launch before it ends? Its blocks then go where blocks end first, as many as a multiprocessor
/// holds, and all of them are placed before the others are free. On a free GPU each has an equal
/// share. `resident` is the number of blocks that all multiprocessors hold together. Launches with
/// fewer blocks than multiprocessors are short as a rule, and begin early.
bool would_crowd(uint64_t blocks, uint64_t resident, uint64_t processors);

/// Loads the functions and computes grids and argument values. Throws typed errors.
ResolvedPlan resolve_plan(const LaunchPlan &plan, const Signature &signature,
                          std::shared_ptr<GpuModule> module, std::span<const Scalar> variables,
                          std::span<const TensorView> tensors);

/// Launches on the addresses of the tensors; `scratch` is the base of the scratch memory.
void launch_plan(const ResolvedPlan &resolved, std::span<void *const> pointers, CUdeviceptr scratch,
                 void *stream);

} // namespace tk::cuda
