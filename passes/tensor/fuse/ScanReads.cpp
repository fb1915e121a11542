//===- ScanReads.cpp - when a scan is fused into its reader ---------------===//
//
// A fused scan gives its whole row to one block. The block then also computes everything else that
// the reader needs for the elements of the row. Reductions for each element, such as matrix-vector
// products, would have only as many blocks as there are rows. A scan is therefore not fused into a
// reader with such reductions, unless they have few elements, such as those of a window.
//
// The reader may read the scanned row one element behind, and, on a GPU, from its end on: the scan
// is then taken at `c - 1`, or at `n - 1 - c`, as which it goes backward.
//
// On a GPU a reduction of the reader may read the scanned states of its terms, and a scan of the
// reader the states at its own elements. The block then carries all states of its elements. That
// takes a reduction whose terms a tile has whole (limits::scan_reads::heldStates).
//
//   %h = tk.compute ["l", "n"] {tk.scan sum "k" at l {x[k, n]}}
//   %y = tk.compute ["l"] {tk.reduce [sum] ["n"] {h[l, n] * c[n]}}
//     =>
//   %y = tk.compute ["l"] {tk.reduce [sum] ["n"] {tk.scan sum "k" at l {x[k, n]} * c[n]}}
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/fuse/FuseProducers.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScanPosition.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace tk {

using namespace limits::scan_reads;

/// An index that the reader reads at.
struct Place {
  BlockArgument index;
  bool isMirrored = false, isBefore = false;
};

/// `value`, at which an axis of `extent` elements is read: the reader's index, its mirror image, or
/// the element before one of these.
static std::optional<Place> matchPlace(Value value, Value extent, ComputeOp consumer) {
  bool isBefore = false;
  if (auto add = value.getDefiningOp<arith::AddIOp>(); add && isConstantIntValue(add.getRhs(), -1))
    value = add.getLhs(), isBefore = true;
  else if (auto sub = value.getDefiningOp<arith::SubIOp>();
           sub && isConstantIntValue(sub.getRhs(), 1))
    value = sub.getLhs(), isBefore = true;
  std::optional<IndexOrMirror> found = matchIndexOrMirror(value, extent, consumer);
  if (!found || (isBefore && found->isMirrored))
    return std::nullopt;
  return Place{found->index, found->isMirrored, isBefore};
}

/// Does `consumer` scan along `index`, in the other direction than `isBackward` says?
static bool scansOtherwise(ComputeOp consumer, BlockArgument index, bool isBackward) {
  return consumer
      .walk([&](ScanOp scan) {
        std::optional<IndexOrMirror> position = getScanPosition(scan, consumer);
        const bool isOther =
            position && position->index == index && position->isMirrored != isBackward;
        return isOther ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Does `consumer` scan along another index than `index`?
static bool scansElsewhere(ComputeOp consumer, BlockArgument index) {
  return consumer
      .walk([&](ScanOp scan) {
        std::optional<IndexOrMirror> position = getScanPosition(scan, consumer);
        return position && position->index == index ? WalkResult::advance()
                                                    : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// The scans that the producer's result follows from, outermost first.
static SmallVector<ScanOp> scansOf(OpResult result) {
  auto producer = cast<ComputeOp>(result.getOwner());
  SmallVector<ScanOp> scans;
  for (Operation *op :
       getSlice(producer.getYield().getValues()[result.getResultNumber()], producer.getBlock()))
    op->walk<WalkOrder::PreOrder>([&](ScanOp scan) { scans.push_back(scan); });
  return scans;
}

/// Does a tile have all terms of a sum, a maximum or the like of the consumer's elements?
static bool hasHeldTerms(ReduceOp reduce, ComputeOp consumer) {
  auto isKernelLevel = [&](Value end) {
    Operation *around = end.getParentBlock()->getParentOp();
    return around != consumer && !consumer->isProperAncestor(around);
  };
  return reduce->getBlock() == consumer.getBlock() && reduce.getNumAccumulators() == 1 &&
         !isArgReduction(reduce.getKind(0)) && countKnownTerms(reduce, heldStates) &&
         llvm::all_of(reduce.getLower(), [](Value low) { return isConstantIntValue(low, 0); }) &&
         llvm::all_of(reduce.getUpper(), isKernelLevel);
}

/// The index of the consumer that `value` is, follows as the number of a scan's term, or is the
/// mirror image of where the scan goes backward; null if there is none.
static BlockArgument followedIndex(Value value, ComputeOp consumer) {
  auto sub = value.getDefiningOp<arith::SubIOp>();
  auto number = dyn_cast<BlockArgument>(sub ? sub.getRhs() : value);
  if (!number || (!sub && number.getOwner() == consumer.getBlock()))
    return number;
  auto scan = dyn_cast<ScanOp>(number.getOwner()->getParentOp());
  std::optional<IndexOrMirror> position =
      scan ? getScanPosition(scan, consumer) : std::optional<IndexOrMirror>();
  const bool follows = position && position->isMirrored == bool(sub) &&
                       isConstantIntValue(scan.getLower(), 0) &&
                       (!sub || isLastOf(sub.getLhs(), scan.getUpper()));
  return follows ? position->index : BlockArgument();
}

/// Does a read stand in the terms of a scan, or vary with those of a reduction?
static bool isOverTerms(Read read) {
  if (read.load->getParentOfType<ScanOp>())
    return true;
  auto reduce = read.load->getParentOfType<ReduceOp>();
  return reduce && llvm::any_of(read.load.getIndices(), [&](Value index) {
           return Dependence(reduce.getBlock()->getArguments()).on(index);
         });
}

/// Does the reader reduce many terms for each value of `index`, other than those around the read?
static bool reducesBeside(Read read, BlockArgument index) {
  Dependence onElement(ValueRange{index, read.load.getResult()});
  return llvm::any_of(read.consumer.getBlock()->getOps<ReduceOp>(), [&](ReduceOp reduce) {
    return !reduce->isAncestor(read.load) && onElement.on(reduce.getResult(0)) &&
           !countKnownTerms(reduce, fewTerms);
  });
}

/// The reason to store a producer that scans for a read in a reduction's terms or in a scan's.
static std::optional<std::string> whyNotStates(Read read) {
  std::string notByElement = "it scans, and is not read element by element";
  auto producer = cast<ComputeOp>(read.producer.getOwner());
  ComputeOp consumer = read.consumer;
  auto module = consumer->getParentOfType<ModuleOp>();
  if (!module->hasAttr(gpu::targetAttrName) || read.load.getPad())
    return notByElement;
  for (Operation *around = read.load->getParentOp(); around != consumer;
       around = around->getParentOp()) {
    auto reduce = dyn_cast<ReduceOp>(around);
    if (reduce ? !hasHeldTerms(reduce, consumer) : !isa<ScanOp>(around))
      return "it scans, and a tile of its reader does not have all terms that are read";
  }
  SmallVector<unsigned> positions = producer.getIndicesOf(read.producer.getResultNumber());
  const SmallVector<ScanOp> scans = scansOf(read.producer);
  llvm::SmallPtrSet<Value, 4> seen, scanned;
  for (auto [axis, value] : llvm::enumerate(read.load.getIndices())) {
    const Value extent = producer.getExtents()[positions[axis]];
    BlockArgument index = followedIndex(value, consumer);
    auto ofTerm = dyn_cast<BlockArgument>(value);
    auto reduce = ofTerm ? dyn_cast<ReduceOp>(ofTerm.getOwner()->getParentOp()) : ReduceOp();
    if (!index && !reduce)
      return notByElement;
    const Value range = index ? consumer.getExtents()[index.getArgNumber()]
                              : reduce.getUpper()[ofTerm.getArgNumber()];
    if (!isSameExtent(extent, range) || !seen.insert(index ? index : ofTerm).second)
      return notByElement;
    for (ScanOp scan : scans) {
      std::optional<IndexOrMirror> position = getScanPosition(scan, producer);
      if (!position)
        return notByElement;
      if (position->index != producer.getIndex(positions[axis]))
        continue;
      if (!index)
        return "it scans along the terms of its reader";
      scanned.insert(index);
      if (scanned.size() > 1 || scansElsewhere(consumer, index))
        return "it scans, and its reader along another index";
      if (scansOtherwise(consumer, index, position->isMirrored))
        return "it scans, and its reader scans in the other direction";
      if (reducesBeside(read, index))
        return "it scans, and its reader reduces for each element: blocks would have whole rows";
    }
  }
  return std::nullopt;
}

std::optional<std::string> whyNotScan(Read read) {
  std::string notByElement = "it scans, and is not read element by element";
  if (isOverTerms(read))
    return whyNotStates(read);
  auto producer = cast<ComputeOp>(read.producer.getOwner());
  ComputeOp consumer = read.consumer;
  SmallVector<unsigned> positions = producer.getIndicesOf(read.producer.getResultNumber());
  if (read.load.getIndices().size() != consumer.getNumIndices())
    return notByElement;
  const bool isForGpu = consumer->getParentOfType<ModuleOp>()->hasAttr(gpu::targetAttrName);
  bool anyBefore = false;
  Value scanned = producer.getYield().getValues()[read.producer.getResultNumber()];
  SmallVector<ScanOp> scans;
  for (Operation *op : getSlice(scanned, producer.getBlock()))
    if (auto scan = dyn_cast<ScanOp>(op))
      scans.push_back(scan);
  for (auto [axis, value] : llvm::enumerate(read.load.getIndices())) {
    const Value extent = producer.getExtents()[positions[axis]];
    std::optional<Place> place = matchPlace(value, extent, consumer);
    if (!place || place->index != consumer.getIndex(axis) ||
        (place->isBefore && !read.load.getPad()))
      return notByElement;
    anyBefore |= place->isBefore;
    Dependence onElement(ValueRange{place->index, read.load.getResult()});
    for (ScanOp scan : scans) {
      std::optional<IndexOrMirror> position = getScanPosition(scan, producer);
      if (!position || position->index != producer.getIndex(positions[axis]))
        continue;
      // All of a row is scanned where it is read.
      if ((place->isMirrored && (!isForGpu || position->isMirrored)) ||
          !isSameExtent(extent, consumer.getExtents()[axis]))
        return notByElement;
      if (scansOtherwise(consumer, place->index, place->isMirrored || position->isMirrored))
        return "it scans, and its reader scans in the other direction";
      for (ReduceOp reduce : consumer.getBlock()->getOps<ReduceOp>())
        if (onElement.on(reduce.getResult(0)) && !countKnownTerms(reduce, fewTerms))
          return "it scans, and its reader reduces for each element: blocks would have whole rows";
    }
  }
  return read.load.getPad() && !anyBefore ? std::optional(notByElement) : std::nullopt;
}

void keepFactorsOfStates(ReduceOp reduce) {
  reduce.walk([](arith::TruncFOp rounded) {
    for (Operation *user : llvm::make_early_inc_range(rounded->getUsers()))
      if (auto extended = dyn_cast<arith::ExtFOp>(user);
          extended && rounded->hasAttr(roundedFactorAttr) &&
          extended.getType() == rounded.getIn().getType())
        extended.replaceAllUsesWith(rounded.getIn());
  });
}

} // namespace tk
