// Which means of transfer is the fastest for a step of a plan, by its size.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tk/mesh_plan.h"

namespace tk::detail {

/// Bytes of the whole array; of an exchange those that lie on a rank.
struct StepBounds {
  /// Up to here GPUs of one machine exchange blocks by one kernel.
  int64_t one_shot_up_to = 0;
  /// From here on copy engines move them.
  int64_t copied_from = std::numeric_limits<int64_t>::max();
};

/// The bounds of each step of a plan by the cost model, on a network that a mesh describes.
using FindStepBounds = std::vector<StepBounds> (*)(const MeshPlan &plan,
                                                   const std::string &network);
/// Set by the compiler, which has the cost model; null before.
FindStepBounds &step_bounds_finder();

} // namespace tk::detail
