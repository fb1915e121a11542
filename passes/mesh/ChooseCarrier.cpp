//===- ChooseCarrier.cpp - the index that an axis divides -----------------===//
//
// 1. The candidates are the indices that stand at a dimension which the axis shards, in an operand
// or
//    in the result.
// 2. A reduced index is chosen if it stands so in every operand that the axis shards: the operands
//    stay where they are, and the ranks combine partial results.
// 3. Otherwise the candidate of least predicted time is chosen, or none: the bytes of the operands
//    and of the result that move, and the work that the ranks divide or repeat.
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/ChooseCarrier.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;
using tk::network::Collective;

namespace tk::mesh {

static int dimOf(const Sharding &sharding, int axis) {
  const auto *found = llvm::find(sharding, axis);
  return found == sharding.end() ? noShard : static_cast<int>(found - sharding.begin());
}

Movement movementOf(const TensorUse &use, const Sharding &sharding, int axis, BlockArgument index,
                    unsigned *to) {
  const int dim = dimOf(sharding, axis);
  if (dim == noShard)
    return Movement::none;
  if (use.subscripts[dim].keepsShare || (index && use.subscripts[dim].index == index))
    return Movement::none;
  for (auto [other, subscript] : llvm::enumerate(use.subscripts))
    if (index && subscript.index == index && !subscript.isQuotient && sharding[other] == noShard) {
      if (to)
        *to = other;
      return Movement::allToAll;
    }
  return Movement::allGather;
}

double timeOfWork(ComputeOp compute, const MeshCosts &costs) {
  double time = 0;
  const double outer = elementsOf(compute.getExtents());
  Type operands = widestOperand(compute);
  if (!operands)
    operands = cast<RankedTensorType>(compute.getResult(0).getType()).getElementType();
  const double bytesOfElement = std::max(8u, operands.getIntOrFloatBitWidth()) / 8.0;
  compute.walk([&](ReduceOp reduce) {
    double length = 1;
    for (Value upper : reduce.getUpper())
      length *= estimate(upper);
    time += reduce.getKind(0) == ReduceKind::Sum ? costs.products(outer * length, operands)
                                                 : costs.bytes(outer * length * bytesOfElement);
  });
  return time > 0 ? time : costs.bytes(2 * outer * bytesOfElement);
}

namespace {

class Choice {
public:
  Choice(const CarrierQuery &query, int axis, int64_t ranks)
      : query(query), axis(axis), ranks(static_cast<double>(ranks)),
        reduction(soleReduction(query.compute)) {}

  llvm::SetVector<BlockArgument> candidates() const;
  /// A reduced index over which all sharded operands lie alike; null if there is none.
  BlockArgument partialIndex(ArrayRef<BlockArgument> candidates) const;
  double timeOf(BlockArgument index) const;

private:
  bool mayDivide(BlockArgument index) const {
    Operation *owner = index.getOwner()->getParentOp();
    if (owner == query.compute.getOperation())
      return true;
    return reduction && owner == reduction.getOperation() &&
           combinesOverRanks(reduction.getKind(0));
  }
  double timeOfOperands(BlockArgument index) const;
  double timeOfResult(BlockArgument index) const;
  double moving(Collective kind, double bytes) const {
    return query.costs->timeOf(kind, axis, bytes);
  }

  const CarrierQuery &query;
  int axis;
  double ranks;
  mutable ReduceOp reduction;
};

llvm::SetVector<BlockArgument> Choice::candidates() const {
  llvm::SetVector<BlockArgument> found;
  for (const TensorUse &use : query.uses) {
    const int dim = dimOf(query.shardingOf(use.load.getTensor()), axis);
    if (dim == noShard)
      continue;
    if (BlockArgument index = use.subscripts[dim].index; index && mayDivide(index))
      found.insert(index);
  }
  if (const int dim = dimOf(query.desired, axis); dim != noShard)
    found.insert(query.compute.getIndex(query.compute.getIndicesOf(0)[dim]));
  return found;
}

BlockArgument Choice::partialIndex(ArrayRef<BlockArgument> candidates) const {
  for (BlockArgument index : candidates)
    if (index.getOwner()->getParentOp() != query.compute.getOperation() &&
        llvm::all_of(query.uses, [&](const TensorUse &use) {
          return movementOf(use, query.shardingOf(use.load.getTensor()), axis, index) ==
                 Movement::none;
        }))
      return index;
  return {};
}

double Choice::timeOfOperands(BlockArgument index) const {
  double time = 0;
  std::set<std::pair<void *, Movement>> seen;
  for (const TensorUse &use : query.uses) {
    Value tensor = use.load.getTensor();
    const Movement movement = movementOf(use, query.shardingOf(tensor), axis, index);
    if (movement == Movement::none || !seen.insert({tensor.getAsOpaquePointer(), movement}).second)
      continue;
    time += moving(movement == Movement::allGather ? Collective::AllGather : Collective::AllToAll,
                   bytesOf(tensor));
  }
  return time;
}

double Choice::timeOfResult(BlockArgument index) const {
  const int wanted = dimOf(query.desired, axis);
  const double bytes = bytesOf(query.compute.getResult(0));
  if (!index)
    return 0;
  if (index.getOwner()->getParentOp() != query.compute.getOperation())
    return moving(wanted == noShard ? Collective::AllReduce : Collective::ReduceScatter, bytes);
  if (wanted != noShard)
    return query.compute.getIndicesOf(0)[wanted] == index.getArgNumber()
               ? 0
               : moving(Collective::AllToAll, bytes);
  return query.isRequired ? moving(Collective::AllGather, bytes) : 0;
}

double Choice::timeOf(BlockArgument index) const {
  return timeOfOperands(index) + timeOfResult(index) +
         timeOfWork(query.compute, *query.costs) / (index ? ranks : 1);
}

} // namespace

BlockArgument chooseCarrier(const CarrierQuery &query, int axis, int64_t ranks,
                            ArrayRef<BlockArgument> taken, std::string &why) {
  Choice choice(query, axis, ranks);
  SmallVector<BlockArgument> candidates;
  for (BlockArgument index : choice.candidates())
    if (!llvm::is_contained(taken, index))
      candidates.push_back(index);
  if (BlockArgument index = choice.partialIndex(candidates)) {
    why = "all operands are sharded by '" + nameOf(index).str() + "'";
    return index;
  }
  BlockArgument best;
  // A result that has to be sharded is never computed whole.
  const bool mayRepeat = !query.isRequired || dimOf(query.desired, axis) == noShard;
  double least = mayRepeat || candidates.empty() ? choice.timeOf({}) : 0;
  bool isFirst = !mayRepeat;
  for (BlockArgument index : candidates) {
    const double time = choice.timeOf(index);
    if (isFirst || time < least)
      best = index, least = time;
    isFirst = false;
  }
  why = best ? "to divide '" + nameOf(best).str() + "' takes the least time"
             : "to compute all on each rank takes the least time";
  return best;
}

} // namespace tk::mesh
