//===- BoundWarpgroups.cpp - loop bounds for each warpgroup ---------------===//
//
// A loop over a tile's reduction runs to the greatest bound of the tile's rows. Under a causal
// mask, the first rows of the tile end earlier; rows outside of the tensor have no elements at all.
// This pass gives each consumer warpgroup the bounds of its own rows. A `tkgpu.rows_bound` holds
// the bound of all rows and one bound for each warpgroup.
//
// 1. The bound becomes that of the warpgroup (`tkgpu.of_warpgroup`), in loops and in conditions of
//    masks. Elements beyond it are the identity value of the reduction, so that the result is the
//    same.
// 2. A second loop waits for and releases the stages that only the other warpgroups still read, so
//    that the circular buffers proceed equally for all. It stands after the tile's stores if
//    nothing before that synchronises with the other warpgroups, which wait for stages; else it
//    follows the loop.
// 3. A loop that begins at the least bound of all rows (a window) begins at the iteration with the
//    warpgroup's first element. A loop in front releases the stages before. The pass does so only
//    for unordered warpgroups; ordered ones would have to pass turns on.
//
//   for %j = %c0 to rows_bound(%end parts(%a, %b)), %slot {     %own = of_warpgroup %a, %b
//     phase_wait %full[%slot]; ...; phase_arrive %empty[%slot]  for %j = %c0 to %own, %slot { ... }
//   }                                                       →   store
//   store                                                       for %j = next to %end, %slot {
//                                                                 phase_wait %full[%slot]
//                                                                 phase_arrive %empty[%slot]
//                                                               }
//
// A loop keeps its bounds if it does more than wait, read, multiply and release, or if it carries a
// tile whose rows are not divided among the warpgroups. The producer keeps the bounds of all rows.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/machine/Machine.h"
#include "passes/pipeline/LoopSteps.h"
#include "passes/pipeline/Rings.h"

#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_BOUNDWARPGROUPS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

/// A loop that each warpgroup may end where its rows do.
class RowLoop {
public:
  explicit RowLoop(scf::ForOp loop) : loop(loop), builder(loop) {}

  bool analyse();
  void beginAt(Value own);
  void endAt(Value own);

private:
  bool collectStages();
  scf::ForOp leaveStages(Value from, Value end, ValueRange inits);

  scf::ForOp loop;
  OpBuilder builder;
  llvm::SetVector<Operation *> stages; ///< waits and arrivals, and how rings go on; in order
  SmallVector<unsigned> positions;     ///< the numbers of the scalars that the loop carries
};

} // namespace

/// Does the loop but read, multiply and carry tiles whose rows are shared out to warpgroups?
bool RowLoop::analyse() {
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    auto tile = dyn_cast<RankedTensorType>(argument.getType());
    if (!tile)
      positions.push_back(number);
    else if (LayoutAttr layout = getLayout(tile);
             !layout || !areRowsByWarpgroup(layout, 0, tile.getDimSize(0)))
      return false;
  }
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (isa<PhaseWaitOp, PhaseArriveOp, WarpgroupDotOp, WarpgroupWaitOp, LocalLoadOp, StageOp>(op))
      continue;
    if (!isMemoryEffectFree(&op))
      return false;
  }
  return !loop.getOps<PhaseArriveOp>().empty() && collectStages();
}

/// What stays of an iteration whose terms are nothing; false if that depends on tiles.
bool RowLoop::collectStages() {
  llvm::SmallPtrSet<Operation *, 16> needed;
  SmallVector<Value> work;
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  for (unsigned number : positions)
    work.push_back(yield.getOperand(number));
  for (Operation &op : loop.getBody()->without_terminator())
    if (isa<PhaseWaitOp, PhaseArriveOp>(op)) {
      needed.insert(&op);
      llvm::append_range(work, op.getOperands());
    }
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (isa<RankedTensorType>(value.getType()))
      return false;
    if (!op || op->getBlock() != loop.getBody() || !needed.insert(op).second)
      continue;
    if (op->getNumRegions() > 0 || !isMemoryEffectFree(op))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  for (Operation &op : *loop.getBody())
    if (needed.contains(&op))
      stages.insert(&op);
  return true;
}

