// Resolving a plan for the emulator.
#pragma once

#include <span>

#include "tk/backend.h"

namespace tk::emu {

/// Computes grids, sizes and argument values. Throws typed errors, those of a launch on a GPU.
detail::EmulatedPlan resolve_plan(const LaunchPlan &plan, const Signature &signature,
                                  std::span<const Scalar> variables,
                                  std::span<const TensorView> tensors);
/// Runs the plan on the addresses of the tensors and returns when all is done.
void launch_plan(const detail::Emulator &emulator, const detail::EmulatedPlan &resolved,
                 std::span<void *const> pointers);

} // namespace tk::emu
