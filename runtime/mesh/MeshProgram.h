// The local kernels and the plan of a sharded kernel.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/Kernel.h"
#include "runtime/mesh/StepBounds.h"
#include "tk/mesh.h"

namespace tk::detail {

/// What all ranks of a process share of a kernel on a mesh.
struct MeshProgram {
  ShardedKernel sharded;
  std::vector<Kernel> kernels;
  std::vector<StepBounds> bounds; ///< by step; none if there is no cost model
  std::string digest;             ///< of the local kernels, the plan and the bounds
};

/// The program of a kernel on a mesh, for sizes of about `dims`, which may be unknown.
std::shared_ptr<const MeshProgram> find_program(KernelImpl &kernel, const Mesh &mesh,
                                                std::span<const int64_t> dims = {});

} // namespace tk::detail
