//===- GuardMaskedValues.cpp - values that only some rows of a tile see ---===//
//
// A matrix product multiplies a masked weight by 0. If one row of a tile sees a value that is NaN
// or infinite, another row that does not see it gets 0 * NaN = NaN. This pass removes such results
// in kernels with producer and consumer warps whose mask differs between the rows of a tile.
//
// 1. When a tile is complete, a thread sets a flag if one of its sums is not finite. No other
//    instruction is added to tiles whose sums are finite.
// 2. Producer and consumers run a block's tiles up to twice, as for deferred rescaling
//    (tk-keep-references). If the flag is set, the second run computes all tiles again.
// 3. In the second run the producer sets values that are not finite to 0 once they are loaded. The
//    arithmetic is the same, so that other sums keep their bits.
// 4. Behind the loops of the second run, threads go through the keys again, and add each value that
//    is not finite to the sums of the rows that see it. They leave that out if the producer has set
//    no value to 0: sums of finite values overflow where references of rows are too low.
//
//   for %t { ... store %o }        for %pass = 0 to 2 { for %t = 0 to %pass ? noted ? %n : 0 : %n {
//                             →      ...; note whether all %o are finite
//                                    %o' = %pass ? %o + not finite values that rows see : %o
//                                    store %o'
//                                  }}
//
// Products by all warps have their operands in registers: a copy of their loop runs if a sum is not
// finite (MaskedDots.cpp).
//
// Results that the pass declines to guard are computed element by element (tk-recompute-elements).
//
// A weight that a row sees counts as positive. The pass declines if several TMA loads, or parts of
// one, bring a step's values, and if the results replace what the kernel reads.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Declines.h"
#include "passes/analysis/Notes.h"
#include "passes/layout/BulkBox.h"
#include "passes/machine/limits/MaskedDots.h"
#include "passes/pipeline/GuardPasses.h"
#include "passes/pipeline/MaskedDots.h"
#include "passes/pipeline/MaskedProduct.h"
#include "passes/pipeline/RepeatedTiles.h"
#include "passes/pipeline/SeenValues.h"

#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_GUARDMASKEDVALUES
#include "passes/pipeline/GuardPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Whether the second run of an existing loop of two passes is for each of the reasons.
struct Reasons {
  Value rescaled, notFinite;
};

/// Adds the flag `phases` to a loop of two passes that has one: which flag the second pass is for.
static Reasons addReason(scf::ForOp passes, Value phases) {
  scf::IfOp end;
  for (auto branch : passes.getOps<scf::IfOp>())
    if (!branch.thenBlock()->getOps<DoubtedOp>().empty())
      end = branch;
  auto doubted = *end.thenBlock()->getOps<DoubtedOp>().begin();
  Location loc = end.getLoc();
  OpBuilder builder(doubted);
  builder.setInsertionPointAfter(doubted);
  Value other = NotedOp::create(builder, loc, phases);
  auto either = arith::OrIOp::create(builder, loc, doubted, other);
  doubted.getResult().replaceAllUsesExcept(either, either);
  Value isAgain = end.getCondition();
  builder.setInsertionPointAfter(end);
  Value first = NotedOp::create(builder, loc, doubted.getPhases());
  auto rescaled = arith::AndIOp::create(builder, loc, isAgain, first);
  Value second = NotedOp::create(builder, loc, phases);
  auto notFinite = arith::AndIOp::create(builder, loc, isAgain, second);
  isAgain.replaceUsesWithIf(rescaled, [&](OpOperand &use) {
    return use.getOwner() != end && use.getOwner() != rescaled && use.getOwner() != notFinite;
  });
  return {rescaled, notFinite};
}

