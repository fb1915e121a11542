// The text of a plan.
#include "tk/mesh_plan.h"

#include <algorithm>

namespace tk {

std::string_view name(MeshStep::Kind kind) noexcept {
  switch (kind) {
  case MeshStep::Kind::launch:
    return "launch";
  case MeshStep::Kind::all_gather:
    return "all_gather";
  case MeshStep::Kind::all_reduce:
    return "all_reduce";
  case MeshStep::Kind::reduce_scatter:
    return "reduce_scatter";
  case MeshStep::Kind::all_to_all:
    return "all_to_all";
  case MeshStep::Kind::exchange:
    return "exchange";
  case MeshStep::Kind::copy:
    return "copy";
  case MeshStep::Kind::gather_launch:
    return "gather_launch";
  case MeshStep::Kind::launch_exchange:
    return "launch_exchange";
  }
  return "unknown";
}

std::string_view name(MeshCombine combine) noexcept {
  constexpr std::string_view names[] = {"sum", "prod", "max", "min", "any", "all"};
  return names[static_cast<size_t>(combine)];
}

size_t MeshPlan::num_collectives() const {
  return static_cast<size_t>(std::count_if(
      steps.begin(), steps.end(), [](const MeshStep &step) { return step.communicates(); }));
}

namespace {

/// "h: bf16[M, F / 2]"
std::string text_of(const MeshTensor &tensor, std::span<const std::string> names) {
  std::string text = tensor.name + ": " + std::string(name(tensor.dtype)) + "[";
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    text += (d ? ", " : "") + tensor.shape[d].str(names);
  return text + "]";
}

/// "up_1(x: bf16[M, C], w: bf16[C, F / 2]) -> (h: bf16[M, F / 2])"
std::string call_of(const MeshStep &step, const MeshPlan &plan,
                    std::span<const std::string> names) {
  auto list = [&](const std::vector<uint32_t> &numbers) {
    std::string text;
    for (uint32_t tensor : numbers)
      text += (text.empty() ? "" : ", ") + text_of(plan.tensors[tensor], names);
    return text;
  };
  return step.symbol + "(" + list(step.inputs) + ") -> (" + list(step.outputs) + ")";
}

/// One line of the plan.
std::string text_of(const MeshStep &step, const MeshPlan &plan,
                    std::span<const std::string> names) {
  std::string text(name(step.kind));
  if (step.kind == MeshStep::Kind::launch)
    return text + " " + call_of(step, plan, names);
  if (step.kind == MeshStep::Kind::all_reduce || step.kind == MeshStep::Kind::reduce_scatter)
    text += " " + std::string(name(step.combine));
  if (step.communicates())
    text += " over " + plan.axes[step.axis].name;
  if (step.kind == MeshStep::Kind::all_gather || step.kind == MeshStep::Kind::reduce_scatter)
    text += " dimension " + std::to_string(step.dim);
  if (step.kind == MeshStep::Kind::all_to_all)
    text += " dimension " + std::to_string(step.dim) + " to " + std::to_string(step.to_dim);
  const std::string moved =
      text_of(plan.tensors[step.from], names) + " -> " + text_of(plan.tensors[step.to], names);
  if (step.kind == MeshStep::Kind::launch_exchange)
    return text + ": " + call_of(step, plan, names) + ", " + moved;
  text += ": " + moved;
  if (step.kind == MeshStep::Kind::gather_launch)
    return text + ", " + call_of(step, plan, names);
  if (step.sent != MeshStep::no_tensor)
    text += " rows " + text_of(plan.tensors[step.sent], names) + ", " +
            text_of(plan.tensors[step.received], names);
  return text;
}

} // namespace

std::string MeshPlan::str(const Signature &signature) const {
  const std::vector<std::string> names = signature.variable_names();
  std::string text = "mesh";
  for (const MeshAxis &axis : axes)
    text += " " + axis.name + "=" + std::to_string(axis.size);
  text += "\n";
  for (const MeshStep &step : steps)
    text += text_of(step, *this, names) + "\n";
  return text;
}

} // namespace tk
