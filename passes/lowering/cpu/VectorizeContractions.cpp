//===- VectorizeContractions.cpp - matrix products in registers -----------===//
//
// For every contraction whose operands are static but for the reduced dimensions:
//
//  1. it is tiled by one along those (upstream's tiling), so that a step is a product of a column
//     with a row;
//  2. the step becomes vector operations (upstream's vectoriser): vector.contract;
//  3. reads and writes of the sum move out of the loops, which then carry it in registers.
//
//   linalg.matmul ins(8x?, ?x32) outs(8x32)    c = transfer_read; for k: c = contract(a, b, c);
//                                              transfer_write c
//
// Larger contractions are left to loops: unrolled, they would not fit into registers.
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/CpuPasses.h"

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

static LogicalResult vectorizeOne(IRRewriter &rewriter, linalg::LinalgOp op) {
  SmallVector<OpFoldResult> sizes;
  for (utils::IteratorType kind : op.getIteratorTypesArray())
    sizes.push_back(rewriter.getIndexAttr(kind == utils::IteratorType::reduction ? 1 : 0));
  rewriter.setInsertionPoint(op);
  FailureOr<scf::SCFTilingResult> tiled =
      scf::tileUsingSCF(rewriter, cast<TilingInterface>(op.getOperation()),
                        scf::SCFTilingOptions().setTileSizes(sizes));
  if (failed(tiled))
    return failure();
  rewriter.replaceOp(op, tiled->replacements);
  Operation *step = tiled->tiledOps.front();
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
  }
};
} // namespace
