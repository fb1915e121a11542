//===- WarpSpecialization.cpp - cutting copies out of a function ----------===//
//
// See SpecializeWarps.cpp for what becomes of a function, and ProducerSlice.cpp for what can be cut
// out.
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/WarpSpecialization.h"
#include "passes/machine/limits/Loops.h"

#include "passes/machine/Machine.h"
#include "passes/pipeline/TeamTiles.h"

#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::warp_specialization;

//===----------------------------------------------------------------------===//
// Ring positions
//===----------------------------------------------------------------------===//

RingStates WarpSpecialization::initialStates() {
  RingStates states;
  Location loc = function.getLoc();
  for (Ring &ring : rings)
    states[&ring] = {constant(loc, 0), constant(loc, 0)};
  return states;
}

/// The position after one more stage: the parity changes with every round.
RingState WarpSpecialization::advance(Location loc, Ring &ring, RingState state) {
  Value one = constant(loc, 1);
  Value flipped = arith::SubIOp::create(builder, loc, one, state.parity);
  if (ring.stages == 1)
    return {state.slot, flipped};
  Value next = arith::AddIOp::create(builder, loc, state.slot, one);
  Value isEnd = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, next,
                                      constant(loc, ring.stages));
  return {arith::SelectOp::create(builder, loc, isEnd, constant(loc, 0), next),
          arith::SelectOp::create(builder, loc, isEnd, flipped, state.parity)};
}

SmallVector<Ring *> WarpSpecialization::ringsIn(Operation *op) {
  SmallVector<Ring *> inside;
  for (Ring &ring : rings)
    if (op->isProperAncestor(ring.copies.front()))
      inside.push_back(&ring);
  return inside;
}

SmallVector<Value> WarpSpecialization::unpack(ArrayRef<Ring *> inside, const RingStates &states) {
  SmallVector<Value> values;
  for (Ring *ring : inside)
    llvm::append_values(values, states.at(ring).slot, states.at(ring).parity);
  return values;
}

void WarpSpecialization::pack(ArrayRef<Ring *> inside, ValueRange values, RingStates &states) {
  for (auto [i, ring] : llvm::enumerate(inside))
    states[ring] = {values[2 * i], values[2 * i + 1]};
}

//===----------------------------------------------------------------------===//
// Producer
//===----------------------------------------------------------------------===//

void WarpSpecialization::beginCopy(BulkCopyOp copy, IRMapping &mapping, RingStates &states) {
  Ring *found =
      llvm::find_if(rings, [&](Ring &other) { return llvm::is_contained(other.copies, copy); });
  if (found == rings.end())
    return; // spared
  Ring &ring = *found;
  RingState &state = states[&ring];
  Location loc = copy.getLoc();
  if (copy == ring.copies.front()) {
    if (oneRole) {
      BarrierOp::create(builder, loc, /*cluster=*/ring.isMulticast());
    } else {
      Value before = arith::SubIOp::create(builder, loc, constant(loc, 1), state.parity);
      if (ring.results) {
        // A tile leaves the stage of the one before; the first one leaves one that had none.
        Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, state.slot,
                                              constant(loc, 0));
        before = arith::SelectOp::create(builder, loc, isFirst, before, state.parity);
      }
      PhaseWaitOp::create(builder, loc, ring.empty, state.slot, before);
    }
    PhaseExpectOp::create(builder, loc, ring.full, state.slot, ring.getCopiedBytes());
  }
  auto mapped = [&](ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  SmallVector<Value> coordinates = mapped(copy.getCoordinates()),
                     distances = mapped(copy.getDistances());
  Value stage = StageOp::create(builder, loc, copy.getTarget().getType(),
                                ring.buffers.lookup(copy.getTarget()), state.slot);
  Value map = mapping.lookupOrDefault(copy.getMap());
  auto begun = BulkCopyOp::create(builder, loc, stage, map, coordinates, ring.full, state.slot,
                                  copy.getMulticastAttr(), copy.getFirstRowAttr(), distances);
  begun.setOnce(copy.getOnce());
  begun.setAgain(copy.getAgain());
  if (copy == ring.copies.back() && !oneRole)
    state = advance(loc, ring, state);
}

