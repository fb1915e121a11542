//===- SplitDepths.cpp - inner sums of back-to-back contractions, cut in two ==//
//
// The tile of a back-to-back contraction holds all terms of the inner sum, and its extent is a
// power of two. A sum of 576 terms (the keys of latent attention) would take a tile of 1024. This
// pass cuts such a sum in two: the terms below the greatest power of two, and the rest.
//
// 1. The pass takes inner sums of 16-bit products, on targets with `wgmma`, that are known to have
//    more terms than one warpgroup has columns, but not a power of two.
// 2. The bounds of both parts follow from that of the sum, which may be less than it is known to be
//    at most.
//
// If the values are the keys' first columns, both products then read one tile of them.
//
//   %s = tk.reduce [sum] ["d"] from(0) to(%W) {            %a = tk.reduce [sum] ["d"] from(0)
//   to(min(%W, 512)) {
//     q[h, d] * k[j, d] }                            →       q[h, d] * k[j, d] }
//                                                          %b = tk.reduce [sum] ["d"] from(0)
//                                                          to(max(%W - 512, 0)) {
//                                                            q[h, 512 + d] * k[j, 512 + d] }
//                                                          %s = %a + %b
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/Passes.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

namespace tk {
#define GEN_PASS_DEF_SPLITDEPTHS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-depths";

/// True if `reduce` sums products of 16 bits from 0 on.
static bool isHalfProduct(ReduceOp reduce) {
  if (!isContraction(reduce) || reduce.isOnline() || reduce.getNumAccumulators() != 1 ||
      reduce.getNumIndices() != 1 || getConstantIndex(reduce.getLower()[0]) != 0)
    return false;
  Operation *product = reduce.getYield().getValues()[0].getDefiningOp();
  return llvm::all_of(product->getOperands(), [](Value factor) {
    Type type = withoutExtension(factor).getType();
    return type.isBF16() || type.isF16();
  });
}

/// The number of terms in the first part of `reduce`, if it is to be cut.
static std::optional<int64_t> firstPart(KernelOp kernel, ReduceOp reduce) {
  if (!reduce->getParentOfType<ReduceOp>() || !isHalfProduct(reduce))
    return std::nullopt;
  const std::optional<int64_t> terms = getSizeFact(kernel, reduce.getUpper()[0]).upper;
  if (!terms || *terms <= mostColumnsOfWarpgroup || llvm::isPowerOf2_64(*terms) ||
      *terms > 2 * mostColumnsOfChain)
    return std::nullopt;
  return llvm::bit_floor<uint64_t>(*terms);
}

/// Cuts `reduce` behind its first `length` terms.
static void cut(ReduceOp reduce, int64_t length) {
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value upper = reduce.getUpper()[0], middle = constant(length);
  auto first = cast<ReduceOp>(builder.clone(*reduce)),
       rest = cast<ReduceOp>(builder.clone(*reduce));
  builder.setInsertionPoint(first);
  first.getUpperMutable()[0].set(builder.createOrFold<arith::MinSIOp>(loc, upper, middle));
  Value behind = builder.createOrFold<arith::SubIOp>(loc, upper, middle);
  rest.getUpperMutable()[0].set(builder.createOrFold<arith::MaxSIOp>(loc, behind, constant(0)));
  OpBuilder inside = OpBuilder::atBlockBegin(rest.getBlock());
  Value place = rest.getIndex(0);
  auto moved = arith::AddIOp::create(inside, loc, middle, place);
  place.replaceAllUsesExcept(moved, moved);
  builder.setInsertionPoint(reduce);
  Value sum = arith::AddFOp::create(builder, loc, first.getResult(0), rest.getResult(0));
  reduce.getResult(0).replaceAllUsesWith(sum);
  reduce.erase();
}

namespace {

struct SplitDepths : tk::impl::SplitDepthsBase<SplitDepths> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    if (!hasFeature(target, Feature::WarpgroupProducts))
      return;
    SmallVector<ReduceOp> sums;
    getOperation()->walk([&](ReduceOp reduce) { sums.push_back(reduce); });
    for (ReduceOp reduce : sums) {
      auto kernel = reduce->getParentOfType<KernelOp>();
      std::optional<int64_t> length = firstPart(kernel, reduce);
      if (!length)
        continue;
      note(reduce, passName, Verdict::Derived,
           "the " + describe(reduce) + " is cut behind its first " + llvm::Twine(*length) +
               " terms");
      cut(reduce, *length);
      ++numSplit;
    }
  }
};

} // namespace
