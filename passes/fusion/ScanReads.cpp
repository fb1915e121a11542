//===- ScanReads.cpp - who scans along a row ------------------------------===//
//
// A scan is computed where it is read, element by element. All of its row then belongs to one
// block, and so does all else that the reader computes for the elements of the row: reductions of
// their own for each of them, such as products of a matrix and a vector, would be left to as many
// blocks as there are rows. A few terms, such as those of a window, are not in the way.
//
//===----------------------------------------------------------------------===//
#include "passes/fusion/FuseProducers.h"

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
