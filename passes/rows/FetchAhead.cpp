//===- FetchAhead.cpp - load the next rows while one is reduced -----------===//
//
// A persistent block that reduces rows loads, reduces and stores one row after the other. While it
// reduces, no load is in flight. This pass makes a multistage pipeline of `cp.async` copies to
// thread-private staging in shared memory. It takes three kinds of loops:
//
// * A loop over rows starts at the block's number, and reduces across warps.
// * A loop carries the result of a scan across warps, in blocks of which several fit a
//   multiprocessor.
// * A loop without synchronisation makes several sums of what it reads, such as those of distances
//   from a sample and of their squares.
//
// The steps are:
//
// 1. Tiles that are computed before the loop for the loop alone, such as weights in f32, are
//    computed in the loop again. No f32 tile is then live across it.
// 2. Loads of 16-byte vectors, at addresses that follow from the induction variable, become copies
//    S iterations early. S is at most 4, and 2 for loops of sums. Each thread copies what it reads
//    itself (`tkgpu.private`), so that no barrier is needed and layouts stay.
// 3. Tiles that all iterations share are copied once, if shared memory has room for them beside two
//    stages of rows. In a cluster, one stage of rows suffices (tk-refill-parts refills it by
//    chunks). Without room, the tiles of a cluster, or one of them, stay packed in registers.
// 4. At the end of iteration i, the copies of iteration i + S start, into the stage of iteration i.
// 5. Scalars are loaded one iteration early (CarryLoads.h).
// 6. In loops of sums, the first copies start before what the block waits for ahead of the loop,
//    such as the sample. A loop that reads the sample reads it from the first stage.
//
//   %g = load gamma                         copy %kept, gamma
//   for row:                                copies of rows 0 .. S-1, a group each
//     %x = load x[row]                      for row, slot:
//     ... reduce %x ...                       async_wait S-1; %x = private_load %rows at slot
//     store ... %g                      →     ... reduce %x ... %g = private_load %kept; store
//                                             copy %rows at slot, x[row + S]; async_commit
//                                           async_wait 0
//
// The pass declines kernels that replace a parameter, and rows for which shared memory has no room.
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/TileLoops.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Rows.h"
#include "passes/rows/RowFetcher.h"
#include "passes/rows/RowMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_FETCHAHEAD
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::fetch_ahead;

/// Does each block go through the loop from its own number on, with nothing carried but what its
/// tiles are reduced to?
static bool isOverBlocks(FuncOp function, scf::ForOp loop) {
  Value first = loop.getLowerBound();
  if (auto ofCluster = first.getDefiningOp<arith::DivSIOp>(); ofCluster && function.isSpread())
    first = ofCluster.getLhs();
  return first.getDefiningOp<ProgramIdOp>() &&
         (loop.getInitArgs().empty() || getPlan(function).carriesTiles);
}

static bool reducesOverWarps(scf::ForOp loop) {
  return llvm::any_of(*loop.getBody(), [](Operation &op) { return isMeeting(&op); });
}

static bool scansOverWarps(scf::ForOp loop) {
  return llvm::any_of(*loop.getBody(), [](Operation &op) {
    if (auto recurrence = dyn_cast<RecurrenceOp>(op))
      return crossesWarps(recurrence.getSource(), recurrence.getAxis());
    auto scan = dyn_cast<gpu::ScanOp>(op);
    return scan && crossesWarps(scan.getSource(), scan.getAxis());
  });
}

namespace {

/// What a loop does with the elements that it loads. Each has a pattern.
enum class Use { None, Reduces, Scans, Adds };

struct FetchAhead : tk::impl::FetchAheadBase<FetchAhead> {
  using FetchAheadBase::FetchAheadBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (!target)
      return;
    patterns.run("next-rows", [&] { fetchAll(Use::Reduces, target); });
    patterns.run("next-scans", [&] { fetchAll(Use::Scans, target); });
    patterns.run("next-terms", [&] { fetchAll(Use::Adds, target); });
  }

private:
  static Use useOf(FuncOp function, scf::ForOp loop) {
    const bool scans = !loop.getInitArgs().empty() && scansOverWarps(loop);
    if (!scans && !hasProducts(function) && addsUp(loop))
      return Use::Adds;
    if (isOverBlocks(function, loop) && reducesOverWarps(loop))
      return Use::Reduces;
    return scans ? Use::Scans : Use::None;
  }

  void fetchAll(Use use, TargetAttr target) {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      // What replaces a parameter is written while later rows are read.
      if (getPlan(function).inPlace) {
        decline(function, "tk-fetch-ahead", "the kernel replaces a parameter");
        continue;
      }
      for (scf::ForOp loop : llvm::to_vector(function.getBlock()->getOps<scf::ForOp>()))
        if (useOf(function, loop) == use)
          fetch(function, loop, use, target);
    }
  }

  void fetch(FuncOp function, scf::ForOp loop, Use use, TargetAttr target) {
    // Large blocks that scan have as much on its way with what they hold in registers.
    const int64_t blocks =
        use == Use::Scans ? std::max<int64_t>(threadsThatScan / (function.getBlockWarps() * 32), 1)
                          : blocksThatReduce(function);
    if (use == Use::Scans && blocks == 1)
      return;
    const int64_t budget = sharedBytesOfBlock(target, blocks) -
                           std::max(leastExchangeBytes, exchangeBytesOf(function));
    RowFetcher fetcher(function, loop);
    if (!(use == Use::Adds ? fetcher.analyseSums(budget) : fetcher.analyse(blocks, budget))) {
      decline(loop, "tk-fetch-ahead", "shared memory has no room for the next rows");
      return;
    }
    fetcher.apply();
    ++numLoops;
  }
};

} // namespace
