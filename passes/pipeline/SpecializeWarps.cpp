//===- SpecializeWarps.cpp - producer and consumer warps ------------------===//
//
// Threads that issue TMA loads and wait for them cannot compute meanwhile. This pass gives the
// loads to producer warps, which run some pipeline stages ahead of the consumer warps.
//
// 1. TMA loads in one block of code form a circular buffer if one operation reads their tiles, or
//    reads follow each other directly. Their buffers get stages, and each stage two mbarriers:
//    `full` for the data and `empty` for the readers.
// 2. The loops around a circular buffer carry its position: the slot, and the parity of its phase.
//    Nothing depends on how often the loops run.
// 3. The producer's program is the control flow around the loads, with the arithmetic of their
//    coordinates and of the loop bounds. It waits until a stage is empty, announces the bytes, and
//    issues the loads.
// 4. The consumer's program is the rest. It waits for a stage before the first use of the tiles,
//    and releases the stage after the last use. A product's use ends where it is waited for.
// 5. With `teams` in the schedule, each warpgroup runs the consumer's program for tiles of its own
//    (TeamTiles). Patterns `stream-hints` and `reuse-hints` mark loads of data that is read once,
//    or again soon (ReadOnce.h). Pattern `results-in-stages` puts a tile's results into the stage
//    that its rows leave, so that the warpgroups can run unordered (Rings.h). Pattern `ones` places
//    extra columns that contain ones, for tk-sum-in-products.
// 6. Registers move from producer to consumer warps (`setmaxnreg`) where accumulators need them.
//
// A loop over k with TMA loads into `%sa` and `%sb` becomes:
//
//   producer { for k, slot, parity {                 consumer { for k, slot, parity {
//     phase_wait %empty[slot] parity 1 - parity        phase_wait %full[slot] parity parity
//     phase_expect %full[slot] bytes B           |     warpgroup_dot %sa[slot], %sb[slot]
//     bulk_copy %sa[slot], ... signals %full[slot]     warpgroup_wait
//     bulk_copy %sb[slot], ... signals %full[slot]     phase_arrive %empty[slot]
//   } }                                              } }
//
// The pass declines if the producer cannot compute the loads' coordinates, if consumers synchronise
// the whole block, or if the block has no room for four more warps. The kernel then has buffers of
// one stage: its first thread issues the loads, and all threads wait for them. Option `one-role`
// does the same to every kernel.
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/layout/ReadOnce.h"
#include "passes/pipeline/TeamTiles.h"
#include "passes/pipeline/WarpSpecialization.h"
#include "passes/plan/ScheduleLimits.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_SPECIALIZEWARPS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Do warpgroups divide the columns of a product's results?
static bool areColumnsDivided(WarpgroupDotOp dot) {
  LayoutAttr layout = getLayout(dot.getType());
  return layout && axisBits(layout, 1).warps != 0;
}

/// Is there room for no more than one stage of what the products of a loop read, whose columns
/// warpgroups divide?
static bool haveOneStageInChain(ArrayRef<Ring> rings) {
  return llvm::any_of(rings, [&](const Ring &ring) {
    Block *block = ring.copies.front()->getBlock();
    auto isBeside = [&](const Ring &other) {
      return &other != &ring && other.stages == 1 && other.copies.front()->getBlock() == block;
    };
    return ring.stages == 1 && llvm::any_of(block->getOps<WarpgroupDotOp>(), areColumnsDivided) &&
           llvm::any_of(rings, isBeside);
  });
}

namespace {

struct SpecializeWarps : tk::impl::SpecializeWarpsBase<SpecializeWarps> {
  using Base::Base;

  /// `inChains`: what both products of a chain read is copied once.
  LogicalResult specialize(FuncOp function, TargetAttr target, bool inRoles,
                           NamedPatterns &patterns, bool inChains = false) {
    FailureOr<SmallVector<Ring, 0>> rings = findRings(function, /*together=*/inRoles, inChains);
    if (failed(rings))
      return function.emitError("expected bulk copies whose tiles are used where they are copied");
    if (rings->empty())
      return success();
    auto schedule = getTiles(function);
    WarpSpecialization specialization(function, *rings);
    if (inRoles && !specialization.canCutOut())
      return specialize(function, target, /*inRoles=*/false, patterns);
    int64_t wanted = inRoles ? (schedule ? schedule.getStages() : 4) : 1;
    int64_t teams = inRoles && schedule ? schedule.getTeams() : 1;
    if (!canTeamsTakeTurns(function, *rings))
      teams = 1;
    if (inRoles && teams == 1)
      patterns.run("results-in-stages", [&] { placeResults(function, *rings); });
    const int64_t ofOthers = (teams - 1) * bytesOfTeam(function, *rings);
    const int64_t limit = target.getShared() - exchangeBytesOf(function) - ofOthers;
    int64_t bytes = chooseStages(function, *rings, wanted, limit);
    // Of a tile that both products of a chain read, and that stays until the second one is done,
    // two stages are better than one for each product.
    if (inRoles && !inChains && wanted > 1 && haveOneStageInChain(*rings))
      return specialize(function, target, inRoles, patterns, /*inChains=*/true);
    if (inRoles && bytes > limit && asksForStages(function)) {
      int64_t fitting = 1;
      for (const Ring &ring : *rings)
        fitting = std::max(fitting, ring.stages);
      reportSharedLimit(function, bytes + ofOthers, target, fitting);
      return failure();
    }
    if (inRoles)
      patterns.run("ones",
                   [&] { placeOnes(function, *rings, wanted, limit, asksForStages(function)); });
    specialization.apply(inRoles, teams);
    ++(inRoles ? numSpecialized : numOneRole);
    return success();
  }

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (!target)
      target = TargetAttr::get(&getContext(), 90, 232448, 132, true);
    patterns.run("stream-hints", [&] {
      getOperation().walk([](BulkCopyOp copy) { copy.setOnce(isStreamedOnce(copy)); });
      getOperation().walk([](gpu::LoadOp load) {
        if (isStreamedOnce(load))
          addCacheHint(load, CacheAttr::get(load.getContext(), /*once=*/true, /*common=*/false, 0));
      });
    });
    patterns.run("reuse-hints", [&] {
      getOperation().walk([](BulkCopyOp copy) { copy.setAgain(isReadAgainSoon(copy)); });
    });
    bool isPossible = true;
    auto specializeAll = [&](bool inRoles) {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        isPossible = isPossible && succeeded(specialize(function, target, inRoles, patterns));
    };
    if (patterns.isOn("roles"))
      patterns.run("roles", [&] { specializeAll(!oneRole); });
    else
      specializeAll(/*inRoles=*/false);
    if (!isPossible)
      signalPassFailure();
  }
};

} // namespace
