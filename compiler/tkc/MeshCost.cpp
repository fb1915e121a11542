//===- MeshCost.cpp - what the steps of a kernel on a mesh cost -----------===//
#include "compiler/tkc/MeshCost.h"

#include "compiler/InspectReport.h"
#include "compiler/step/Report.h"
#include "compiler/step/Table.h"
#include "passes/mesh/MeshCosts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

namespace tk::tkc {
namespace {

using network::Collective;

/// The steps of a plan at given sizes.
class Steps {
public:
  Steps(CompiledSource::Placement &placement, const std::string &target,
        const mesh::MeshCosts &costs, std::vector<Scalar> variables, size_t numScalars)
      : placement(placement), plan(placement.plan), target(target), costs(costs),
        variables(std::move(variables)), numScalars(numScalars) {}

  Expected<std::vector<MeshStepCost>> run();

private:
  Extents shapeOf(uint32_t tensor) const;
  double bytesOf(uint32_t tensor) const;
  double ranksOf(const MeshStep &step) const { return double(plan.axes[step.axis].size); }
  Status addLaunch(const MeshStep &step, int64_t blocks, MeshStepCost &cost);
  void addCollective(const MeshStep &step, MeshStepCost &cost) const;
  void addTransfers(const MeshStep &step, MeshStepCost &cost) const;
  Expected<std::vector<std::optional<Scalar>>> argumentsOf(const MeshStep &step, int64_t blocks);

