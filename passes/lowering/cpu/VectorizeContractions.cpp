//===- VectorizeContractions.cpp - matrix products in registers -----------===//
//
// A small matrix product is fast if its accumulators stay in vector registers during the whole
// reduction. This pass turns such a product into loops that carry the accumulators.
//
// 1. Find contractions with rows and columns whose dimensions are static, except for reduced ones.
// 2. Tile the reduced dimensions by one with MLIR's tiling, so that a step is an outer product. In
//    f32, tile a single reduced dimension by blocks of 32 first.
// 3. Vectorise the step to `vector.contract`.
// 4. Move reads and writes of the accumulators out of the loops, which then carry them in
//    registers.
// 5. In f32, start the two outermost loops at 0, and add their result to the accumulator. An
//    element is then added to those of its block only, so that the error grows with blocks, not
//    elements.
//
// The pass leaves contractions with more than `max-elements` results (256) to plain loops, because
// their accumulators do not fit into registers.
//
//   linalg.matmul ins(8x?, ?x32) outs(8x32)    c = transfer_read; d = 0
//                                        =>    for blocks: e = 0; for k: e = contract(a, b, e)
//                                                          d = d + e
//                                              transfer_write c + d
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/CpuPasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

namespace tk {
#define GEN_PASS_DEF_VECTORIZECONTRACTIONS
#include "passes/lowering/cpu/CpuPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

/// The elements of the sum of a matrix product (a dot product of vectors is none); nothing where
/// there is a dimension that is neither static nor reduced.
static std::optional<int64_t> sumElements(linalg::LinalgOp op) {
  FailureOr<linalg::ContractionDimensions> dims = linalg::inferContractionDims(op);
  if (!linalg::isaContractionOpInterface(op) || failed(dims) || dims->m.empty() || dims->n.empty())
    return std::nullopt;
  int64_t elements = 1;
  for (auto [extent, kind] : llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray())) {
    if (kind != utils::IteratorType::parallel)
      continue;
    if (ShapedType::isDynamic(extent))
      return std::nullopt;
    elements *= extent;
  }
  return elements;
}

/// Tiles `op` by `size` along the reduced dimensions; null where that fails.
static Operation *tileTerms(IRRewriter &rewriter, linalg::LinalgOp op, int64_t size) {
  SmallVector<OpFoldResult> sizes;
  for (utils::IteratorType kind : op.getIteratorTypesArray())
    sizes.push_back(rewriter.getIndexAttr(kind == utils::IteratorType::reduction ? size : 0));
  rewriter.setInsertionPoint(op);
  FailureOr<scf::SCFTilingResult> tiled =
      scf::tileUsingSCF(rewriter, cast<TilingInterface>(op.getOperation()),
                        scf::SCFTilingOptions().setTileSizes(sizes));
  if (failed(tiled))
    return nullptr;
  rewriter.replaceOp(op, tiled->replacements);
  return tiled->tiledOps.front();
}

/// Terms that are added one after the other, and then to the sum.
static constexpr int64_t blockOfTerms = 32;

static bool isSumOfF32(linalg::LinalgOp op) {
  return getElementTypeOrSelf(op.getDpsInits().front().getType()).isF32();
}

static LogicalResult vectorizeOne(IRRewriter &rewriter, linalg::LinalgOp op) {
  Operation *step = op;
  if (isSumOfF32(op) && op.getNumReductionLoops() == 1)
    step = tileTerms(rewriter, op, blockOfTerms);
  step = step ? tileTerms(rewriter, cast<linalg::LinalgOp>(step), 1) : nullptr;
  if (!step)
    return failure();
  rewriter.setInsertionPoint(step);
  FailureOr<linalg::VectorizationResult> vectors =
      linalg::vectorize(rewriter, step, /*inputVectorSizes=*/{}, /*inputScalableVecDims=*/{},
                        /*vectorizeNDExtract=*/false, /*flatten1DDepthwiseConv=*/false,
                        /*assumeDynamicDimsMatchVecSizes=*/false, /*createNamedContraction=*/true);
  if (failed(vectors))
    return failure();
  rewriter.replaceOp(step, vectors->replacements);
  return success();
}

/// Is value number `number` that `loop` carries a sum of f32 to which its body, or a loop in it,
/// adds products, and does nothing else?
static bool carriesProducts(scf::ForOp loop, unsigned number) {
  Value carried = loop.getRegionIterArg(number), next = loop.getYieldedValues()[number];
  auto type = dyn_cast<VectorType>(carried.getType());
  if (!type || !type.getElementType().isF32() || !carried.hasOneUse())
    return false;
  if (auto product = next.getDefiningOp<vector::ContractionOp>())
    return product.getAcc() == carried;
  auto inner = next.getDefiningOp<scf::ForOp>();
  if (!inner)
    return false;
  const unsigned result = cast<OpResult>(next).getResultNumber();
  return inner.getInitArgs()[result] == carried && carriesProducts(inner, result);
}

/// Adds what the loop sums up to what it began with, rather than each product.
static void sumApart(IRRewriter &rewriter, scf::ForOp loop, unsigned number) {
  Value start = loop.getInitArgs()[number], result = loop.getResult(number);
  rewriter.setInsertionPoint(loop);
  Value zero =
      arith::ConstantOp::create(rewriter, loop.getLoc(), rewriter.getZeroAttr(start.getType()));
  loop.getInitArgsMutable()[number].set(zero);
  rewriter.setInsertionPointAfter(loop);
  auto sum = arith::AddFOp::create(rewriter, loop.getLoc(), start, result);
  rewriter.replaceAllUsesExcept(result, sum, sum);
}

namespace {
struct VectorizeContractions : ::tk::impl::VectorizeContractionsBase<VectorizeContractions> {
  using VectorizeContractionsBase::VectorizeContractionsBase;
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> contractions;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (std::optional<int64_t> elements = sumElements(op); elements && *elements <= maxElements)
        contractions.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : contractions) {
      if (failed(vectorizeOne(rewriter, op))) {
        op.emitError("a contraction of this form cannot be vectorised");
        return signalPassFailure();
      }
      ++numVectorized;
    }
    RewritePatternSet patterns(&getContext());
    tensor::ExtractSliceOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::InsertSliceOp::getCanonicalizationPatterns(patterns, &getContext());
    vector::TransferReadOp::getCanonicalizationPatterns(patterns, &getContext());
    vector::TransferWriteOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::populateFoldTensorSubsetIntoVectorTransferPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    SmallVector<LoopLikeOpInterface> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (LoopLikeOpInterface loop : loops) { // inner ones come first
      moveLoopInvariantCode(loop);
      (void)hoistLoopInvariantSubsets(rewriter, loop);
    }
    // Hoisting has made new loops. Those outside come first.
    SmallVector<std::pair<scf::ForOp, unsigned>> sums;
    DenseMap<Value, unsigned> depths; // of carried sums: loops around that carry them, too
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i) {
        if (!carriesProducts(loop, i))
          continue;
        const unsigned depth = depths.lookup(loop.getInitArgs()[i]);
        if (depth < 2)
          sums.emplace_back(loop, i);
        depths[loop.getRegionIterArg(i)] = depth + 1;
      }
    });
    for (auto [loop, number] : sums)
      sumApart(rewriter, loop, number);
  }
};
} // namespace
