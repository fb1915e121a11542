// What sm_90a adds: included after tk_device.cuh by the kernels that use it, so that others do not
// take longer to compile.
#pragma once

// clang-format off: each uses those before it.
#include "phase_barrier.cuh"
#include "bulk_copy.cuh"
#include "roles.cuh"
#include "cluster.cuh"
#include "warpgroup.cuh"
// clang-format on
