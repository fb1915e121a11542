//===- PlanElementLoads.cpp - contractions of operands without alignment --===//
//
// Copies to shared memory take at least 4 bytes. A 16-bit operand whose rows are not aligned to 4
// bytes, or that is contiguous along no index of the tile, goes through registers element by
// element. It shares these registers with the accumulators.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

namespace {
/// How the elements of a product's factors lie.
struct Elements {
  bool areMisaligned = true; ///< rows of both begin at any element
  bool areScattered = false; ///< no row lies along the tile, or it moves as another sum counts
  bool isLeftAlong = false, isRightAlong = false; ///< which of them lie along the sum
};
} // namespace

static Elements readElements(StatementShape &shape, Contraction &product) {
  constexpr int64_t leastCopied = 4;
  Elements elements;
  unsigned count = 0;
  auto read = [&](LoadOp load) {
    SmallVector<BlockArgument> along = getIterationIndices(load.getIndices().back());
    unsigned tiled = 0, moving = 0;
    for (BlockArgument index : along) {
      bool isTiled = index == product.m || index == product.n || index == product.k;
      tiled += isTiled;
      moving += !isTiled && isa<ReduceOp>(index.getOwner()->getParentOp());
    }
    int64_t alignment = getRowAlignment(shape.kernel, load);
    elements.areScattered |= moving || !tiled;
    ++count;
    elements.areMisaligned &= alignment && alignment < leastCopied;
    if (llvm::is_contained(along, product.k))
      (llvm::is_contained(getIterationIndices(load.getResult()), product.m)
           ? elements.isLeftAlong
           : elements.isRightAlong) = true;
  };
  for (Value term : product.op.getYield().getValues())
    if (Operation *factors = term.getDefiningOp())
      for (Value factor : factors->getOperands())
        if (auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
            load && !load.getIndices().empty())
          read(load);
  elements.areMisaligned &= count > 0;
  return elements;
}

/// How many outputs a thread should have, `outputs` where all is copied, and how long slices are.
///
/// Measured on an H200, TFLOP/s at 4001^3, with 128 outputs and slices of 64, 128 and 32, 64 and
/// 64, 64 and 32: NN 104, 110, 110, 128; NT 66, 108, 118, 64; TN 116, 109, 96, 133; TT 121, 111,
/// 102, 104. Convolutions of 3 x 3 (112 x 112, 64 to 128 channels): 95, 112, 70, 108. Where copies
/// take one of the factors, 128 and 64 are faster (3000 x 3002 x 1001, NN: 148.5 us for 182).
int64_t Planner::planElementLoads(Contraction &product, int64_t outputs) {
  Elements elements = readElements(shape, product);
  if (!elements.areMisaligned && !elements.areScattered)
    return outputs;
  constexpr int64_t shortSlice = 32;
  bool isShort = elements.areScattered || !elements.isRightAlong;
  if (isShort && !block.tiles.contains(product.k))
    tiles[product.k] = std::min(tileOf(product.k), shortSlice);
  bool areFew = !elements.areScattered && (elements.isLeftAlong || !elements.isRightAlong);
  return areFew ? outputs / 2 : outputs;
}
