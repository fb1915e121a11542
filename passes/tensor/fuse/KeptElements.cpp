//===- KeptElements.cpp - elements that row reductions would have stored --===//
//
// A pointwise compute op is computed where it is read. It is stored if it contains row reductions
// that its own readers cannot repeat. The result of the reductions has one element for each row,
// and the pointwise op has all elements of the row. This file finds rows that are better stored:
//
// 1. The reader of the rows is a pointwise op along further indices, and no result of the kernel.
// 2. All of its own readers could compute it. None is a matrix product, nor leads to one, which is
//    faster with a stored operand.
// 3. Some reader reduces over an index of the rows, and could not compute it with the rows in it.
//    The readers of a pointwise reader count as its own.
// 4. Or some reader could not compute it with the rows in it, and its element is no smaller than
//    what it loads for each: a normed row that is reduced in groups, for example. To load that
//    again takes less than to store the elements and to load them.
//
//   %m = tk.compute ["i"] {.. tk.reduce [max] ["r"] %x[2 * %i + %r] ..}
//   %t = tk.compute ["i","r"] {.. %x[2 * %i + %r] == %m[%i] ..}
//   %y = tk.compute ["h"] {.. tk.reduce [sum] ["r"] %t[(%h - %r) / 2, %r] ..}      %m is stored
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/FuseProducersCost.h"
#include "passes/tensor/fuse/InlineProducer.h"

using namespace mlir;

namespace tk {

/// The most pointwise ops between the rows and a reader that reduces.
static constexpr unsigned mostPointwiseLinks = 4;

static SmallVector<Read> getReadsOf(OpResult element, OpResult producer) {
  SmallVector<Read> reads;
  for (Operation *user : element.getUsers())
    if (auto load = dyn_cast<LoadOp>(user); load && load.getTensor() == element)
      if (auto consumer = load->getParentOfType<ComputeOp>())
        reads.push_back({load, consumer, producer});
  return reads;
}

/// A copy of the read's consumer with the producer's expression in place of the load.
static ComputeOp cloneWith(Read read) {
  OpBuilder builder(read.consumer);
  IRMapping mapping;
  auto copy = cast<ComputeOp>(builder.clone(*read.consumer, mapping));
  auto load = mapping.lookup(read.load.getResult()).getDefiningOp<LoadOp>();
  Inliner({load, copy, read.producer}).run();
  return copy;
}

/// True if a matrix product, or one of a matrix and a vector, has the element in its terms, or the
/// element of a pointwise reader.
static bool feedsContraction(OpResult element, unsigned links) {
  return llvm::any_of(getReadsOf(element, element), [&](Read read) {
    const OpResult next = read.consumer->getResult(0);
    return llvm::any_of(getEnclosingReductions(read.load),
                        [](ReduceOp reduce) { return isContraction(reduce); }) ||
           (links > 0 && classify(next) == ProducerKind::Pointwise &&
            feedsContraction(next, links - 1));
  });
}

/// True if the rows that `read.producer` computes vary with an index that the reader reduces over.
static bool isReducedOver(Read read) {
  return llvm::any_of(getProducerSlice(read.producer), [&](Operation *op) {
    return isa<ReduceOp>(op) && !getReach(op, read).reduced.empty();
  });
}

/// True if the loads of `element` at each of its indices are of no more bits than it.
static bool loadsNoMore(OpResult element) {
  auto compute = cast<ComputeOp>(element.getOwner());
  unsigned bits = 0;
  for (LoadOp load : compute.getBlock()->getOps<LoadOp>())
    if (getIterationIndices(load.getResult()).size() == compute.getNumIndices())
      bits += load.getType().getIntOrFloatBitWidth();
  return bits <= cast<RankedTensorType>(element.getType()).getElementTypeBitWidth();
}

namespace {
/// How the readers of a pointwise compute op take rows that are computed in it.
enum class Fate { Kept, Fused, Lost };
} // namespace

/// `withRows` is `element` with the rows computed in it. Kept: it is stored with and without them.
static Fate getFate(OpResult element, OpResult withRows, int64_t maxExtra, unsigned links,
                    llvm::function_ref<bool(OpResult)> isStored) {
  if (element.getOwner()->getNumResults() != 1 || classify(element) != ProducerKind::Pointwise ||
      isStored(element) || llvm::any_of(element.getUsers(), llvm::IsaPred<ReturnOp>))
    return Fate::Kept;
  SmallVector<Read> reads = getReadsOf(element, element);
  if (reads.empty() || llvm::any_of(reads, [&](Read read) {
        return whyNotInline(read, ProducerKind::Pointwise, maxExtra).has_value();
      }))
    return Fate::Kept;
  Fate fate = Fate::Fused;
  bool isStoredWithRows = false;
  for (Read read : reads) {
    const Read rows{read.load, read.consumer, withRows};
    if (whyNotInline(rows, ProducerKind::Rows, maxExtra)) {
      isStoredWithRows = true;
      if (isReducedOver(rows))
        fate = Fate::Lost;
      continue;
    }
    OpResult next = read.consumer->getResult(0);
    if (fate == Fate::Lost || links == 0 || classify(next) != ProducerKind::Pointwise)
      continue;
    ComputeOp copy = cloneWith(rows);
    if (getFate(next, copy->getResult(0), maxExtra, links - 1, isStored) == Fate::Lost)
      fate = Fate::Lost;
    copy.erase();
  }
  return isStoredWithRows && loadsNoMore(element) ? Fate::Lost : fate;
}

ComputeOp findKeptElements(Read read, int64_t maxExtra,
                           llvm::function_ref<bool(OpResult)> isStored) {
  const bool isAlongMore = llvm::any_of(getProducerSlice(read.producer), [&](Operation *op) {
    return isa<ReduceOp>(op) && !getReach(op, read).extra.empty();
  });
  OpResult element = read.consumer->getResult(0);
  if (!isAlongMore || classify(element) != ProducerKind::Pointwise ||
      feedsContraction(element, mostPointwiseLinks))
    return {};
  ComputeOp copy = cloneWith(read);
  const Fate fate = getFate(element, copy->getResult(0), maxExtra, mostPointwiseLinks, isStored);
  copy.erase();
  return fate == Fate::Lost ? read.consumer : ComputeOp();
}

} // namespace tk
