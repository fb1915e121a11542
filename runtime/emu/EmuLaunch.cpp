#include "runtime/emu/EmuLaunch.h"

#include "runtime/Bind.h"
#include "runtime/TensorMaps.h"

namespace tk::emu {

detail::EmulatedPlan resolve_plan(const LaunchPlan &plan, const Signature &signature,
                                  std::span<const Scalar> variables,
                                  std::span<const TensorView> tensors) {
  detail::EmulatedPlan resolved;
  resolved.plan = &plan;
  resolved.signature = &signature;
  for (const TensorMap &map : plan.tensor_maps)
    resolved.maps.push_back(detail::resolve_map(map, signature, variables, tensors));
  for (const Launch &launch : plan.launches) {
    detail::EmulatedLaunch ready;
    ready.launch = &launch;
    for (unsigned axis = 0; axis < 3; ++axis)
      ready.grid[axis] = launch.grid[axis].evaluate_integer(variables).value();
    ready.shared_bytes = launch.shared_bytes.evaluate_integer(variables).value();
    for (const Arg &arg : launch.args)
      ready.values.push_back(cuda::argument_bits(arg, launch, signature, variables, tensors));
    resolved.launches.push_back(std::move(ready));
  }
  resolved.scratch_bytes = detail::lay_out_scratch(plan, variables).bytes;
  resolved.tensors.assign(tensors.begin(), tensors.end());
  return resolved;
}

void launch_plan(const detail::Emulator &emulator, const detail::EmulatedPlan &resolved,
                 std::span<void *const> pointers) {
  detail::EmulatedPlan plan = resolved;
  for (size_t t = 0; t < plan.tensors.size(); ++t)
    plan.tensors[t].data = pointers[t];
  emulator.run(plan);
}

} // namespace tk::emu
