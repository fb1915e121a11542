// Meshes of GPUs that communicate through NCCL. The library is loaded on first use: functions here
// throw `no_nccl`, `nccl_too_old` or `nccl_failed`.
#pragma once

#include <string>

#include "tk/mesh.h"

namespace tk {

/// "2.27.3".
std::string nccl_version();

/// A rank of a communicator (ncclComm_t) that the caller owns, and keeps while the mesh lives. The
/// communicator's ranks are those of the axes in row-major order. `device` is the rank's GPU.
Mesh mesh_of_nccl(void *communicator, std::span<const MeshAxis> axes, int device = 0,
                  MeshOptions options = {});

/// What one rank makes, and the others get by other means, to join one group.
std::string nccl_unique_id();
/// Joins the group of an id as a rank; returns once all ranks have.
Mesh join_nccl(const std::string &id, int64_t rank, std::span<const MeshAxis> axes, int device = 0,
               MeshOptions options = {});

} // namespace tk
