//===- OverlapOperands.cpp - load register operands under a product -------===//
//
// A `wgmma` product may take its left operand from registers, computed from tiles that TMA loads
// bring. The threads wait for the product before they read the tiles of the next one. This pass
// reads these tiles under the product. It takes loops in which all products are of this kind.
//
// 1. The pass finds the reads (`tkgpu.local_load`) that the left operands are computed from, with
//    the waits and releases of their stages. Nothing else may read these stages. Elements narrower
//    than a register are declined, because a loop would carry them unpacked.
//    A vector of few elements that an operand is computed from, such as the decay of each key,
//    comes straight from global memory (`tkgpu.load`). Its load moves too.
// 2. Right after an iteration has issued its products, it reads the tiles of the next iteration, at
//    the position to which the circular buffer advances. The loop carries the tiles. The operand is
//    computed after the wait, because a product in flight reads the registers that the result goes
//    to.
// 3. A prologue reads the first iteration's tiles. The last iteration, which has no next one, is an
//    epilogue: a branch between a product and its wait would hide from the compiler which registers
//    the product reads. A branch surrounds all if the loop may have no iteration.
//
//   for %k, %slot {                            %a0 = local_load %s[%slot0]
//     phase_wait %full[%slot]                  for %k but the last, %slot, %a {
//     %a = local_load %s[%slot]                  %d = warpgroup_dot f(%a), ...
//     phase_arrive %empty[%slot]           →     %next = %slot + 1; phase_wait %full[%next]
//     %d = warpgroup_dot f(%a), ...              %a1 = local_load %s[%next]
//     warpgroup_wait %d                          phase_arrive %empty[%next]
//     yield %slot + 1                            warpgroup_wait %d; yield %next, %a1
//   }                                          }
//                                              %d = warpgroup_dot f(%a), ...; warpgroup_wait %d
//
// The producer stays as it is: stages are acquired and released in the same order.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/limits/Loops.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_OVERLAPOPERANDS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::overlap_operands;

namespace {

class OperandOverlap {
public:
  explicit OperandOverlap(scf::ForOp loop) : loop(loop), builder(loop) {}

  bool analyse();
  void apply();

private:
  using Operations = llvm::SetVector<Operation *>;
  bool collect(ValueRange roots, Operations &ops);
  bool collectStages();
  void collectVectors(const Operations &computed);
  SmallVector<Value> load(IRMapping mapping);
  SmallVector<Value> iterate(IRMapping &mapping, ValueRange loaded, bool hasNext);

  scf::ForOp loop;
  OpBuilder builder;
  WarpgroupDotOp last; ///< of the products
  Operations loads;    ///< of what the operands are computed from
  Operations moved;    ///< the loads, with what happens at their stages, in order
  Operations places;   ///< what vectors' addresses are computed by
  Operations advances; ///< what the next positions in the rings are computed by
};

} // namespace

/// Adds what `roots` follow from inside the loop, in order, from where tiles are loaded; false if
/// that has effects or depends on tiles that the loop carries.
bool OperandOverlap::collect(ValueRange roots, Operations &ops) {
  SmallVector<Value> work(roots);
  llvm::SmallPtrSet<Operation *, 16> found;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == loop.getBody() && isa<RankedTensorType>(value.getType()))
        return false;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (op->getBlock() != loop.getBody() || !found.insert(op).second || isa<LocalLoadOp>(op))
      continue;
    if (op->getNumRegions() > 0 || !isMemoryEffectFree(op))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  for (Operation &op : *loop.getBody())
    if (found.contains(&op))
      ops.insert(&op);
  return true;
}

/// Adds the waits and arrivals at the stages that tiles are loaded from, if nothing else reads
/// those stages.
bool OperandOverlap::collectStages() {
  llvm::SmallPtrSet<Value, 2> slots;
  for (Operation *op : loads) {
    auto load = cast<LocalLoadOp>(op);
    if (load.getSource().getType().getElementType().getIntOrFloatBitWidth() < registerBits)
      return false;
    auto stage = load.getSource().getDefiningOp<StageOp>();
    auto slot = stage ? dyn_cast<BlockArgument>(stage.getStage()) : BlockArgument();
    if (!slot || slot.getOwner() != loop.getBody())
      return false;
    slots.insert(slot);
    moved.insert(stage);
    moved.insert(load);
  }
  Operations all;
  for (Operation &op : *loop.getBody()) {
    auto wait = dyn_cast<PhaseWaitOp>(op);
    auto arrive = dyn_cast<PhaseArriveOp>(op);
    bool isAtStage =
        (wait && slots.contains(wait.getSlot())) || (arrive && slots.contains(arrive.getSlot()));
    // Another tile at the same stage would be left too early.
    if (auto stage = dyn_cast<StageOp>(op);
        stage && slots.contains(stage.getStage()) && !moved.contains(stage))
      return false;
    if (isAtStage || moved.contains(&op))
      all.insert(&op);
  }
  moved = std::move(all);
  return llvm::all_of(moved, [&](Operation *op) {
    return !isa<StageOp>(op) ||
           llvm::all_of(op->getUsers(), [&](Operation *user) { return moved.contains(user); });
  });
}

/// Is `vector` repeated for each row of an operand, so that it runs along the sum?
static bool runsAlongSum(Value vector) {
  return llvm::all_of(vector.getUsers(), [](Operation *user) {
    if (auto broadcast = dyn_cast<BroadcastOp>(user))
      return broadcast.getDims() == ArrayRef<int64_t>{1};
    return user->getNumResults() == 1 && user->getNumRegions() == 0 &&
           runsAlongSum(user->getResult(0));
  });
}

