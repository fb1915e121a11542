//===- PlaceSoftmax.cpp - softmaxes over keys that ranks share ------------===//
//
//   p[i, j] = softmax[j](x[i, j]),   o[i, e] = sum[j](p[i, j] * v[j @ cp, e])
//
// 1. If an axis shards the keys j, the statements from the logits to the sums are placed together,
//    in the way of least predicted time:
//
//      states       each rank computes all of it for its own keys, as if there were no others, and
//                   the ranks send each other the results: the partial softmax states
//      gather keys  each rank gathers the keys, and computes its own queries
//      repeat       each rank gathers the keys, and computes all, if no queries are sharded
//
// 2. The ranks combine the states (CombineStates.cpp).
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/Placer.h"

#include "passes/machine/CostModel.h"
#include "passes/mesh/LocalKernel.h"
#include "passes/mesh/SeparatePartials.h"

#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using tk::network::Collective;

namespace tk::mesh {

static constexpr int64_t mostStates = 16; // that one statement combines

void Placer::findSoftmaxes() {
  if (llvm::none_of(axes, [](const MeshAxisInfo &axis) { return axis.size > 1; }))
    return;
  for (SoftmaxChain &chain : findSoftmaxChains(kernel)) {
    auto softmax = std::make_unique<Softmax>();
    softmax->chain = std::move(chain);
    const SoftmaxChain &own = softmax->chain;
    auto add = [&](ComputeOp compute) { softmaxOf.try_emplace(compute, softmax.get()); };
    for (const SoftmaxChain::Member &producer : own.producers)
      add(producer.compute);
    for (ComputeOp compute : {own.max, own.sum})
      add(compute);
    llvm::for_each(own.weights, add);
    llvm::for_each(own.logs, add);
    for (const SoftmaxChain::WeightedSum &sum : own.sums)
      add(sum.compute);
    softmaxes.push_back(std::move(softmax));
  }
}

void Placer::decide(Softmax &softmax) {
  if (std::exchange(softmax.isDecided, true))
    return;
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (axes[axis].size > 1 && sharesKeys(softmax.chain, static_cast<int>(axis)))
      return decideFor(softmax, static_cast<int>(axis));
}

/// The index of a member of a chain that stands at a dimension of the logits; null: none does.
static BlockArgument indexAt(const SoftmaxChain::Member &member, int dim) {
  ComputeOp compute = member.compute;
  const int number = dim == noShard ? -1 : member.indexOf[dim];
  return number < 0 ? BlockArgument() : compute.getIndex(number);
}

/// Whether the axis shards the keys of an operand, and no other one does.
bool Placer::sharesKeys(const SoftmaxChain &chain, int axis) const {
  bool isShared = false, isOther = false;
  auto look = [&](ComputeOp compute, BlockArgument key) {
    for (const TensorUse &use : usesOf(compute)) {
      const auto placed = tensors.find(use.load.getTensor());
      if (placed == tensors.end() || !key)
        continue;
      for (auto [own, subscript] : llvm::zip(placed->second.sharding, use.subscripts))
        if (own != noShard && subscript.index == key)
          (own == axis ? isShared : isOther) = true;
    }
  };
  for (const SoftmaxChain::Member &producer : chain.producers)
    look(producer.compute, indexAt(producer, static_cast<int>(chain.key)));
  for (const SoftmaxChain::WeightedSum &sum : chain.sums)
    look(sum.compute, sum.reduce.getIndex(0));
  ReduceOp most = soleReduction(ComputeOp(chain.max));
  look(chain.max, most.getIndex(0));
  return isShared && !isOther;
}

/// The dimension of the logits whose index the axis shards in the results of the sums.
int Placer::queryOf(const SoftmaxChain &chain, int axis) {
  for (const SoftmaxChain::WeightedSum &sum : chain.sums) {
    ComputeOp compute = sum.compute;
    bool ignored = false;
    const Sharding desired = desiredOf(compute.getResult(0), ignored);
    const auto *dim = llvm::find(desired, axis);
    if (dim == desired.end())
      continue;
    const auto index = static_cast<int>(compute.getIndicesOf(0)[dim - desired.begin()]);
    const auto *found = llvm::find(sum.indexOf, index);
    if (found != sum.indexOf.end())
      return static_cast<int>(found - sum.indexOf.begin());
  }
  return noShard;
}

/// The time of bringing operands to where the axis divides a dimension of the logits.
double Placer::timeOfOperands(const SoftmaxChain &chain, int axis, int dim) {
  double time = 0;
  std::set<std::pair<void *, Movement>> seen;
  auto add = [&](ComputeOp compute, BlockArgument index) {
    for (const TensorUse &use : usesOf(compute)) {
      Value tensor = use.load.getTensor();
      const auto placed = tensors.find(tensor);
      if (placed == tensors.end()) // a member's, which is where it is needed
        continue;
      const Movement movement = movementOf(use, placed->second.sharding, axis, index);
      if (movement != Movement::none && seen.insert({tensor.getAsOpaquePointer(), movement}).second)
        time += costs.timeOf(movement == Movement::allGather ? Collective::AllGather
                                                             : Collective::AllToAll,
                             axis, bytesOf(tensor));
    }
  };
  for (const SoftmaxChain::Member &producer : chain.producers)
    add(producer.compute, indexAt(producer, dim));
  for (const SoftmaxChain::WeightedSum &sum : chain.sums)
    add(sum.compute,
        dim == static_cast<int>(chain.key) ? sum.reduce.getIndex(0) : indexAt(sum, dim));
  return time;
}

Placer::SoftmaxOption Placer::chooseOption(const SoftmaxChain &chain, int axis, int query,
                                           std::string &times) {
  using Kind = SoftmaxOption::Kind;
  const auto ranks = static_cast<double>(axes[axis].size);
  double work = 0, state = bytesOf(chain.max->getResult(0));
  for (const SoftmaxChain::Member &producer : chain.producers)
    work += timeOfWork(producer.compute, costs);
  for (const SoftmaxChain::WeightedSum &sum : chain.sums) {
    work += timeOfWork(sum.compute, costs);
    auto wire = sum.reduce->getAttrOfType<TypeAttr>(wireAttr);
    const SmallVector<Value> extents = extentsOf(sum.compute->getResult(0));
    state += bytesOf(extents, wire ? wire.getValue() : sum.reduce->getResult(0).getType());
  }
  const Collective moved = query == noShard ? Collective::AllGather : Collective::AllToAll;
  const double arrives = query == noShard ? state * ranks : state;
  const double states = timeOfOperands(chain, axis, static_cast<int>(chain.key)) + work / ranks +
                        costs.timeOf(moved, axis, state * ranks) + cost::launch +
                        costs.bytes(arrives);
  SoftmaxOption keys{query == noShard ? Kind::repeat : Kind::gatherKeys,
                     timeOfOperands(chain, axis, query) + (query == noShard ? work : work / ranks)};
  times = llvm::formatv("{0:F1} us are predicted for partial softmax states, {1:F1} us with the "
                        "keys gathered",
                        states * 1e-3, keys.time * 1e-3)
              .str();
  if (axes[axis].size > mostStates || keys.time <= states)
    return keys;
  return {Kind::states, states};
}

/// Has the axis divide, in each statement of the chain, what stands at a dimension of the logits.
void Placer::force(Softmax &softmax, int axis, int dim) {
  SoftmaxChain &chain = softmax.chain;
  const bool isKey = dim == static_cast<int>(chain.key);
  for (const SoftmaxChain::Member &producer : chain.producers)
    forced[{producer.compute, axis}] = indexAt(producer, dim);
  for (SoftmaxChain::WeightedSum &sum : chain.sums)
    forced[{sum.compute, axis}] = isKey ? sum.reduce.getIndex(0) : indexAt(sum, dim);
  for (ComputeOp weight : chain.weights)
    forced[{weight, axis}] = dim == noShard ? BlockArgument() : weight.getIndex(dim);
  for (ComputeOp row : {chain.max, chain.sum}) {
    const int below = dim > static_cast<int>(chain.key) ? dim - 1 : dim;
    forced[{row, axis}] = isKey            ? soleReduction(row).getIndex(0)
                          : dim == noShard ? BlockArgument()
                                           : row.getIndex(below);
  }
}

void Placer::decideFor(Softmax &softmax, int axis) {
  using Kind = SoftmaxOption::Kind;
  const int query = queryOf(softmax.chain, axis);
  std::string times;
  const SoftmaxOption option = chooseOption(softmax.chain, axis, query, times);
  const char *how = option.kind == Kind::states
                        ? "each rank computes the partial softmax state of its own keys"
                    : option.kind == Kind::gatherKeys ? "each rank gathers the keys for its queries"
                                                      : "each rank gathers the keys";
  softmax.why = std::string(how) + " (" + times + ")";
  if (option.kind == Kind::states) {
    separateSums(softmax);
    softmax.axis = axis;
  }
  force(softmax, axis, option.kind == Kind::states ? static_cast<int>(softmax.chain.key) : query);
}

/// Gives each sum that a statement combines with other work a statement of its own.
void Placer::separateSums(Softmax &softmax) {
  for (SoftmaxChain::WeightedSum &sum : softmax.chain.sums) {
    ComputeOp reader = sum.compute;
    if (soleReduction(reader) == sum.reduce)
      continue;
    softmaxOf.erase(reader);
    sum.compute = separate(sum.reduce, "sum", reader);
    sum.reduce = soleReduction(sum.compute);
    sum.indexOf = indicesOfWeights(softmax.chain, sum.reduce, sum.compute);
    softmaxOf[sum.compute] = &softmax;
    separated[reader].push_back(sum.compute);
  }
}

/// The softmax of which a compute op is placed as partial states; null if there is none.
Placer::Softmax *Placer::stateOf(ComputeOp compute) {
  Softmax *softmax = softmaxOf.lookup(compute);
  if (!softmax || softmax->axis == noShard)
    return nullptr;
  const SoftmaxChain &chain = softmax->chain;
  const bool isPartial =
      compute == chain.max || compute == chain.sum ||
      llvm::any_of(chain.sums, [&](const auto &sum) { return sum.compute == compute; });
  return isPartial ? softmax : nullptr;
}

} // namespace tk::mesh
