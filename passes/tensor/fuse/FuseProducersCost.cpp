//===- FuseProducersCost.cpp - the cost rule of producer fusion -----------===//
//
// The rule uses three sets of indices, seen from the consumer. `D` has the indices that the
// producer's reductions depend on. `extra` has the parallel indices of the consumer outside of `D`:
// along these the work is repeated once for each tile. The third set has the consumer's reduction
// indices in `D`.
//
// 1. Pointwise producers are fused. Costly producers that are read at overlapping indices are an
//    exception. So are producers that overwrite their own operand, if a reduction of the reader
//    reads them. The latter are fused if one block holds the reduced rows: it then reads the rows
//    before it overwrites any (tk-overwrite-rows).
// 2. Row reductions are fused in each of these cases:
//    * no work is repeated;
//    * the extra indices are the row itself, which the block of the row covers anyway;
//    * the product of the extra extents is known to be small, and very small along indices without
//      tiles;
//    * the consumer runs over the same row and can carry the reductions online (softmax).
//    Reductions of few rows that no cluster holds are not fused. Their parts can use all
//    multiprocessors (tk-split-reductions, tk-split-chains), and the row must be read again anyway.
//    A reduction is not fused if it would keep its reader's reductions from being split. An example
//    is the third powers of distances from a mean down columns.
// 3. Matrix products are fused into an epilogue if no work is repeated. Under a reduction of the
//    consumer (a back-to-back contraction) they are fused if a parallel index is left and one of
//    these holds:
//    * the extra indices are known to be small together;
//    * their extents are unknown, and all operands share a batch index, or the consumer carries a
//      softmax over the shared index.
//    Attention thus never stores its scores, and a perceptron stores its hidden layer. A product is
//    stored in these cases:
//    * the consumer reduces over two back-to-back contractions, one after the other, and has few
//      tiles;
//    * the product would be recomputed along an index of a reduction around it;
//    * a sum over its rows and columns would compute it again for each key;
//    * a reduction over the product's own columns reads it, and a stored product takes less time.
//
// FuseRowsCost.cpp implements rule 2, FuseProductsCost.cpp and ReducedProducts.cpp implement
// rule 3. StoreProducts.cpp decides from all reads of a product together.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/FuseProducersCost.h"
#include "passes/machine/limits/Operands.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/machine/TileFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tk {

using namespace limits::fuse_producers_cost;

static bool isCostly(Operation *op) {
  return isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log2Op, math::Log1pOp,
             math::TanhOp, math::ErfOp, math::SinOp, math::CosOp, math::PowFOp, ExpDiffOp, RandOp>(
      op);
}

/// An index expression that several combinations of iteration indices can make equal.
static bool overlaps(LoadOp load) {
  return llvm::any_of(load.getIndices(),
                      [](Value index) { return getIterationIndices(index).size() > 1; });
}

bool isCarriedFreely(Read read) {
  return llvm::all_of(getProducerSlice(read.producer), [&](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return !reduce || (getReach(reduce, read).extra.empty() &&
                       (isCarriedByReader(reduce, read) || isPointOfReader(reduce, read)));
  });
}

/// True if what is read replaces an inout parameter that it is computed from: whoever computes it
/// again behind that needs a copy of what was there before.
static bool replacesWhatItNeeds(OpResult producer) {
  auto kernel = producer.getOwner()->getParentOfType<KernelOp>();
  unsigned next = kernel.getResultNames().size();
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments())) {
    if (!kernel.getParam(i).getInout() || kernel.getReturn().getResults()[next++] != producer)
      continue;
    return llvm::any_of(getProducerSlice(producer), [&](Operation *op) {
      auto load = dyn_cast<LoadOp>(op);
      return load && load.getTensor() == param;
    });
  }
  return false;
}

/// True if what is read is a factor that was stored in parts, which threads add up the products of.
static bool isStoredInParts(Read read) {
  return llvm::any_of(getEnclosingReductions(read.load),
                      [](ReduceOp reduce) { return reduce.getPrecision() == Precision::Blocked; });
}