/// Adds loads of vectors from global memory that another iteration has others of.
void OperandOverlap::collectVectors(const Operations &computed) {
  int64_t registers = mostOfVectors;
  for (Operation *op : computed) {
    auto load = dyn_cast<gpu::LoadOp>(op);
    auto tile = load ? dyn_cast<RankedTensorType>(load.getType()) : RankedTensorType();
    if (!tile || tile.getRank() != 1 || tile.getElementTypeBitWidth() < registerBits ||
        !getLayout(tile) || registersOfTile(tile) > registers || !runsAlongSum(load.getResult()))
      continue;
    Operations own;
    if (!collect(load->getOperands(), own) || llvm::any_of(own, llvm::IsaPred<gpu::LoadOp>))
      continue;
    registers -= registersOfTile(tile);
    places.insert_range(own);
    loads.insert(load);
    moved.insert(load);
  }
}

bool OperandOverlap::analyse() {
  SmallVector<Value> operands;
  for (auto dot : loop.getBody()->getOps<WarpgroupDotOp>()) {
    if (!isa<RankedTensorType>(dot.getA().getType()))
      return false;
    operands.push_back(dot.getA());
    last = dot;
  }
  Operations computed;
  if (!last || !collect(operands, computed))
    return false;
  for (Operation *op : computed)
    if (auto load = dyn_cast<LocalLoadOp>(op))
      loads.insert(load);
  if (loads.empty() || !collectStages()) {
    loads.clear();
    moved.clear();
  }
  collectVectors(computed);
  if (loads.empty())
    return false;
  // The position of the next iteration.
  SmallVector<Value> next;
  for (auto [argument, value] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()))
    if (llvm::any_of(argument.getUsers(), [&](Operation *user) { return moved.contains(user); }))
      next.push_back(value);
  return collect(next, advances) &&
         llvm::none_of(advances, llvm::IsaPred<LocalLoadOp, gpu::LoadOp>);
}

/// The tiles of the iteration whose arguments `mapping` takes the loop's to.
SmallVector<Value> OperandOverlap::load(IRMapping mapping) {
  for (Operation &op : *loop.getBody())
    if (moved.contains(&op) || places.contains(&op))
      builder.clone(op, mapping);
  return llvm::map_to_vector(
      loads, [&](Operation *load) -> Value { return mapping.lookup(load->getResult(0)); });
}

/// An iteration with tiles that have been loaded; the tiles of the next one, if there is one.
SmallVector<Value> OperandOverlap::iterate(IRMapping &mapping, ValueRange loaded, bool hasNext) {
  for (auto [load, tile] : llvm::zip_equal(loads.getArrayRef(), loaded))
    mapping.map(load->getResult(0), tile);
  SmallVector<Value> ahead;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (moved.contains(&op))
      continue;
    builder.clone(op, mapping);
    if (&op != last || !hasNext)
      continue;
    IRMapping here = mapping, next;
    for (Operation *advance : advances)
      builder.clone(*advance, here);
    Value at = arith::AddIOp::create(builder, loop.getLoc(), mapping.lookup(loop.getInductionVar()),
                                     loop.getStep());
    next.map(loop.getInductionVar(), at);
    for (auto [argument, value] :
         llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()))
      next.map(argument, here.lookupOrDefault(value));
    ahead = load(next);
  }
  return ahead;
}

void OperandOverlap::apply() {
  Location loc = loop.getLoc();
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound(), step = loop.getStep();
  Value isAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lower, upper);
  auto branch =
      scf::IfOp::create(builder, loc, loop.getResultTypes(), isAny, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(branch.thenBlock());
  IRMapping first;
  first.map(loop.getInductionVar(), lower);
  first.map(loop.getRegionIterArgs(), loop.getInitArgs());
  // The rotated loop carries where the next iteration is, then what the loop did, then tiles.
  SmallVector<Value> initial = {lower};
  llvm::append_range(initial, loop.getInitArgs());
  llvm::append_range(initial, load(first));
  Value beforeLast = arith::SubIOp::create(builder, loc, upper, step);
  auto rotated = scf::ForOp::create(builder, loc, lower, beforeLast, step, initial);
  size_t count = loop.getNumResults();
  auto yielded = [&](IRMapping &mapping) {
    return llvm::map_to_vector(loop.getYieldedValues(),
                               [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(rotated.getBody());
    auto arguments = rotated.getRegionIterArgs();
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), rotated.getInductionVar());
    mapping.map(loop.getRegionIterArgs(), arguments.slice(1, count));
    SmallVector<Value> ahead = iterate(mapping, arguments.drop_front(1 + count), /*hasNext=*/true);
    SmallVector<Value> results = {
        arith::AddIOp::create(builder, loc, rotated.getInductionVar(), step)};
    llvm::append_range(results, yielded(mapping));
    llvm::append_range(results, ahead);
    scf::YieldOp::create(builder, loc, results);
  }
  IRMapping final;
  final.map(loop.getInductionVar(), rotated.getResult(0));
  final.map(loop.getRegionIterArgs(), rotated.getResults().slice(1, count));
  iterate(final, rotated.getResults().drop_front(1 + count), /*hasNext=*/false);
  scf::YieldOp::create(builder, loc, yielded(final));
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, loop.getInitArgs());
  loop.replaceAllUsesWith(branch.getResults());
  loop.erase();
}

namespace {

struct OverlapOperands : tk::impl::OverlapOperandsBase<OverlapOperands> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      OperandOverlap overlap(loop);
      if (!overlap.analyse()) {
        decline(loop, "tk-overlap-operands",
                "no product of the loop has operands that threads convert from whole registers");
        continue;
      }
      overlap.apply();
      ++numLoops;
    }
  }
};

} // namespace