/// Does `op` leave a warpgroup to itself, also once barriers stand around what goes through shared
/// memory?
static bool isOfWarpgroup(Operation *op) {
  if (auto barrier = dyn_cast<BarrierOp>(op))
    return barrier.getWarpgroup();
  if (auto wait = dyn_cast<BulkStoreWaitOp>(op))
    return wait.getWarpgroup();
  if (auto store = dyn_cast<BulkStoreOp>(op))
    return store.getWarpgroupAxis().has_value();
  if (auto store = dyn_cast<LocalStoreOp>(op))
    return llvm::all_of(store.getTarget().getUsers(), [](Operation *user) {
      auto out = dyn_cast<BulkStoreOp>(user);
      return isa<LocalStoreOp>(user) || (out && out.getWarpgroupAxis());
    });
  return isa<PhaseWaitOp, PhaseArriveOp, AsyncFenceOp, gpu::StoreOp>(op) || isMemoryEffectFree(op);
}

/// What `value` is as a sum with a number.
static std::pair<Value, int64_t> splitNumber(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    if (std::optional<int64_t> number = getConstantIntValue(op->getOperand(1)))
      return {op->getOperand(0), isa<arith::AddIOp>(op) ? *number : -*number};
  return {value, 0};
}

/// That one of `values` which a warpgroup has, computed once where they differ by numbers.
static Value chooseOwn(OpBuilder &builder, Location loc, ArrayRef<Value> values) {
  Operation *first = values.front().getDefiningOp();
  if (llvm::all_equal(values))
    return values.front();
  const auto [base, firstNumber] = splitNumber(values.front());
  SmallVector<Value> behind;
  for (Value value : values)
    if (auto [other, number] = splitNumber(value); other == base)
      behind.push_back(arith::ConstantIndexOp::create(builder, loc, number - firstNumber));
  if (behind.size() == values.size()) {
    Value number = OfWarpgroupOp::create(builder, loc, builder.getIndexType(), behind);
    return arith::AddIOp::create(builder, loc, values.front(), number);
  }
  bool areAlike =
      isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MaxSIOp, arith::MinSIOp>(first);
  for (Value value : values)
    areAlike &= value.getDefiningOp() && value.getDefiningOp()->getName() == first->getName();
  if (!areAlike)
    return OfWarpgroupOp::create(builder, loc, values);
  SmallVector<Value> operands;
  for (unsigned n = 0; n < first->getNumOperands(); ++n) {
    SmallVector<Value> each;
    for (Value value : values)
      each.push_back(value.getDefiningOp()->getOperand(n));
    operands.push_back(chooseOwn(builder, loc, each));
  }
  Operation *own = builder.clone(*first);
  own->setOperands(operands);
  return own->getResult(0);
}

/// A loop, at the builder's position, that leaves the stages of steps which the warpgroup does not
/// have.
scf::ForOp RowLoop::leaveStages(Value from, Value end, ValueRange inits) {
  Location loc = loop.getLoc();
  OpBuilder::InsertionGuard guard(builder);
  auto rest = scf::ForOp::create(builder, loc, from, end, loop.getStep(), inits);
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), rest.getInductionVar());
  for (auto [number, argument] : llvm::zip_equal(positions, rest.getRegionIterArgs()))
    mapping.map(loop.getRegionIterArg(number), argument);
  builder.setInsertionPointToStart(rest.getBody());
  for (Operation *op : stages)
    builder.clone(*op, mapping);
  SmallVector<Value> yielded;
  for (unsigned number : positions)
    yielded.push_back(mapping.lookupOrDefault(loop.getYieldedValues()[number]));
  if (!positions.empty())
    scf::YieldOp::create(builder, loc, yielded);
  return rest;
}

/// Begins the loop at the step that has `own`, behind stages that are left.
void RowLoop::beginAt(Value own) {
  Location loc = loop.getLoc();
  Value lower = loop.getLowerBound(), end = loop.getUpperBound(), step = loop.getStep();
  if (auto bound = lower.getDefiningOp<RowsBoundOp>())
    lower = bound.getWhole();
  if (auto bound = end.getDefiningOp<RowsBoundOp>())
    end = bound.getWhole();
  builder.setInsertionPoint(loop);
  Value terms = arith::SubIOp::create(builder, loc, own, lower);
  Value count = arith::DivSIOp::create(builder, loc, terms, step);
  Value before = arith::MulIOp::create(builder, loc, count, step);
  Value first = arith::AddIOp::create(builder, loc, lower, before);
  Value left = arith::MinSIOp::create(builder, loc, first, end);
  SmallVector<Value> inits;
  for (unsigned number : positions)
    inits.push_back(loop.getInitArgs()[number]);
  scf::ForOp rest = leaveStages(lower, left, inits);
  loop.setLowerBound(first);
  for (auto [number, result] : llvm::zip_equal(positions, rest.getResults()))
    loop.getInitArgsMutable()[number].assign(result);
}

