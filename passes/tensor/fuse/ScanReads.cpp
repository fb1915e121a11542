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
  return llvm::any_of(consumer.getBlock()->getOps<ScanOp>(), [&](ScanOp scan) {
    std::optional<IndexOrMirror> position = getScanPosition(scan, consumer);
    return position && position->index == index && position->isMirrored != isBackward;
  });
}

std::optional<std::string> whyNotScan(Read read) {
  std::string notByElement = "it scans, and is not read element by element";
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

} // namespace tk
