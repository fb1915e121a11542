//===- ReducedProducts.cpp - matrix products under a reduction ------------===//
//
// Part of the third rule of FuseProducersCost.cpp. The sum, the extremum or the log-sum-exp of each
// row of a matrix product may compute the product in its elements. One block then visits all
// columns of its rows, and the product is not stored. The product is stored all the same in these
// cases:
//
// 1. Only a stored product uses the matrix unit: f32 by bf16x3 decomposition
//    (tk-split-significands), also in the terms of another product.
// 2. The reduction begins in the epilogue of the stored product (tk-attach-reductions). That
//    product has more blocks, and it stays in registers if there is no other reader.
// 3. The reader would have fewer blocks than there are multiprocessors, each with a long range.
//
// None of this applies to a CPU, which has few cores and no epilogue to begin a reduction in.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/fuse/FuseProducersCost.h"

#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/StoredReductions.h"
#include "passes/machine/Costs.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"
#include "passes/tensor/split/SignificandParts.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk {

using namespace limits::reduced_products;

SmallVector<ReduceOp> getReductionsOver(Read read, const Reach &reach) {
  SmallVector<ReduceOp> around = getEnclosingReductions(read.load);
  auto varies = [&](ReduceOp reduce) {
    return llvm::any_of(reach.reduced,
                        [&](BlockArgument index) { return index.getOwner() == reduce.getBlock(); });
  };
  return {llvm::find_if(around, varies), around.end()};
}

/// How many terms `reduce` has at most; nullopt where that is not known.
static std::optional<int64_t> countTerms(ReduceOp reduce) {
  int64_t terms = 1;
  for (Value end : reduce.getUpper()) {
    const int64_t upper = getUpperBound(end);
    if (upper < 0)
      return std::nullopt;
    terms = std::min(terms * std::min(upper, many), many);
  }
  return terms;
}

/// At most so many blocks compute the rows of `consumer`, each a tile of its last index; nullopt
/// where sizes are not known.
static std::optional<int64_t> countTilesOfRows(ComputeOp consumer) {
  int64_t tiles = 1;
  for (auto [n, extent] : llvm::enumerate(consumer.getExtents())) {
    const int64_t upper = getUpperBound(extent);
    if (upper < 0)
      return std::nullopt;
    const bool isLast = n + 1 == consumer.getNumIndices();
    const int64_t own = isLast ? llvm::divideCeil(upper, rowsOfLargestTile) : upper;
    tiles = std::min(tiles * std::clamp<int64_t>(own, 1, many), many);
  }
  return tiles;
}

/// True if parts of the product's factors, which are stored in f32, are worth it. In the terms of
/// another reduction a product has none.
static bool paysInParts(ReduceOp product, gpu::TargetAttr target) {
  auto factors = factorsOf(product.getYield().getValues()[0]);
  if (!hasFeature(target, Feature::WarpgroupProducts) || !isMatrixProduct(product) || !factors ||
      product.getPrecision() != Precision::Default || product.getNumIndices() != 1)
    return false;
  for (LoadOp load : {factors->first, factors->second})
    if (!cast<RankedTensorType>(load.getTensor().getType()).getElementType().isF32())
      return false;
  SignificandCost cost{product->getParentOfType<KernelOp>(), product->getParentOfType<ComputeOp>(),
                       target.getProcessors()};
  return cost.pays({product});
}

/// True if rows' tiles are fewer than processors, each has much to do, and the processors without
/// work could multiply more than it takes to store and to read the product.
static bool leavesFewTiles(ReduceOp product, Read read, std::optional<int64_t> terms,
                           gpu::TargetAttr target) {
  std::optional<int64_t> tiles = countTilesOfRows(read.consumer);
  if (!tiles || !terms || *tiles >= target.getProcessors())
    return false;
  const int64_t depth = std::clamp<int64_t>(countTerms(product).value_or(many), 1, many);
  return *terms >= cost::termsThatOutweighLaunch / depth &&
         (target.getProcessors() - *tiles) * depth >= *tiles * cost::termsOfStoredOutput;
}

