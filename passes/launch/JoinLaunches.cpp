//===- JoinLaunches.cpp - last-block reduction ----------------------------===//
//
// A reduction in two levels needs a second launch that combines partial results. The second launch
// waits for all blocks of the first one, and has little to do. With a counter, the last block of
// the first launch can combine the partial results itself (the threadfence reduction of CUDA's
// samples).
//
// 1. Look at two launches in a row with equally many threads a block, of which the second one reads
//    all results of the first one. If the second launch has one block, all blocks form one group.
// 2. Otherwise form as many groups as the second launch has blocks. The group of a block is its
//    number modulo that. Along one axis of each result, a group must write and read its own range
//    only.
// 3. Each group has a counter that is 0 between launches. The last block of a group runs the second
//    function in a branch. The order in which blocks finish changes no result.
//
// The pass declines if the first launch may have no block, or if there are more groups than
// multiprocessors. In the latter case most groups would be combined while the other blocks still
// read, and slow them down. It also declines groups of more than 128 blocks, or, for a single group
// with a loop, more blocks than are resident. Launches with matrix products, clusters, warp
// specialization, TMA or `inout` parameters are left alone.
//
// Column sums of bf16 on an H200, in us:
//
//   rows x columns   two launches   one launch
//   4096 x 8192          20.9          20.4
//   16384 x 4096         35.4          34.9
//   16384 x 16384       124.5         124.7
//
// Before: %p = launch @parts grid(%n)     @parts: store .., %p[%part, %c + iota]
//         %s = launch @join grid(%g)      @join:  .. load %p[.., %c + iota]; store %s
// After:  %p, %s = launch @parts grid(%n) @parts: store .., %p[%part, %c + iota]
//                                                 if (last_block %counter[%group] of %n / %g)
//                                                   .. load %p[.., %c + iota]; store %s
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/machine/limits/Launches.h"

#include "dialects/tkgpu/TkGpuCountOps.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/launch/LaunchPair.h"
#include "passes/launch/MergeLaunches.h"
#include "passes/layout/BulkBox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_JOINLAUNCHES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::join_launches;
void LaunchPair::apply() {
  Location loc = second.getLoc();
  // What only the second one needs is computed before it.
  first->moveBefore(second);
  IRMapping mapping;
  for (auto [inFirst, inSecond] : results)
    mapping.map(inSecond, inFirst);
  passArguments(parts, join, second, mapping);
  LaunchArguments arguments = *LaunchArguments::of(parts);
  OpBuilder host(first);
  auto perGroup = RankedTensorType::get({ShapedType::kDynamic}, host.getI32Type());
  Value counter =
      group ? arguments.addIndex(CountersOp::create(host, loc, perGroup, second.getGridX()),
                                 "counters")
            : arguments.addCounter();
  LaunchOp joined = appendResults(first, parts, second, join, first.getGridX(), mapping);

  Operation *end = parts.getBlock()->getTerminator();
  OpBuilder builder(end);
  Value own = group, count = NumProgramsOp::create(builder, loc, GridAxis::X);
  if (group)
    count = arith::DivSIOp::create(builder, loc, count, groups);
  else
    own = arith::ConstantIndexOp::create(builder, loc, 0);
  SmallVector<Value> buffers;
  for (auto [inFirst, inSecond] : results)
    if (!llvm::is_contained(buffers, inFirst))
      buffers.push_back(inFirst);
  Value isLast =
      LastBlockOp::create(builder, loc, builder.getI1Type(), counter, own, count, buffers);
  auto branch = scf::IfOp::create(builder, loc, isLast);
  builder.setInsertionPoint(branch.thenYield());
  for (Operation &op : join.getBlock()->without_terminator())
    if (isa<ProgramIdOp>(op))
      mapping.map(op.getResult(0), own);
    else
      builder.clone(op, mapping);
  if (std::optional<int64_t> bytes = join.getSharedBytes())
    parts.setSharedBytes(std::max<int64_t>(*bytes, parts.getSharedBytes().value_or(0)));
  replaceLaunches(first, second, joined, join);
}

namespace {

struct JoinLaunches : tk::impl::JoinLaunchesBase<JoinLaunches> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      SmallVector<LaunchOp> launches(kernel.getBody().front().getOps<LaunchOp>());
      int64_t left = mostCounters;
      for (unsigned n = 0; n + 1 < launches.size(); ++n) {
        LaunchPair pair(launches[n], launches[n + 1], symbols);
        if (!pair.analyse(left))
          continue;
        left -= pair.getNumGroups();
        pair.apply();
        ++numJoined;
        ++n; // what was joined stays as it is
      }
    }
  }
};

} // namespace