  CompiledSource::Placement &placement;
  const MeshPlan &plan;
  const std::string &target;
  const mesh::MeshCosts &costs;
  std::vector<Scalar> variables;
  size_t numScalars; ///< the last ones of the variables
};

Extents Steps::shapeOf(uint32_t tensor) const {
  Extents shape;
  for (const DimExpr &extent : plan.tensors[tensor].shape)
    shape.push_back(extent.evaluate_integer(variables).value());
  return shape;
}

double Steps::bytesOf(uint32_t tensor) const {
  double bytes = double(size_of(plan.tensors[tensor].dtype));
  for (int64_t extent : shapeOf(tensor))
    bytes *= double(extent);
  return bytes;
}

/// Sizes and scalars of a local kernel on rank 0; of one of `blocks` blocks of rows.
Expected<std::vector<std::optional<Scalar>>> Steps::argumentsOf(const MeshStep &step,
                                                                int64_t blocks) {
  const Signature &local = placement.locals->signatures()[step.kernel];
  std::vector<std::optional<Extents>> shapes(local.num_tensors());
  std::vector<std::optional<Scalar>> scalars;
  size_t tensor = 0;
  for (const Parameter &param : local.params) {
    if (!param.is_tensor) {
      const MeshScalar &scalar = step.scalars[scalars.size()];
      if (scalar.kind == MeshScalar::Kind::rank)
        scalars.emplace_back(Scalar(int64_t{0}));
      else if (scalar.kind == MeshScalar::Kind::value)
        scalars.emplace_back(Scalar(scalar.value.evaluate_integer(variables).value()));
      else
        scalars.push_back(variables[variables.size() - numScalars + scalar.index]);
      continue;
    }
    Extents shape = shapeOf(step.inputs[tensor]);
    if (tensor < step.sliced_inputs.size() && step.sliced_inputs[tensor] != 0)
      shape[0] /= blocks;
    shapes[tensor++] = shape;
  }
  Expected<std::vector<std::optional<int64_t>>> dims = solve_dims(local, shapes);
  if (!dims)
    return dims.error();
  std::vector<std::optional<Scalar>> given;
  for (const std::optional<int64_t> &dim : *dims)
    given.push_back(dim ? std::optional<Scalar>(*dim) : std::nullopt);
  given.insert(given.end(), scalars.begin(), scalars.end());
  return given;
}

Status Steps::addLaunch(const MeshStep &step, int64_t blocks, MeshStepCost &cost) {
  auto given = argumentsOf(step, blocks);
  if (!given)
    return given.error();
  CompiledSource &locals = *placement.locals;
  const size_t numDims = locals.signatures()[step.kernel].dims.size();
  std::vector<std::optional<int64_t>> dims;
  for (const std::optional<Scalar> &dim : llvm::ArrayRef(*given).take_front(numDims))
    dims.push_back(dim ? std::optional(dim->i) : std::nullopt);
  const Facts facts = factsAt(locals.signatures()[step.kernel], dims);
  auto predicted = predictCost(locals, step.kernel, target, facts, *given, {});
  if (!predicted)
    return predicted.error();
  if (!*predicted)
    return Error(ErrorCode::invalid_argument,
                 "the cost of '" + step.symbol + "' depends on what no option gives");
  double longest = 0;
  for (const LaunchCost &launch : (*predicted)->kernel.launches) {
    const Prediction &time = launch.prediction;
    cost.math += std::max({time.of(Bound::Matrix), time.of(Bound::Cores), time.of(Bound::Special)});
    cost.memory += std::max(time.of(Bound::Memory), time.of(Bound::Cache));
    if (time.total > longest)
      longest = time.total, cost.bound = nameOf(time.bound).str();
  }
  cost.launch = (*predicted)->kernel.nanoseconds;
  return {};
}

void Steps::addCollective(const MeshStep &step, MeshStepCost &cost) const {
  Collective kind = Collective::AllToAll;
  cost.bytes = bytesOf(step.from);
  switch (step.kind) {
  case MeshStep::Kind::all_gather:
    kind = Collective::AllGather, cost.bytes = bytesOf(step.to);
    break;
  case MeshStep::Kind::all_reduce:
    kind = Collective::AllReduce;
    break;
  case MeshStep::Kind::reduce_scatter:
    kind = Collective::ReduceScatter;
    break;
  default: // the array is what all ranks have
    cost.bytes *= ranksOf(step);
  }
  // Rows that go to all ranks alike fill one block of each rank's.
  if (step.sent != MeshStep::no_tensor)
    cost.bytes /= ranksOf(step);
  const bool isExchange = step.kind == MeshStep::Kind::exchange && step.sent == MeshStep::no_tensor;
  const network::CollectiveTime time = isExchange ? costs.exchange(step.axis, bytesOf(step.from))
                                                  : costs.collective(kind, step.axis, cost.bytes);
  cost.latency = time.latency, cost.comms = time.total();
  if (time.total() > 0)
    cost.bound = costs.description().levels[time.level].name;
}

/// A block's launch runs while the next block is on its way.
void Steps::addTransfers(const MeshStep &step, MeshStepCost &cost) const {
  const double blocks = ranksOf(step);
  const bool isGather = step.kind == MeshStep::Kind::gather_launch;
  const double bytes = isGather ? bytesOf(step.from) : bytesOf(step.from) / blocks;
  const network::CollectiveTime time = costs.collective(Collective::Send, step.axis, bytes);
  const double block = cost.launch, transfer = time.total();
  cost.math *= blocks, cost.memory *= blocks;
  cost.bytes = bytes * blocks;
  cost.latency = time.latency;
  cost.launch = blocks * block, cost.comms = (blocks - 1) * transfer;
  cost.hidden =
      cost.launch + cost.comms - mesh::timeByRows(blocks, block, time, costs.isHeld(time));
  if (transfer > block)
    cost.bound = costs.description().levels[time.level].name;
}

Expected<std::vector<MeshStepCost>> Steps::run() {
  std::vector<MeshStepCost> all;
  for (const MeshStep &step : plan.steps) {
    MeshStepCost cost;
    cost.what = name(step.kind);
    if (step.communicates())
      cost.what += " over " + plan.axes[step.axis].name;
    if (step.launches()) {
      cost.what += " " + step.symbol;
      const int64_t blocks = step.communicates() ? plan.axes[step.axis].size : 1;
      if (Status added = addLaunch(step, blocks, cost); !added)
        return added.error();
    }
    if (step.communicates() || step.kind == MeshStep::Kind::copy)
      cost.tensor = plan.tensors[step.from].name;
    if (step.kind == MeshStep::Kind::copy) {
      cost.launch = cost.memory = costs.bytes(2 * bytesOf(step.from)), cost.bound = "memory";
    } else if (step.communicates()) {
      step.launches() ? addTransfers(step, cost) : addCollective(step, cost);
    }
    all.push_back(std::move(cost));
  }
  return all;
}

} // namespace

Expected<MeshCost> costOnMesh(const CompiledSource &source, size_t kernel,
                              const std::string &target, const MeshChoice &choice,
                              const std::vector<std::optional<Scalar>> &given) {
  Expected<MeshChoice::Chosen> chosen = choice.read();
  if (!chosen)
    return chosen.error();
  const Signature &signature = source.signatures()[kernel];
  std::vector<int64_t> dims;
  for (const std::optional<Scalar> &dim : llvm::ArrayRef(given).take_front(signature.dims.size()))
    if (dim)
      dims.push_back(dim->i);
  if (dims.size() != signature.dims.size())
    return Error(ErrorCode::invalid_argument,
                 "the cost of kernel '" + signature.name + "' depends on all of its dimensions (" +
                     llvm::join(signature.dims, ", ") + "): give each with --dim");
  auto variables =
      complete_variables(signature, dims, llvm::ArrayRef(given).drop_front(signature.dims.size()));
  if (!variables)
    return variables.error();
  Expected<CompiledSource::Placement> placement =
      source.placeOn(kernel, chosen->axes, dims, chosen->network);
  if (!placement)
    return placement.error();
  for (const Check &check : placement->plan.checks)
    if (check.condition.evaluate_integer(*variables).value() == 0)
      return Error(ErrorCode::constraint_failed,
                   "kernel '" + signature.name + "': the mesh needs " + check.text, {check.span});
  llvm::SmallVector<MeshAxisInfo> infos;
  for (const MeshAxis &axis : placement->plan.axes)
    infos.push_back({axis.name, axis.size});
  llvm::Expected<network::Network> network = mesh::networkFor(chosen->network, infos);
  if (!network)
    return Error(ErrorCode::invalid_argument, llvm::toString(network.takeError()));
  const mesh::MeshCosts costs(std::move(*network), infos);
  auto steps = Steps(*placement, target, costs, *variables, signature.num_scalars()).run();
  if (!steps)
    return steps.error();
  return MeshCost{signature.name, target, choice.mesh, costs.description().name, std::move(*steps)};
}

std::string textOf(const MeshCost &cost) {
  std::vector<std::vector<std::string>> table = {
      {"step", "tensor", "T_math", "T_memory", "T_comms", "hidden", "time", "bound"}};
  auto time = [](double nanoseconds) {
    return nanoseconds > 0 ? step::timeText(nanoseconds) : std::string("-");
  };
  double launches = 0, comms = 0, hidden = 0, math = 0, memory = 0;
  for (const MeshStepCost &step : cost.steps) {
    table.push_back({step.what, step.tensor.empty() ? "-" : step.tensor, time(step.math),
                     time(step.memory), time(step.comms), time(step.hidden), time(step.total()),
                     step.bound});
    launches += step.launch, comms += step.comms, hidden += step.hidden;
    math += step.math, memory += step.memory;
  }
  table.push_back({"in all", "-", time(math), time(memory), time(comms), time(hidden),
                   time(launches + comms - hidden), launches < comms ? "network" : "launches"});
  std::string text = cost.kernel + " for " + cost.target + ", mesh " + cost.mesh + " on " +
                     cost.network + "; one rank\n\n";
  llvm::raw_string_ostream os(text);
  step::printTable(os, table);
  return text;
}

llvm::json::Value jsonOf(const MeshCost &cost) {
  llvm::json::Array steps;
  double launches = 0, comms = 0, hidden = 0;
  for (const MeshStepCost &step : cost.steps) {
    steps.push_back(llvm::json::Object{{"step", step.what},
                                       {"tensor", step.tensor},
                                       {"math_us", step.math * 1e-3},
                                       {"memory_us", step.memory * 1e-3},
                                       {"launch_us", step.launch * 1e-3},
                                       {"array_bytes", step.bytes},
                                       {"latency_us", step.latency * 1e-3},
                                       {"comms_us", step.comms * 1e-3},
                                       {"hidden_us", step.hidden * 1e-3},
                                       {"total_us", step.total() * 1e-3},
                                       {"bound", step.bound}});
    launches += step.launch, comms += step.comms, hidden += step.hidden;
  }
  return llvm::json::Object{
      {"format", "tk mesh cost 1"},     {"kernel", cost.kernel},
      {"target", cost.target},          {"mesh", cost.mesh},
      {"network", cost.network},        {"steps", std::move(steps)},
      {"launches_us", launches * 1e-3}, {"comms_us", comms * 1e-3},
      {"hidden_us", hidden * 1e-3},     {"total_us", (launches + comms - hidden) * 1e-3}};
}

} // namespace tk::tkc