/// Ends the loop at `own`; behind the tile the stages up to the end of all rows are left.
void RowLoop::endAt(Value own) {
  Location loc = loop.getLoc();
  Value end = loop.getUpperBound(), lower = loop.getLowerBound(), step = loop.getStep();
  loop.setUpperBound(own);
  Operation *next = loop->getNextNode();
  while (!next->hasTrait<OpTrait::IsTerminator>() && isOfWarpgroup(next))
    next = next->getNextNode();
  if (!next->hasTrait<OpTrait::IsTerminator>())
    next = loop->getNextNode();
  // Where the rings go on before that, so does the loop that leaves their stages.
  for (unsigned number : positions)
    for (Operation *user : loop.getResult(number).getUsers())
      if (Operation *here = loop->getBlock()->findAncestorOpInBlock(*user);
          here && here->isBeforeInBlock(next))
        next = here;
  builder.setInsertionPoint(next);
  Value from = createStepBehind(builder, loc, lower, own, step);
  SmallVector<Value> inits;
  for (unsigned number : positions)
    inits.push_back(loop.getResult(number));
  scf::ForOp rest = leaveStages(from, end, inits);
  for (auto [number, result] : llvm::zip_equal(positions, rest.getResults()))
    loop.getResult(number).replaceAllUsesExcept(result, rest);
}

namespace {

struct BoundWarpgroups : tk::impl::BoundWarpgroupsBase<BoundWarpgroups> {
  /// Has the loop that begins at a bound of a consumer's program begin with the warpgroup's rows.
  void divideBegin(RowsBoundOp bound, scf::ForOp loop) {
    RowLoop rows(loop);
    if (!rows.analyse())
      return;
    OpBuilder builder(bound);
    rows.beginAt(chooseOwn(builder, bound.getLoc(), llvm::to_vector(bound.getParts())));
    ++numLoops;
  }

  /// Takes a bound of a consumer's program apart.
  void divide(RowsBoundOp bound) {
    OpBuilder builder(bound);
    Value own = OfWarpgroupOp::create(builder, bound.getLoc(), bound.getParts());
    for (OpOperand &use : llvm::make_early_inc_range(bound->getUses())) {
      auto loop = dyn_cast<scf::ForOp>(use.getOwner());
      if (!loop) {
        use.set(own);
        continue;
      }
      RowLoop rows(loop);
      bool isEnd = use.get() == loop.getUpperBound() && use.getOperandNumber() == 1;
      if (!isEnd || !rows.analyse())
        continue;
      use.set(bound.getWhole());
      rows.endAt(own);
      ++numLoops;
    }
  }

  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      int64_t warpgroups = function.getBlockWarps() / warpsOfWarpgroup;
      SmallVector<RowsBoundOp> bounds;
      function.walk([&](RowsBoundOp bound) { bounds.push_back(bound); });
      auto areOfConsumer = [&](RowsBoundOp bound) {
        auto roles = bound->getParentOfType<WarpRolesOp>();
        bool isConsumer = roles && roles.getConsumer().isAncestor(bound->getParentRegion());
        return isConsumer && static_cast<int64_t>(bound.getParts().size()) == warpgroups;
      };
      // A loop's end is counted from where it begins.
      for (RowsBoundOp &bound : bounds) {
        SmallVector<scf::ForOp> loops;
        for (Operation *user : bound->getUsers())
          if (auto loop = dyn_cast<scf::ForOp>(user);
              loop && loop.getLowerBound() == bound.getResult())
            loops.push_back(loop);
        if (loops.empty())
          continue;
        if (!takeTurns(function) && areOfConsumer(bound))
          for (scf::ForOp loop : loops)
            divideBegin(bound, loop);
        bound.replaceAllUsesWith(bound.getWhole());
        bound.erase();
        bound = {};
      }
      for (RowsBoundOp bound : bounds) {
        if (!bound)
          continue;
        if (areOfConsumer(bound))
          divide(bound);
        bound.replaceAllUsesWith(bound.getWhole());
        bound.erase();
      }
    }
  }
};

} // namespace