/// Builds the producer's version of what stands in `from`.
void WarpSpecialization::produce(Block &from, IRMapping &mapping, RingStates &states) {
  for (Operation &op : from) {
    if (auto copy = dyn_cast<BulkCopyOp>(op)) {
      beginCopy(copy, mapping, states);
      continue;
    }
    if (slice.contains(&op))
      builder.clone(op, mapping);
    SmallVector<Ring *> inside = ringsIn(&op);
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop || inside.empty())
      continue;
    auto bound = [&](Value value) { return mapping.lookupOrDefault(value); };
    auto copy = scf::ForOp::create(builder, loop.getLoc(), bound(loop.getLowerBound()),
                                   bound(loop.getUpperBound()), bound(loop.getStep()),
                                   unpack(inside, states));
    mapping.map(loop.getInductionVar(), copy.getInductionVar());
    pack(inside, copy.getRegionIterArgs(), states);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(copy.getBody());
    produce(*loop.getBody(), mapping, states);
    scf::YieldOp::create(builder, loop.getLoc(), unpack(inside, states));
    pack(inside, copy.getResults(), states);
  }
}

//===----------------------------------------------------------------------===//
// Consumer
//===----------------------------------------------------------------------===//

/// Waits for the tiles of `ring` and lets their users see the current stage.
void WarpSpecialization::enterRing(Ring &ring, const RingState &state) {
  Location loc = ring.firstUse->getLoc();
  builder.setInsertionPoint(ring.firstUse);
  PhaseWaitOp::create(builder, loc, ring.full, state.slot, state.parity);
  for (Value tile : ring.getTiles()) {
    Value stage =
        StageOp::create(builder, loc, tile.getType(), ring.buffers.lookup(tile), state.slot);
    auto isRead = [](OpOperand &use) { return !isa<BulkCopyOp>(use.getOwner()); };
    tile.replaceUsesWithIf(stage, isRead);
    for (auto [copy, like] : ring.spared)
      if (like.getTarget() == tile) {
        Value transposed = StageOp::create(builder, loc, copy.getTarget().getType(),
                                           ring.buffers.lookup(tile), state.slot);
        copy.getTarget().replaceUsesWithIf(transposed, isRead);
      }
  }
}

/// Puts a tile's results into its stage of `ring`, whose rows `steps` reads, and leaves the one of
/// the tile before once its results have been stored.
void WarpSpecialization::leaveBefore(Ring &ring, const RingState &state, Operation *steps) {
  Location loc = steps->getLoc();
  SharedType type = ring.results.getType();
  OpBuilder::InsertionGuard guard(builder);
  for (Operation *piece : llvm::make_early_inc_range(ring.results->getUsers())) {
    builder.setInsertionPoint(piece);
    Value stage = StageOp::create(builder, loc, type, ring.resultStages, state.slot);
    cast<StageOp>(piece).getSourceMutable().assign(stage);
  }
  builder.setInsertionPoint(steps);
  Value before = arith::SubIOp::create(builder, loc, constant(loc, 1), state.slot);
  builder.setInsertionPointAfter(steps);
  BulkStoreWaitOp::create(builder, loc, 0, /*warpgroup=*/true);
  auto leave = PhaseArriveOp::create(builder, loc, ring.empty, before, /*cluster=*/false);
  // Until the next store there is nothing else to wait for.
  for (Operation *op = leave->getNextNode(); op && !isa<BulkStoreOp>(op);) {
    Operation *next = op->getNextNode();
    if (isa<BulkStoreWaitOp>(op))
      op->erase();
    op = next;
  }
}