/// Has the producer clear a step's values if `isAgain`. `loaded` is the mbarrier of that alone.
static void clearValues(MaskedProduct &product, Value isAgain, Value loaded) {
  BulkCopyOp load = product.load;
  PhaseExpectOp expect = product.expect;
  Location loc = load.getLoc();
  OpBuilder builder(load);
  SharedType type = load.getTarget().getType();
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  for (int64_t extent : type.getShape())
    bytes *= extent;
  auto branch = scf::IfOp::create(builder, loc, TypeRange(), isAgain, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(branch.thenBlock());
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  PhaseExpectOp::create(builder, loc, loaded, zero, bytes);
  auto again = cast<BulkCopyOp>(builder.clone(*load));
  again.getPhasesMutable().assign(loaded);
  again.getSlotMutable().assign(zero);
  KeepFiniteOp::create(builder, loc, load.getTarget(), loaded);
  PhaseExpectOp::create(builder, loc, expect.getPhases(), expect.getSlot(),
                        expect.getBytes() - bytes);
  expect->moveBefore(branch.elseBlock()->getTerminator());
  load->moveBefore(branch.elseBlock()->getTerminator());
}

/// Would sums of many columns leave no registers for what the guard keeps, or for a mask that reads
/// tensors behind the loop? Scores that depend on distances take more in the loop.
static bool needsRegisters(MaskedProduct &product) {
  using namespace limits::masked_dots;
  LayoutAttr sums = getLayout(product.sums.getType());
  if (!sums || sums.getNumRegisters() <= kMostSums)
    return false;
  auto reads = [](Value condition) {
    return llvm::any_of(sourcesOf(condition),
                        [](Value value) { return value.getDefiningOp<gpu::LoadOp>() != nullptr; });
  };
  bool areBiased = false;
  product.roles->getParentOfType<FuncOp>().walk([&](Operation *op) {
    areBiased |= (isa<IotaOp>(op) && isa<FloatType>(getElementTypeOrSelf(op->getResult(0)))) ||
                 (isa<arith::SIToFPOp>(op) && isa<RankedTensorType>(op->getResult(0).getType()));
  });
  return areBiased || sums.getNumRegisters() > kMostSumsBesideFlags ||
         llvm::any_of(product.conditions, reads);
}

/// Why the product of `roles` cannot be guarded, or that it is; nothing if there is none.
static std::optional<StringRef> guard(FuncOp function, WarpRolesOp roles) {
  MaskedProduct product(roles);
  StringRef reason;
  // A second run would read what the first one has stored.
  if (function.getTeams() > 1 || getPlan(function).inPlace)
    return std::nullopt;
  if (!product.find(reason))
    return reason.empty() ? std::nullopt : std::optional(reason);
  if (needsRegisters(product))
    return "registers would not suffice beside its sums";
  auto arguments = LaunchArguments::of(function);
  SeenValues seen(product);
  if (!arguments || !seen.analyse(*arguments))
    return "its values' places or its mask cannot be computed behind the loop";
  scf::ForOp own = product.consumer.passes;
  if (!own && (!canRepeat(product.consumer.tiles) || !canRepeat(product.producer.tiles)))
    return "its tiles cannot be computed twice";
  if (!haveRoomForFlag(function))
    return "shared memory has no room for a flag";
  OpBuilder builder = beforeBarrier(roles);
  MLIRContext *context = builder.getContext();
  Value flag = AllocPhasesOp::create(builder, roles.getLoc(), PhasesType::get(context, 2),
                                     function.getTeamWarps(), nullptr, /*notes=*/true);
  Value loaded = AllocPhasesOp::create(builder, roles.getLoc(), PhasesType::get(context, 2), 1,
                                       nullptr, /*notes=*/true);
  Value clears, adds;
  if (own) {
    clears = addReason(product.producer.passes, flag).notFinite;
    adds = addReason(own, flag).notFinite;
  } else {
    clears = repeatTiles(product.producer.tiles, flag);
    adds = repeatTiles(product.consumer.tiles, flag);
  }
  clearValues(product, clears, loaded);
  seen.add(*arguments, flag, loaded, adds);
  return "";
}

/// Elements of `function` need not be computed each by itself.
static void dropElements(FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  for (auto element : llvm::make_early_inc_range(module.getOps<ElementOp>()))
    if (element.getFunction() == function.getSymName())
      element.erase();
}

namespace {

struct GuardMaskedValues : tk::impl::GuardMaskedValuesBase<GuardMaskedValues> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      guardDots(function);
      for (auto roles : llvm::to_vector(function.getBlock()->getOps<WarpRolesOp>())) {
        std::optional<StringRef> reason = guard(function, roles);
        if (!reason)
          continue;
        if (!reason->empty()) {
          decline(roles, "tk-guard-masked-values", *reason);
          continue;
        }
        ++numProducts;
        dropElements(function);
        if (auto arguments = LaunchArguments::of(function))
          note(arguments->getLaunch(), "tk-guard-masked-values", Verdict::Derived,
               "a block computes its tiles again if a sum of masked weights is not finite");
      }
    }
  }

  /// Products by all warps, of kernels without roles.
  void guardDots(FuncOp function) {
    SmallVector<MaskedDots, 0> found;
    function.walk([&](Block *block) {
      if (!block->getParentOp()->getParentOfType<WarpRolesOp>() &&
          !isa<WarpRolesOp>(block->getParentOp()))
        llvm::append_range(found, MaskedDots::findIn(block));
    });
    for (MaskedDots &dots : found) {
      dots.apply();
      ++numProducts;
    }
    if (!found.empty())
      dropElements(function);
  }
};

} // namespace
