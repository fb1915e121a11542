//===- StoreProducts.cpp - storing matrix products for all their readers --===//
//
// FuseProducersCost.cpp decides for one read whether a matrix product is fused. The product is
// stored all the same in these cases:
//
// 1. It is a result that is read in a loop, or of which single elements are read.
// 2. An extremum over it needs an earlier reduction over it. Each of the consecutive loops would
//    compute it.
// 3. It is read at several kinds of indices, for each of which fusion would compute it once. Slices
//    at different places are products of their own.
// 4. One of its readers needs the result of another one. The two cannot be one compute op, and each
//    would compute the product.
// 5. The accumulators of all its readers together exceed the registers (the gates of a recurrent
//    cell).
// 6. It is part of back-to-back contractions whose operands exceed shared memory.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/fuse/FuseProducers.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tk {

using namespace limits::store_products;

/// True if both loads stand at the same indices, reduction indices over equal ranges being the
/// same.
static bool haveSameIndices(Read a, Read b, ArrayRef<unsigned> embedding) {
  ScalarEquality equality;
  for (auto [n, position] : llvm::enumerate(embedding))
    equality.identify(a.consumer.getIndex(n), b.consumer.getIndex(position));
  SmallVector<ReduceOp> aroundA = getEnclosingReductions(a.load),
                        aroundB = getEnclosingReductions(b.load);
  for (auto [ra, rb] : llvm::zip(aroundA, aroundB))
    if (equality.equal(ra.getLower(), rb.getLower()) &&
        equality.equal(ra.getUpper(), rb.getUpper()))
      for (unsigned n = 0; n < ra.getNumIndices(); ++n)
        equality.identify(ra.getIndex(n), rb.getIndex(n));
  return equality.equal(a.load.getIndices(), b.load.getIndices());
}

/// Does an index stand at one place, such as 0, wherever the read is executed?
static bool isPlace(Value index) { return getIterationIndices(index).empty(); }

/// True if the read takes one element of each row only. A `slice`, at one place of some axes, is
/// all that is read along them: of the other axes it may take every element.
static bool readsOneElement(Read read, bool ofSlice = false) {
  llvm::SetVector<BlockArgument> all;
  size_t axes = 0;
  for (Value index : read.load.getIndices()) {
    axes += !ofSlice || !isPlace(index);
    for (BlockArgument arg : getIterationIndices(index))
      all.insert(arg);
  }
  return all.size() < axes;
}

/// True if the reads are known to take different slices.
static bool areApart(Read a, Read b) {
  return llvm::any_of(llvm::zip_equal(a.load.getIndices(), b.load.getIndices()), [](auto pair) {
    auto [x, y] = pair;
    std::optional<int64_t> first = getConstantIntValue(x), second = getConstantIntValue(y);
    return first && second && *first != *second;
  });
}

/// True if both reads take the same elements at the same time, so that one computation is enough.
static bool readTogether(Read a, Read b) {
  if (a.consumer.getNumIndices() > b.consumer.getNumIndices())
    std::swap(a, b);
  return llvm::any_of(getEmbeddings(a.consumer, b.consumer),
                      [&](ArrayRef<unsigned> e) { return haveSameIndices(a, b, e); });
}

/// The most terms of a product that `producer`, a product itself, has in its own terms, or will
/// have once what it reads is computed there: 0 if it is no chain, -1 if they are not known.
static int64_t termsOfChain(OpResult producer, int64_t maxExtra) {
  auto compute = cast<ComputeOp>(producer.getOwner());
  int64_t terms = 0;
  auto take = [&](ReduceOp product) {
    int64_t upper = isContraction(product) ? getUpperBound(product.getUpper().back()) : 0;
    terms = terms < 0 || upper < 0 ? -1 : std::max(terms, upper);
  };
  compute->walk([&](ReduceOp product) {
    if (product->getParentOfType<ReduceOp>())
      take(product);
  });
  compute->walk([&](LoadOp load) {
    auto first = dyn_cast<OpResult>(load.getTensor());
    if (first && isa<ComputeOp>(first.getOwner()) && classify(first) == ProducerKind::Products &&
        !getEnclosingReductions(load).empty() &&
        !whyNotInline({load, compute, first}, ProducerKind::Products, maxExtra))
      first.getOwner()->walk(take);
  });
  return terms;
}