/// `loop` with the positions of the rings inside carried along; they are its last results.
static scf::ForOp carryAlong(scf::ForOp loop, ValueRange positions) {
  IRRewriter rewriter(loop);
  auto keep = [](OpBuilder &, Location, ArrayRef<BlockArgument> arguments) {
    return SmallVector<Value>(arguments.begin(), arguments.end());
  };
  auto replaced = cast<LoopLikeOpInterface>(loop.getOperation())
                      .replaceWithAdditionalYields(rewriter, positions,
                                                   /*replaceInitOperandUsesInLoop=*/false, keep);
  return cast<scf::ForOp>(replaced->getOperation());
}

/// Turns the program in `block` into the consumer's, or with one role into that of all.
void WarpSpecialization::consume(Block &block, RingStates &states) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    SmallVector<Ring *> ending;
    for (Ring &ring : rings) {
      if (ring.firstUse == &op)
        enterRing(ring, states[&ring]);
      if (ring.lastUse == &op)
        ending.push_back(&ring);
    }
    Operation *last = &op;
    SmallVector<Ring *> inside = ringsIn(&op);
    if (auto copy = dyn_cast<BulkCopyOp>(op); copy && oneRole) {
      IRMapping inPlace;
      builder.setInsertionPoint(copy);
      beginCopy(copy, inPlace, states);
    } else if (auto loop = dyn_cast<scf::ForOp>(op); loop && !inside.empty()) {
      size_t count = loop.getNumResults();
      last = loop = carryAlong(loop, unpack(inside, states));
      pack(inside, loop.getRegionIterArgs().drop_front(count), states);
      consume(*loop.getBody(), states);
      loop.getBody()->getTerminator()->eraseOperands(count, 2 * inside.size());
      loop.getBody()->getTerminator()->insertOperands(count, unpack(inside, states));
      pack(inside, loop.getResults().drop_front(count), states);
    }
    builder.setInsertionPointAfter(last);
    for (Ring *ring : ending) {
      if (ring->results)
        leaveBefore(*ring, states[ring], last);
      else if (!oneRole)
        PhaseArriveOp::create(builder, last->getLoc(), ring->empty, states[ring].slot,
                              ring->isMulticast());
      states[ring] = advance(last->getLoc(), *ring, states[ring]);
    }
  }
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

void WarpSpecialization::allocate() {
  for (Ring &ring : rings) {
    Location loc = ring.copies.front().getLoc();
    for (Value tile : ring.getTiles())
      ring.buffers[tile] = AllocSharedOp::create(
          builder, loc, cast<SharedType>(tile.getType()).withStages(ring.stages), nullptr);
    if (ring.results) {
      for (Value tile : ring.getTiles())
        setBuffer(ring.buffers[tile].getDefiningOp<AllocSharedOp>(), BufferUse::HoldsResults);
      auto inStages = AllocSharedOp::create(
          builder, loc, ring.results.getType().withStages(ring.stages), nullptr);
      setBuffer(inStages, BufferUse::InStages);
      ring.resultStages = inStages;
      changePlan(function, [](KernelPlan &plan) { plan.order = WarpgroupOrder::Unordered; });
    }
    auto type = PhasesType::get(function.getContext(), ring.stages);
    ring.full = AllocPhasesOp::create(builder, loc, type, 1, nullptr);
    // What another block's copies overwrite, that block's readers must have left too.
    int64_t readers = function.getTeamWarps() * (ring.isMulticast() ? function.getCluster() : 1);
    if (!oneRole)
      ring.empty = AllocPhasesOp::create(builder, loc, type, readers, nullptr);
  }
  start = BarrierOp::create(builder, function.getLoc(), /*cluster=*/function.getCluster() > 1);
}

