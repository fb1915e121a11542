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
  case MeshStep::Kind::copy:
    return "copy";
  }
  return "unknown";
}

std::string_view name(MeshCombine combine) noexcept {
  constexpr std::string_view names[] = {"sum", "prod", "max", "min", "any", "all"};
  return names[static_cast<size_t>(combine)];
}

size_t MeshPlan::num_collectives() const {
  return static_cast<size_t>(std::count_if(steps.begin(), steps.end(), [](const MeshStep &step) {
    return step.kind != MeshStep::Kind::launch && step.kind != MeshStep::Kind::copy;
  }));
}

namespace {

/// "h: bf16[M, F / 2]"
std::string text_of(const MeshTensor &tensor, std::span<const std::string> names) {
  std::string text = tensor.name + ": " + std::string(name(tensor.dtype)) + "[";
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    text += (d ? ", " : "") + tensor.shape[d].str(names);
  return text + "]";
}

} // namespace

std::string MeshPlan::str(const Signature &signature) const {
  const std::vector<std::string> names = signature.variable_names();
  std::string text = "mesh";
  for (const MeshAxis &axis : axes)
    text += " " + axis.name + "=" + std::to_string(axis.size);
  text += "\n";
  for (const MeshStep &step : steps) {
    if (step.kind == MeshStep::Kind::launch) {
      text += "launch " + step.symbol + "(";
      for (size_t i = 0; i < step.inputs.size(); ++i)
        text += (i ? ", " : "") + text_of(tensors[step.inputs[i]], names);
      text += ") -> (";
      for (size_t i = 0; i < step.outputs.size(); ++i)
        text += (i ? ", " : "") + text_of(tensors[step.outputs[i]], names);
      text += ")\n";
      continue;
    }
    text += std::string(name(step.kind));
    const bool combines =
        step.kind == MeshStep::Kind::all_reduce || step.kind == MeshStep::Kind::reduce_scatter;
    if (combines)
      text += " " + std::string(name(step.combine));
    if (step.kind != MeshStep::Kind::copy)
      text += " over " + axes[step.axis].name;
    if (step.kind == MeshStep::Kind::all_gather || step.kind == MeshStep::Kind::reduce_scatter)
      text += " dimension " + std::to_string(step.dim);
    if (step.kind == MeshStep::Kind::all_to_all)
      text += " dimension " + std::to_string(step.dim) + " to " + std::to_string(step.to_dim);
    text += ": " + text_of(tensors[step.from], names) + " -> " + text_of(tensors[step.to], names) +
            "\n";
  }
  return text;
}

} // namespace tk