/// True if `reduce` is a matrix product, or has one in its terms.
static bool holdsMatrixProduct(ReduceOp reduce) {
  return reduce
      .walk([](ReduceOp inner) {
        return isMatrixProduct(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// True if one factor of the product is over what is reduced, and not the other one: its rows or
/// columns. Along an index of both, groups of terms for example, there are as many products.
static bool isOverRowsOrColumns(ReduceOp product, Read read, const Reach &reach) {
  Operation *term = product.getYield().getValues()[0].getDefiningOp();
  auto compute = cast<ComputeOp>(read.producer.getOwner());
  SmallVector<unsigned> axes = compute.getIndicesOf(read.producer.getResultNumber());
  return term && term->getNumOperands() == 2 &&
         llvm::all_of(llvm::zip_equal(axes, read.load.getIndices()), [&](auto pair) {
           auto [axis, component] = pair;
           auto index = dyn_cast<BlockArgument>(component);
           if (!index || !reach.reduced.contains(index))
             return true;
           Dependence depends(ValueRange{compute.getIndex(axis)});
           return depends.on(term->getOperand(0)) != depends.on(term->getOperand(1));
         });
}

/// The reads of what `read` reads, in all statements.
static SmallVector<Read> getAllReads(Read read) {
  SmallVector<Read> reads;
  for (Operation *user : read.producer.getUsers())
    if (auto load = dyn_cast<LoadOp>(user))
      if (auto consumer = load->getParentOfType<ComputeOp>())
        reads.push_back({load, consumer, read.producer});
  return reads;
}

/// True if another statement has the product in a chain, which computes it anyway: the log-sum-exp
/// of scores beside their weighted sum.
static bool isInChain(ReduceOp product, Read read) {
  return llvm::any_of(getAllReads(read), [&](Read other) {
    Reach reach = getReach(product, other);
    return !reach.reduced.empty() && !reach.extra.empty();
  });
}

/// True if all that reads the product are reductions that begin in its tiles.
static bool beginsInTiles(Read read) {
  return llvm::all_of(getAllReads(read), [&](Read other) {
    return readsForReductionsOnly(other.consumer, read.producer);
  });
}

std::optional<std::string> whyNotReduced(ReduceOp product, Read read, const Reach &reach) {
  auto target = read.consumer->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(
      gpu::targetAttrName);
  SmallVector<ReduceOp> around = getReductionsOver(read, reach);
  if (!target || !holdsMatrixProduct(product) || around.empty())
    return std::nullopt;
  // A chain of f32 products is computed on CUDA cores. Of scores the softmax would be a launch,
  // too.
  if (isContraction(around.front()) && !isUnderSoftmax(read) && paysInParts(product, target))
    return "the bf16x3 decomposition on the matrix unit needs it stored";
  // A reader with other indices has columns of its own, as the second product of a chain does.
  if (!reach.extra.empty() || isContraction(around.front()) ||
      !isOverRowsOrColumns(product, read, reach) || isInChain(product, read))
    return std::nullopt;
  std::optional<int64_t> terms = countTerms(around.front());
  if (terms && *terms <= columnsOfLargestTile)
    return std::nullopt;
  if (paysInParts(product, target))
    return "the bf16x3 decomposition on the matrix unit needs it stored";
  if (beginsInTiles(read))
    return "the reader's reduction begins in its epilogue";
  if (leavesFewTiles(product, read, terms, target))
    return "its reader has few tiles of rows, and reduces a long range in each";
  return std::nullopt;
}

bool isReducedProduct(ReduceOp reduce) {
  auto around = dyn_cast<ReduceOp>(reduce->getParentOp());
  return around && !around.isOnline() && isMatrixProduct(reduce);
}

SmallVector<ReduceOp> findTwins(ReduceOp reduce, ComputeOp compute) {
  SmallVector<ReduceOp> twins, around = getEnclosingReductions(reduce);
  compute->walk([&](ReduceOp other) {
    SmallVector<ReduceOp> aroundOther = getEnclosingReductions(other);
    const bool mayBeTwin = isReducedProduct(other) || isReducedPair(other);
    if (other == reduce || !mayBeTwin || around.size() != aroundOther.size())
      return;
    ScalarEquality equality;
    for (auto [a, b] : llvm::zip_equal(around, aroundOther)) {
      if (a.getNumIndices() != b.getNumIndices() || !haveSameRanges(a, b))
        return;
      for (unsigned n = 0; n < a.getNumIndices(); ++n)
        equality.identify(a.getIndex(n), b.getIndex(n));
    }
    if (equality.equal(reduce.getOperation(), other.getOperation()))
      twins.push_back(other);
  });
  return twins;
}

} // namespace tk
