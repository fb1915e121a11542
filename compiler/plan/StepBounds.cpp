//===- StepBounds.cpp - sizes from which transfers take other means -------===//
#include "compiler/plan/StepBounds.h"

#include "passes/mesh/MeshCosts.h"
#include "runtime/mesh/StepBounds.h"

#include "llvm/Support/Error.h"

namespace tk {

using network::Collective;

static network::CollectiveTime timeOf(const mesh::MeshCosts &costs, const MeshStep &step,
                                      double bytes) {
  switch (step.kind) {
  case MeshStep::Kind::all_gather:
    return costs.collective(Collective::AllGather, step.axis, bytes);
  case MeshStep::Kind::all_reduce:
    return costs.collective(Collective::AllReduce, step.axis, bytes);
  case MeshStep::Kind::reduce_scatter:
    return costs.collective(Collective::ReduceScatter, step.axis, bytes);
  case MeshStep::Kind::exchange:
    return costs.exchange(step.axis, bytes);
  default:
    return costs.collective(Collective::AllToAll, step.axis, bytes);
  }
}

static std::vector<detail::StepBounds> stepBoundsOf(const MeshPlan &plan, const std::string &text) {
  std::vector<detail::StepBounds> all(plan.steps.size());
  llvm::SmallVector<MeshAxisInfo> axes;
  for (const MeshAxis &axis : plan.axes)
    axes.push_back({axis.name, axis.size});
  llvm::Expected<network::Network> network = mesh::networkFor(text, axes);
  if (!network) { // said where collectives were placed
    llvm::consumeError(network.takeError());
    return all;
  }
  const mesh::MeshCosts costs(std::move(*network), axes);
  for (auto [step, own] : llvm::zip(plan.steps, all)) {
    if (!step.communicates() || step.launches() || plan.axes[step.axis].size < 2)
      continue;
    const mesh::MeshCosts::Bounds bounds =
        costs.boundsOf([&](double bytes) { return timeOf(costs, step, bytes); });
    own.one_shot_up_to = bounds.storedUpTo, own.copied_from = bounds.copiedFrom;
  }
  return all;
}

void offerStepBounds() { detail::step_bounds_finder() = stepBoundsOf; }

} // namespace tk
