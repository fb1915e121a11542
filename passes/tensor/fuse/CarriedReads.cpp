//===- CarriedReads.cpp - reductions that their reader can carry ----------===//
//
// A reduction is fused into its reader without repeated work if the reader runs over the same range
// and can carry the reduction in its own loop. Examples are a maximum beside the exponentials
// relative to it (softmax), the sum of such exponentials, and a mean beside the squares of
// distances from it.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/FuseProducersCost.h"

#include "passes/tensor/split/SplitReductions.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tk {

/// True if an exponential in `scope` depends on what `depends` is of.
static bool takesExponentials(Operation *scope, Dependence &depends) {
  return scope
      ->walk([&](Operation *op) {
        return isa<ExpDiffOp, math::ExpOp, math::Exp2Op>(op) && depends.on(op->getResult(0))
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// True if some maximum or minimum over the ranges of `around` is there for exponentials under it:
/// the pattern that tk-online-reductions carries in one loop.
static bool carriesSoftmax(ReduceOp around, Block *body) {
  for (ReduceOp reduce : body->getOps<ReduceOp>()) {
    if (reduce.isOnline() ||
        (reduce.getKind(0) != ReduceKind::Max && reduce.getKind(0) != ReduceKind::Min) ||
        reduce.getNumIndices() != around.getNumIndices() || !haveSameRanges(reduce, around))
      continue;
    Dependence extremum(reduce.getResults());
    if (takesExponentials(body->getParentOp(), extremum))
      return true;
  }
  return false;
}

bool isUnderSoftmax(Read read) {
  return llvm::any_of(getEnclosingReductions(read.load), [&](ReduceOp around) {
    return carriesSoftmax(around, cast<ComputeOp>(read.producer.getOwner()).getBlock()) ||
           carriesSoftmax(around, read.consumer.getBlock());
  });
}

/// True if `around` varies with each of the reader's own indices that the statistic varies with. A
/// range of the same length may be that of columns, while the statistic is of rows.
static bool isOfSameRows(ReduceOp around, const Reach &reach) {
  return llvm::all_of(reach.parallel, [&](BlockArgument index) {
    Dependence onIndex(ValueRange{index});
    return onIndex.on(around.getResult(0));
  });
}

bool isCarriedByReader(ReduceOp statistic, Read read) {
  Block *producer = cast<ComputeOp>(read.producer.getOwner()).getBlock();
  bool isExtremum =
      statistic.getKind(0) == ReduceKind::Max || statistic.getKind(0) == ReduceKind::Min;
  Dependence onRead(ValueRange{read.load.getResult()});
  const Reach reach = getReach(statistic, read);
  for (ReduceOp around : read.consumer.getBlock()->getOps<ReduceOp>()) {
    if (!haveSameRanges(around, statistic) || !isOfSameRows(around, reach))
      continue;
    if (carriesSoftmax(around, producer))
      return true;
    if (isExtremum && takesExponentials(around, onRead))
      return true;
  }
  return false;
}

bool isPointOfReader(ReduceOp statistic, Read read) {
  Dependence onRead(ValueRange{read.load.getResult()});
  return llvm::any_of(read.consumer.getBlock()->getOps<ReduceOp>(), [&](ReduceOp around) {
    std::optional<SquaredDistance> distance = matchDistanceInTerm(around);
    return distance && haveSameRanges(around, statistic) && onRead.on(distance->point) &&
           !onRead.on(distance->term);
  });
}

bool delaysParts(ReduceOp statistic, Read read) {
  if (!wantsParts(statistic, cast<ComputeOp>(read.producer.getOwner())))
    return false;
  Dependence onRead(ValueRange{read.load.getResult()});
  return llvm::any_of(read.consumer.getBlock()->getOps<ReduceOp>(), [&](ReduceOp around) {
    bool isInTerms = around->isProperAncestor(read.load) || onRead.on(around.getResult(0));
    if (!isInTerms || !wantsParts(around, read.consumer))
      return false;
    std::optional<SquaredDistance> distance = matchDistanceInTerm(around);
    return !distance || onRead.on(distance->term);
  });
}

} // namespace tk