/// Registers are scarce where accumulators are large and all threads together cannot have as many
/// as one could use. ptxas must know how many a thread begins with: a block has a processor, or
/// shares it with as many as the plan of a chain says.
void WarpSpecialization::setRegisters(WarpRolesOp roles) {
  int64_t accumulators = 0;
  function.walk([&](WarpgroupDotOp dot) {
    LayoutAttr layout = getLayout(dot.getType());
    accumulators += 4 * (layout ? layout.getNumRegisters() : 1);
  });
  const KernelPlan plan = getPlan(function);
  const int64_t blocks = plan.family == PlanFamily::FusedGemm && plan.tiles
                             ? std::max<int64_t>(plan.tiles.getPersistent(), 1)
                             : 1;
  if (accumulators < kLargeAccumulators && blocks == 1)
    return;
  const int64_t registers = registersOfProcessor / blocks;
  int64_t consumers = function.getBlockWarps() * 32, producers = function.getProducerWarps() * 32;
  if (registers / (consumers + producers) >= mostRegistersOfThread)
    return;
  bool wantsAll = consumers >= kManyConsumers || accumulators >= kLargestAccumulators;
  int64_t ofProducer = wantsAll ? kFewestRegisters : kProducerRegisters;
  // What can move is what the block began with: a multiple of eight for each thread.
  int64_t pool = registers / (consumers + producers) / 8 * 8 * (consumers + producers);
  int64_t rest = (pool - producers * ofProducer) / consumers / 8 * 8;
  function.setMinBlocks(blocks);
  roles.setProducerRegisters(ofProducer);
  roles.setConsumerRegisters(std::min(rest, mostRegistersOfThread));
}

void WarpSpecialization::apply(bool inRoles, int64_t teams) {
  oneRole = !inRoles;
  function.setTeams(teams);
  changePlan(function, [&](KernelPlan &plan) {
    plan.roles = inRoles ? WarpRoles::ProducerConsumer : WarpRoles::One;
    if (inRoles && function.getBlockWarps() >= 2 * warpsOfWarpgroup)
      plan.order = teams > 1 ? WarpgroupOrder::PingPong : WarpgroupOrder::Cooperative;
  });
  Block *body = function.getBlock();
  Location loc = function.getLoc();
  builder.setInsertionPointToStart(body);
  allocate();
  SmallVector<Value> tiles;
  for (Ring &ring : rings)
    llvm::append_range(tiles, ring.getTiles());
  SmallVector<BulkCopyOp> originals;
  for (Ring &ring : rings) {
    originals.append(ring.copies);
    for (auto [copy, like] : ring.spared) {
      originals.push_back(copy);
      tiles.push_back(copy.getTarget());
    }
  }
  if (oneRole) {
    RingStates states = initialStates();
    consume(*body, states);
  } else {
    function.setProducerWarps(kProducerWarps);
    builder.setInsertionPoint(body->getTerminator());
    auto roles = WarpRolesOp::create(builder, loc, nullptr, nullptr);
    roles.getProducer().emplaceBlock();
    Block &consumer = roles.getConsumer().emplaceBlock();
    for (Operation &op : llvm::make_early_inc_range(*body))
      if (!isa<AllocSharedOp, AllocPhasesOp, WarpRolesOp, gpu::ReturnOp>(op) && &op != start)
        op.moveBefore(&consumer, consumer.end());
    IRMapping mapping;
    builder.setInsertionPointToStart(&roles.getProducer().front());
    RingStates produced = initialStates();
    produce(consumer, mapping, produced);
    RoleEndOp::create(builder, loc);
    builder.setInsertionPointToStart(&consumer);
    RingStates consumed = initialStates();
    consume(consumer, consumed);
    builder.setInsertionPointToEnd(&consumer);
    RoleEndOp::create(builder, loc);
    if (teams > 1)
      giveTilesToTeams(roles, rings);
    setRegisters(roles);
    // A block stays while others of its cluster may still arrive at its barriers.
    builder.setInsertionPointAfter(roles);
    if (function.getCluster() > 1)
      BarrierOp::create(builder, loc, /*cluster=*/true);
  }
  for (BulkCopyOp copy : originals)
    copy.erase();
  for (Ring &ring : rings)
    if (ring.results)
      ring.results.erase();
  for (Value tile : tiles)
    tile.getDefiningOp()->erase();
}