/// Does shared memory hold the least that so many slices of `producer`, if that is a chain of two
/// products, have in it at a time: their rows of factors, and as many terms of the others?
static bool haveRoom(OpResult producer, size_t slices, int64_t maxExtra) {
  auto compute = cast<ComputeOp>(producer.getOwner());
  auto target =
      compute->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  const int64_t terms = termsOfChain(producer, maxExtra),
                columns =
                    compute.getExtents().empty() ? 0 : getUpperBound(compute.getExtents().back());
  if (!target || terms <= 0 || columns <= 0)
    return true;
  const int64_t elements = 2 * llvm::PowerOf2Ceil(std::min(terms, widestTile)) +
                           llvm::PowerOf2Ceil(std::min(columns, widestTile));
  return int64_t(slices) * leastRowsOfTile * bytesOfFactor * elements <= target.getShared();
}

/// True if some extremum over what is read needs what was reduced of it before: loops of their own,
/// in each of which the product would be computed. (Sums can be carried beside what they need.)
static bool isReducedInTurn(ArrayRef<Read> reads) {
  for (Read read : reads) {
    SmallVector<ReduceOp> readers;
    for (ReduceOp reduce : read.consumer.getBlock()->getOps<ReduceOp>())
      if (llvm::any_of(reads, [&](Read other) { return reduce->isAncestor(other.load); }))
        readers.push_back(reduce);
    for (ReduceOp first : readers) {
      Dependence onFirst(first.getResults());
      if (llvm::any_of(readers, [&](ReduceOp next) {
            return next != first && next.getKind(0) != ReduceKind::Sum &&
                   onFirst.on(next.getResult(0));
          }))
        return true;
    }
  }
  return false;
}

/// Does `reader` need, by any number of statements, what `statement` computes?
static bool needs(ComputeOp reader, ComputeOp statement) {
  SmallVector<ComputeOp> work = {reader};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!work.empty()) {
    WalkResult found = work.pop_back_val().walk([&](LoadOp load) {
      auto other = load.getTensor().getDefiningOp<ComputeOp>();
      if (other == statement)
        return WalkResult::interrupt();
      if (other && seen.insert(other).second)
        work.push_back(other);
      return WalkResult::advance();
    });
    if (found.wasInterrupted())
      return true;
  }
  return false;
}

/// True if, of two readers that have each element once, one needs what the other computes. In the
/// terms of reductions, such as the scores of attention and of its gradient, a product is computed
/// again rather than stored.
static bool areReadInTurn(ArrayRef<Read> reads) {
  SmallVector<ComputeOp> readers;
  for (Read read : reads)
    if (getEnclosingReductions(read.load).empty() && !llvm::is_contained(readers, read.consumer))
      readers.push_back(read.consumer);
  return llvm::any_of(readers, [&](ComputeOp reader) {
    return llvm::any_of(readers, [&](ComputeOp other) { return needs(reader, other); });
  });
}

/// How many matrix products an element of `producer` is computed from.
static size_t countProducts(OpResult producer) {
  auto compute = cast<ComputeOp>(producer.getOwner());
  Value element = compute.getYield().getValues()[producer.getResultNumber()];
  return llvm::count_if(getSlice(element, compute.getBlock()), [](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return reduce && isMatrixProduct(reduce);
  });
}

std::optional<std::string> whyStoreProducts(ArrayRef<Read> reads, bool isKernelResult,
                                            int64_t maxExtra) {
  SmallVector<Read> whole;
  for (Read read : reads)
    if (!readsOneElement(read))
      whole.push_back(read);
  for (Read read : reads) {
    bool inLoop = !getEnclosingReductions(read.load).empty();
    if (isKernelResult && (inLoop || readsOneElement(read)))
      return "it is a result, and reading it is cheaper than computing it again";
  }
  if (isReducedInTurn(whole))
    return "an extremum over it needs what is reduced of it before";
  if (areReadInTurn(whole))
    return "one of its readers needs what another one computes of it";
  // Slices are products of their own, of which only those that are read are computed.
  if (whole.empty() && llvm::none_of(reads, [](Read read) { return readsOneElement(read, true); }))
    llvm::append_range(whole, reads);
  if (whole.empty())
    return "only single elements of it are read";
  size_t slices = 0;
  for (auto [n, read] : llvm::enumerate(whole)) {
    bool isNew = true;
    for (Read before : ArrayRef<Read>(whole).take_front(n)) {
      if (areApart(before, read))
        continue;
      if (!readTogether(before, read))
        return "it is read at several kinds of indices, and would be computed once for each";
      isNew = false;
    }
    slices += isNew;
  }
  if (slices * countProducts(reads.front().producer) > mostSums)
    return "its slices are more products than a tile has sums of";
  if (!haveRoom(reads.front().producer, slices, maxExtra))
    return "the factors of its slices' chains are more than shared memory holds";
  return std::nullopt;
}

} // namespace tk
