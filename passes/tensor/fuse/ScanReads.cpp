//===- ScanReads.cpp - when a scan is fused into its reader ---------------===//
//
// A fused scan gives its whole row to one block. The block then also computes everything else that
// the reader needs for the elements of the row. Reductions for each element, such as matrix-vector
// products, would have only as many blocks as there are rows. A scan is therefore not fused into a
// reader with such reductions, unless they have few elements, such as those of a window.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/FuseProducers.h"

#include "passes/analysis/ScalarExpr.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tk {

/// How many terms of each element a block may reduce beside a scan.
static constexpr int64_t fewTerms = 16;

/// The reader's index along which the producer scans, if it is one of those at which it is read.
static Value scannedIndex(Read read, ScanOp scan) {
  auto producer = cast<ComputeOp>(read.producer.getOwner());
  SmallVector<unsigned> positions = producer.getIndicesOf(read.producer.getResultNumber());
  for (auto [axis, position] : llvm::enumerate(positions))
    if (producer.getIndex(position) == scan.getPosition())
      return read.load.getIndices()[axis];
  return {};
}

std::optional<std::string> whyNotScan(Read read) {
  llvm::SetVector<Value> used(read.load.getIndices().begin(), read.load.getIndices().end());
  if (used.size() != read.consumer.getNumIndices() ||
      read.load.getIndices().size() != used.size() || read.load.getPad())
    return "it scans, and is not read element by element";
  for (auto [n, index] : llvm::enumerate(read.load.getIndices()))
    if (index != read.consumer.getIndex(n))
      return "it scans, and is not read element by element";
  auto producer = cast<ComputeOp>(read.producer.getOwner());
  Value scanned = producer.getYield().getValues()[read.producer.getResultNumber()];
  for (Operation *op : getSlice(scanned, producer.getBlock())) {
    auto scan = dyn_cast<ScanOp>(op);
    Value along = scan ? scannedIndex(read, scan) : Value();
    if (!along)
      continue;
    Dependence onElement(ValueRange{along, read.load.getResult()});
    for (ReduceOp reduce : read.consumer.getBlock()->getOps<ReduceOp>())
      if (onElement.on(reduce.getResult(0)) && !countKnownTerms(reduce, fewTerms))
        return "it scans, and its reader reduces for each element: blocks would have whole rows";
  }
  return std::nullopt;
}

} // namespace tk
