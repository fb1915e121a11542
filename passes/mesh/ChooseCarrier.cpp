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

#include "passes/mesh/MeshCosts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;

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

namespace {

class Choice {
public:
  Choice(const CarrierQuery &query, int axis, int64_t ranks)
      : query(query), axis(axis), ranks(static_cast<double>(ranks)),
        reduction(soleReduction(query.compute)) {}

  llvm::SetVector<BlockArgument> candidates() const;
  /// A reduced index over which all sharded operands lie alike; null if there is none.
  BlockArgument partialIndex(ArrayRef<BlockArgument> candidates) const;
  double secondsOf(BlockArgument index) const;

private:
  bool mayDivide(BlockArgument index) const {
    Operation *owner = index.getOwner()->getParentOp();
    if (owner == query.compute.getOperation())
      return true;
    return reduction && owner == reduction.getOperation() &&
           combinesOverRanks(reduction.getKind(0));
  }
  double operandSeconds(BlockArgument index) const;
  double resultSeconds(BlockArgument index) const;
  double workSeconds() const;
  double moving(double bytes) const { return collectiveSeconds + bytes / linkBytesPerSecond; }

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

double Choice::operandSeconds(BlockArgument index) const {
  double seconds = 0;
  std::set<std::pair<void *, Movement>> seen;
  for (const TensorUse &use : query.uses) {
    Value tensor = use.load.getTensor();
    const Movement movement = movementOf(use, query.shardingOf(tensor), axis, index);
    if (movement == Movement::none || !seen.insert({tensor.getAsOpaquePointer(), movement}).second)
      continue;
    const double received = bytesOf(tensor) * (ranks - 1) / ranks;
    seconds += moving(movement == Movement::allGather ? received : received / ranks);
  }
  return seconds;
}

double Choice::resultSeconds(BlockArgument index) const {
  const int wanted = dimOf(query.desired, axis);
  const double share = bytesOf(query.compute.getResult(0)) * (ranks - 1) / ranks;
  if (!index)
    return 0;
  if (index.getOwner()->getParentOp() != query.compute.getOperation())
    return moving(wanted == noShard ? 2 * share : share);
  if (wanted != noShard)
    return query.compute.getIndicesOf(0)[wanted] == index.getArgNumber() ? 0
                                                                         : moving(share / ranks);
  return query.isRequired ? moving(share) : 0;
}

double Choice::workSeconds() const {
  double seconds = 0;
  const double outer = elementsOf(query.compute.getExtents());
  query.compute.walk([&](ReduceOp reduce) {
    double length = 1;
    for (Value upper : reduce.getUpper())
      length *= estimate(upper);
    const bool isSum = reduce.getKind(0) == ReduceKind::Sum;
    seconds += outer * length / (isSum ? productsPerSecond : elementsPerSecond);
  });
  return seconds > 0 ? seconds : outer / elementsPerSecond;
}

double Choice::secondsOf(BlockArgument index) const {
  return operandSeconds(index) + resultSeconds(index) + workSeconds() / (index ? ranks : 1);
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
  double least = mayRepeat || candidates.empty() ? choice.secondsOf({}) : 0;
  bool isFirst = !mayRepeat;
  for (BlockArgument index : candidates) {
    const double seconds = choice.secondsOf(index);
    if (isFirst || seconds < least)
      best = index, least = seconds;
    isFirst = false;
  }
  why = best ? "to divide '" + nameOf(best).str() + "' takes the least time"
             : "to compute all on each rank takes the least time";
  return best;
}

} // namespace tk::mesh