/// Does `load`, in a reduction of `consumer`, read rows that one block is known to hold?
static bool readsHeldRows(LoadOp load, ComputeOp consumer) {
  int64_t elements = 1;
  for (Value place : load.getIndices()) {
    auto index = dyn_cast<BlockArgument>(place);
    if (!index)
      return false;
    if (index.getOwner() == consumer.getBlock())
      continue;
    auto reduce = dyn_cast<ReduceOp>(index.getOwner()->getParentOp());
    int64_t upper = reduce && index.getArgNumber() < reduce.getNumIndices()
                        ? getUpperBound(reduce.getUpper()[index.getArgNumber()])
                        : -1;
    if (upper < 0 || llvm::MulOverflow(elements, std::max<int64_t>(upper, 1), elements))
      return false;
  }
  return elements <= longestWholeRow;
}

/// Would the reader need a copy of what `read.producer` replaces, as other threads overwrite it?
/// All reads of one statement are treated alike: one that is inlined has it read what was there
/// before.
static bool needsOldRows(Read read) {
  if (!replacesWhatItNeeds(read.producer))
    return false;
  auto producer = cast<ComputeOp>(read.producer.getOwner());
  const bool mayBeOne = llvm::equal(producer.getExtents(), read.consumer.getExtents(),
                                    [](Value a, Value b) { return isSameExtent(a, b); });
  return llvm::any_of(read.producer.getUsers(), [&](Operation *user) {
    auto load = dyn_cast<LoadOp>(user);
    return load && read.consumer->isProperAncestor(load) && !getEnclosingReductions(load).empty() &&
           !(mayBeOne && readsHeldRows(load, read.consumer));
  });
}

/// True if each term of a sum would divide anew what the producer's elements are counted by: it is
/// read where an index is computed, of which the producer makes several.
static bool isDividedInTerms(Read read, ArrayRef<Operation *> slice) {
  if (getEnclosingReductions(read.load).empty())
    return false;
  auto compute = cast<ComputeOp>(read.producer.getOwner());
  SmallVector<unsigned> axes = compute.getIndicesOf(read.producer.getResultNumber());
  SmallVector<Value> computed;
  for (auto [axis, index] : llvm::zip_equal(axes, read.load.getIndices()))
    if (!isa<BlockArgument>(index) && !getIterationIndices(index).empty())
      computed.push_back(compute.getIndex(axis));
  Dependence onComputed(computed);
  return llvm::any_of(slice, [&](Operation *op) {
    return isa<FloorDivOp, FloorModOp>(op) && onComputed.on(op->getResult(0));
  });
}

std::optional<std::string> whyNotInline(Read read, ProducerKind kind, int64_t maxExtra) {
  SmallVector<Operation *> slice = getProducerSlice(read.producer);
  if (kind == ProducerKind::Scan)
    return whyNotScan(read);
  if (isStoredInParts(read))
    return "it is a factor's parts, which copies bring";
  if (kind == ProducerKind::Pointwise) {
    if (isDividedInTerms(read, slice))
      return "each term of its reader would divide and take remainders to find its element";
    bool underReduction = !getEnclosingReductions(read.load).empty();
    if (underReduction && overlaps(read.load) && llvm::any_of(slice, isCostly))
      return "it is costly and read at overlapping indices";
    if (needsOldRows(read))
      return "it replaces what it is computed from, of which a copy would be kept";
    return std::nullopt;
  }
  for (Operation *op : slice) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce)
      continue;
    Reach reach = getReach(reduce, read);
    std::optional<std::string> why = isHeavy(reduce) ? whyNotProducts(op, read, reach, maxExtra)
                                                     : whyNotRows(reduce, read, reach, maxExtra);
    // A product of a matrix and a vector is row work, and may be a link of a chain all the same.
    bool mayBeLink = !getEnclosingReductions(read.load).empty();
    if (why && !isHeavy(reduce) && isContraction(reduce) && mayBeLink)
      why = whyNotProducts(op, read, reach, maxExtra);
    if (!why && !isHeavy(reduce))
      why = whyNotPairs(reduce, read, reach);
    if (why)
      return why;
  }
  return std::nullopt;
}

} // namespace tk
