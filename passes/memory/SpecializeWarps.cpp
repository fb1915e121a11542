//===- SpecializeWarps.cpp - one role brings data, the other computes -----===//
//
// 1. Bulk copies of one block whose tiles meet in an operation, or are read one right after the
//    other, form a ring: their buffers get stages, and each stage two barriers with phases, `full`
//    for the data and `empty` for the readers.
// 2. A ring's position, the slot and the parity of its current phase, is carried by the loops
//    around it; nothing depends on how often they run.
// 3. The producer's program is the control flow around the copies, with what their coordinates and
//    the loops' bounds are computed from, and nothing else. It waits until a slot is empty,
//    announces the bytes and begins the copies.
// 4. The consumer's program is what was there. It waits for a slot before the first use of its
//    tiles and leaves it after the last one; a product's use ends where it is waited for.
// 5. With `teams` in the schedule, warpgroups run the consumer's program for tiles of their own
//    (TeamTiles).
// 6. Copies of what is read once, or again soon, say so (ReadOnce.h).
// 7. Registers move from the producer's warps to the consumer's where they are scarce.
//
// A loop over k with copies into %sa and %sb becomes
//
//   producer { for k, slot, parity {                 consumer { for k, slot, parity {
//     phase_wait %empty[slot] parity 1 - parity        phase_wait %full[slot] parity parity
//     phase_expect %full[slot] bytes B           |     warpgroup_dot %sa[slot], %sb[slot]
//     bulk_copy %sa[slot], ... signals %full[slot]     warpgroup_wait
//     bulk_copy %sb[slot], ... signals %full[slot]     phase_arrive %empty[slot]
//   } }                                              } }
//
// A function in which the copies cannot be cut out, whose consumers meet at barriers of the whole
// block, or whose block has no warps to spare, keeps one role: with rings of one stage, its first
// thread begins the copies and all wait for them. So does every function with `one-role`.
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/memory/ReadOnce.h"
#include "passes/memory/ScheduleLimits.h"
#include "passes/memory/TeamTiles.h"
#include "passes/memory/WarpSpecialization.h"

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

namespace {

struct SpecializeWarps : tk::impl::SpecializeWarpsBase<SpecializeWarps> {
  using Base::Base;

  LogicalResult specialize(FuncOp function, TargetAttr target, bool inRoles,
                           NamedPatterns &patterns) {
    FailureOr<SmallVector<Ring, 0>> rings = findRings(function, /*together=*/inRoles);
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
          addCacheHint(load, CacheAttr::get(&getContext(), /*once=*/true, /*common=*/false, 0));
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
