//===- StoredReductions.cpp - what is reduced of stored results -----------===//
#include "passes/analysis/StoredReductions.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

/// Do the loads of `stored` in the body of `reduce` read one element, whose coordinates are each of
/// the reduction's indices, over their whole range, and indices of the reduction's statement?
static std::optional<StoredReduction> matchLoads(ReduceOp reduce, ComputeOp reader,
                                                 OpResult stored) {
  StoredReduction found{reduce, stored, {}, {}, {}, {}};
  auto producer = stored.getDefiningOp<ComputeOp>();
  SmallVector<unsigned> positions = producer.getIndicesOf(stored.getResultNumber());
  LoadOp first;
  for (LoadOp load : reduce.getBlock()->getOps<LoadOp>()) {
    if (load.getTensor() != stored)
      continue;
    if (load.getPad() || (first && load.getIndices() != first.getIndices()))
      return std::nullopt;
    first = load;
  }
  if (!first)
    return std::nullopt;
  for (auto [position, index] : llvm::zip_equal(positions, first.getIndices())) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (!argument || llvm::is_contained(found.readerArgs, index) ||
        llvm::is_contained(found.ownArgs, index))
      return std::nullopt;
    if (argument.getOwner() == reduce.getBlock() &&
        argument.getArgNumber() < reduce.getNumIndices()) {
      const unsigned n = argument.getArgNumber();
      if (!matchPattern(reduce.getLower()[n], m_Zero()) ||
          reduce.getUpper()[n] != producer.getExtents()[position])
        return std::nullopt;
      found.reduced.push_back(position);
      found.ownArgs.push_back(index);
    } else if (argument.getOwner() == reader.getBlock()) {
      found.others.push_back(position);
      found.readerArgs.push_back(index);
    } else {
      return std::nullopt;
    }
  }
  if (found.reduced.size() != reduce.getNumIndices())
    return std::nullopt;
  return found;
}

/// Can the terms of the reduction be computed where the stored result is, from its element?
static bool hasOwnTerms(const StoredReduction &found) {
  ReduceOp reduce = found.reduce;
  Block *terms = reduce.getBlock(), *kernel = reduce->getParentOp()->getBlock();
  auto isAtHand = [&](Value value) {
    if (value.getParentBlock() == terms || value == Value(found.stored) ||
        llvm::is_contained(found.readerArgs, value))
      return true;
    Operation *def = value.getDefiningOp();
    return def ? def->hasTrait<OpTrait::ConstantLike>() : value.getParentBlock() == kernel;
  };
  return llvm::all_of(*terms, [&](Operation &op) {
    return op.getNumRegions() == 0 && llvm::all_of(op.getOperands(), isAtHand);
  });
}

static bool isPlain(ReduceKind kind) {
  return kind == ReduceKind::Sum || kind == ReduceKind::Max || kind == ReduceKind::Min;
}

std::optional<StoredReduction> tk::matchStoredReduction(ReduceOp reduce) {
  auto reader = dyn_cast<ComputeOp>(reduce->getParentOp());
  if (!reader)
    return std::nullopt;
  for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k) {
    const bool isPlaceAlone = isArgReduction(reduce.getKind(k)) && reduce.getNumAccumulators() == 1;
    if (!(isPlain(reduce.getKind(k)) || isPlaceAlone) ||
        !isa<FloatType>(reduce.getYield().getValues()[k].getType()) || !reduce.standsAlone(k))
      return std::nullopt;
  }
  for (LoadOp load : reduce.getBlock()->getOps<LoadOp>()) {
    auto stored = dyn_cast<OpResult>(load.getTensor());
    if (!stored || !stored.getDefiningOp<ComputeOp>())
      continue;
    std::optional<StoredReduction> found = matchLoads(reduce, reader, stored);
    if (found && hasOwnTerms(*found))
      return found;
  }
  return std::nullopt;
}

bool tk::readsForReductionsOnly(ComputeOp reader, OpResult stored) {
  WalkResult others = reader.walk([&](LoadOp load) {
    if (load.getTensor() != stored)
      return WalkResult::advance();
    auto reduce = dyn_cast<ReduceOp>(load->getParentOp());
    std::optional<StoredReduction> found =
        reduce ? matchStoredReduction(reduce) : std::optional<StoredReduction>();
    return found && found->stored == stored ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !others.wasInterrupted();
}
