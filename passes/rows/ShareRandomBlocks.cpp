//===- ShareRandomBlocks.cpp - one Philox block for neighbouring numbers --===//
//
// `tk.rand` of n is word n % 4 of Philox block n / 4. A thread that needs the numbers n to n + 3,
// with n a multiple of 4, can compute one block for all of them.
//
// 1. The pass finds a random tile whose `n` runs in steps of one along an axis. The steps form
//    aligned groups of 4 (or 2) that begin at a multiple of 4 (or 2). The `seed` must be the same
//    in each group.
// 2. The lowest register bits of the tile's layout must step by 1 (and 2) along that axis. A group
//    is then 4 (or 2) consecutive registers of one thread.
// 3. The operation gets the number of neighbours that share a block, and the emitted code computes
//    one block for them.
// 4. If the numbers are only compared with scalar limits, `rand < rate`, the comparisons are of the
//    random words with an integer that follows from the limit.
//
//   %x = tk.rand %seed, %n : tensor<512xi64>, tensor<512xi64> -> tensor<512xf32, #row>
//     →
//   %x = tk.rand %seed, %n {tkgpu.neighbours = 4} : ...
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/layout/AxisInfo.h"
#include "passes/machine/limits/Rows.h"

#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

namespace tk {
#define GEN_PASS_DEF_SHARERANDOMBLOCKS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::share_random_blocks;

/// How many consecutive registers of a thread hold neighbours along `axis`, at most a block's
/// words.
static int64_t registersAlong(LayoutAttr layout, int64_t axis) {
  int64_t count = 1;
  for (LayoutBit bit : layout.getRegisterBits()) {
    if (count == wordsOfBlock || bit.isReplication() || bit.axis != axis || bit.step != count)
      break;
    count *= 2;
  }
  while (layout.getNumRegisters() % count != 0)
    count /= 2;
  return count;
}

/// How many neighbouring numbers of `rand` one block gives in a thread: 1, 2 or 4.
static int64_t neighboursOf(RandOp rand, AxisInfo &info) {
  auto type = dyn_cast<RankedTensorType>(rand.getType());
  LayoutAttr layout = type ? getLayout(type) : LayoutAttr();
  if (!layout)
    return 1;
  const ValueFacts numbers = info.of(rand.getN()), seeds = info.of(rand.getSeed());
  int64_t most = 1;
  for (auto [axis, along] : llvm::enumerate(numbers.axes)) {
    const int64_t constancy = seeds.axes.empty() ? wordsOfBlock : seeds.axes[axis].constancy;
    most = std::max(most, std::min({registersAlong(layout, axis), along.contiguity,
                                    along.divisibility, constancy}));
  }
  return most;
}

/// Is `compare` one of `rand < limit`, of which the limit is one scalar?
static bool isBelowLimit(arith::CmpFOp compare, RandOp rand) {
  using P = arith::CmpFPredicate;
  const bool isFirst = compare.getLhs() == rand.getResult();
  Value limit = isFirst ? compare.getRhs() : compare.getLhs();
  DenseElementsAttr constant;
  return compare.getPredicate() == (isFirst ? P::OLT : P::OGT) && limit != rand.getResult() &&
         (splatSource(limit) || (matchPattern(limit, m_Constant(&constant)) && constant.isSplat()));
}

/// Has the users of `rand` compare words, if comparisons are all that they are.
static void compareWords(RandOp rand, int64_t neighbours) {
  const bool onlyLimits = llvm::all_of(rand->getUsers(), [&](Operation *user) {
    auto compare = dyn_cast<arith::CmpFOp>(user);
    return compare && isBelowLimit(compare, rand);
  });
  if (!onlyLimits)
    return;
  rand->setAttr(randomAttrName, RandomAttr::get(rand.getContext(), neighbours, /*words=*/true));
  for (Operation *user : rand->getUsers())
    user->setAttr(randomAttrName, RandomAttr::get(rand.getContext(), 1, /*words=*/true));
}

namespace {

struct ShareRandomBlocks : tk::impl::ShareRandomBlocksBase<ShareRandomBlocks> {
  void runOnOperation() override {
    AxisInfo info;
    getOperation().walk([&](RandOp rand) {
      const int64_t neighbours = neighboursOf(rand, info);
      if (neighbours == 1)
        return;
      rand->setAttr(randomAttrName, RandomAttr::get(&getContext(), neighbours, /*words=*/false));
      compareWords(rand, neighbours);
      ++numShared;
    });
  }
};

} // namespace
