// Launching a resolved plan on a GPU.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/GpuModule.h"
#include "tk/plan.h"

namespace tk::cuda {

/// A tensor map but for its address.
struct ResolvedMap {
  std::vector<uint64_t> extents;
  std::vector<uint64_t> strides; ///< bytes
  bool empty = false;
};

/// One launch with everything computed but the addresses.
struct ResolvedLaunch {
  CUfunction function = nullptr;
  LaunchConfig config{};
  LaunchAttribute cluster{};
  bool has_cluster = false;
  bool empty = false;           ///< a grid of no blocks
  std::vector<uint64_t> values; ///< the bits of each argument; addresses are filled in at launch
  std::shared_ptr<const std::string> description; ///< "'attn' (attn.tk:41)"
};

/// A plan for given sizes, ready to be launched from any thread.
struct ResolvedPlan {
  const LaunchPlan *plan = nullptr;
  std::shared_ptr<GpuModule> module;
  std::vector<ResolvedLaunch> launches;
  std::vector<ResolvedMap> maps;
  std::vector<int64_t> scratch_offsets;
  std::vector<int64_t> scratch_bytes;
};

ResolvedMap resolve_map(const TensorMap &map, std::span<const Scalar> variables,
                        std::span<const TensorView> tensors);
void encode_map(DeviceContext &device, const TensorMap &map, const ResolvedMap &resolved,
                void *address, CUtensorMap &encoded);

/// The bits of an argument of a launch, as the kernel takes it; 0 for an address. Throws
/// `overflow`.
uint64_t argument_bits(const Arg &arg, const Launch &launch, const Signature &signature,
                       std::span<const Scalar> variables, std::span<const TensorView> tensors);

/// Loads the functions and computes grids and argument values. Throws typed errors.
ResolvedPlan resolve_plan(const LaunchPlan &plan, const Signature &signature,
                          std::shared_ptr<GpuModule> module, std::span<const Scalar> variables,
                          std::span<const TensorView> tensors);

/// Launches on the addresses of the tensors; `scratch` is the base of the scratch memory.
void launch_plan(const ResolvedPlan &resolved, std::span<void *const> pointers, CUdeviceptr scratch,
                 void *stream);

} // namespace tk::cuda
