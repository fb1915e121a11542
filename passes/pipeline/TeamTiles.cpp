//===- TeamTiles.cpp - tiles that teams of warps take in turns ------------===//
//
// A block that goes through tiles leaves the matrix unit idle while its warps work on what a tile's
// products left. With teams, each warpgroup has tiles of its own: the first team has the block's
// first tile, the second one the next, and so on; the producer brings their operands in that order.
// Teams take turns: one computes products while another one works on its results. In the consumer's
// program:
//
// 1. The loop over tiles begins at the team's first tile and goes on by as many as there are teams.
// 2. A ring's position is behind the stages of the tiles of other teams, which are as many for each
//    tile: before the loop those of the teams before, in each iteration those of all others.
// 3. A team has the turn from before its tile's first stage until its last products have begun. It
//    could not wait for a stage earlier, either: while those of the tile before are still to come,
//    a phase of the same parity may be an earlier one.
// 4. Buffers that no copy fills become as many as there are teams.
//
//   for %t = %a to %b step %s                 %team = of_warpgroup 0, 1
//       iter (slot, parity) = (0, 0) {   →    for %t = %a + %team * %s to %b step 2 * %s
//     for %k ... { stage of slot }                iter (slot, parity) = (0, 0) + %team * steps {
//     yield slot, parity                        turn take
//   }                                           for %k ... { stage of slot }
//                                               turn pass
//                                               yield (slot, parity) + steps
//                                             }
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/TeamTiles.h"
#include "passes/machine/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

static bool isDefinedIn(Value value, Operation *op) {
  return op->isAncestor(value.getParentRegion()->getParentOp());
}

/// Do all tiles that `tiles` goes through take equally many steps of `loop`?
static bool takesEquallyMany(scf::ForOp tiles, scf::ForOp loop) {
  return llvm::none_of(ValueRange{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()},
                       [&](Value bound) { return isDefinedIn(bound, tiles); });
}

bool tk::canTeamsTakeTurns(FuncOp function, ArrayRef<Ring> rings) {
  if (function.getNumWarps() != warpsOfWarpgroup)
    return false;
  scf::ForOp tiles;
  for (const Ring &ring : rings) {
    auto loop = dyn_cast<scf::ForOp>(ring.copies.front()->getParentOp());
    auto around = loop ? dyn_cast<scf::ForOp>(loop->getParentOp()) : scf::ForOp();
    if (!around || around->getParentOp() != function || (tiles && tiles != around) ||
        around.getNumResults() > 0 || !takesEquallyMany(around, loop))
      return false;
    tiles = around;
  }
  return tiles != nullptr;
}

/// Is `alloc` filled by a copy of one of the rings?
static bool isOfRing(AllocSharedOp alloc, ArrayRef<Ring> rings) {
  return llvm::any_of(rings, [&](const Ring &ring) {
    return llvm::is_contained(ring.getTiles(), alloc.getResult()) ||
           llvm::any_of(ring.buffers,
                        [&](auto &entry) { return entry.second == alloc.getResult(); });
  });
}

int64_t tk::bytesOfTeam(FuncOp function, ArrayRef<Ring> rings) {
  int64_t bytes = 0;
  function.walk([&](AllocSharedOp alloc) {
    bytes += isOfRing(alloc, rings) ? 0 : alloc.getType().getSizeInBytes();
  });
  return bytes;
}

namespace {

class TeamTurns {
public:
  TeamTurns(WarpRolesOp roles, scf::ForOp tiles)
      : roles(roles), tiles(tiles), loc(tiles.getLoc()),
        teams(roles->getParentOfType<FuncOp>().getTeams()), builder(tiles) {}

  void run(MutableArrayRef<Ring> rings);

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value multiply(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
  Value stepsOf(Ring &ring);
  void takeTurns();
  void skip(Ring &ring, unsigned position);
  void separate(AllocSharedOp alloc);

  WarpRolesOp roles;
  scf::ForOp tiles;
  Location loc;
  int64_t teams;
  OpBuilder builder;
  Value team;
};

} // namespace

void TeamTurns::takeTurns() {
  Operation *first = nullptr, *last = nullptr;
  for (Operation &op : *tiles.getBody()) {
    bool waits = op.walk([](PhaseWaitOp) { return WalkResult::interrupt(); }).wasInterrupted();
    first = waits && !first ? &op : first;
    last = waits ? &op : last;
  }
  builder.setInsertionPoint(first);
  TurnOp::create(builder, loc, TurnStep::Take);
  builder.setInsertionPointAfter(last);
  TurnOp::create(builder, loc, TurnStep::Pass);
  builder.setInsertionPoint(tiles);
  TurnOp::create(builder, loc, TurnStep::Begin);
}

/// The stages that a tile takes of `ring`.
Value TeamTurns::stepsOf(Ring &ring) {
  scf::ForOp loop;
  for (Operation *user : ring.full.getUsers())
    if (isa<PhaseWaitOp>(user) && tiles->isProperAncestor(user))
      loop = user->getParentOfType<scf::ForOp>();
  Value length = arith::SubIOp::create(builder, loc, loop.getUpperBound(), loop.getLowerBound());
  Value count = arith::CeilDivSIOp::create(builder, loc, length, loop.getStep());
  return arith::MaxSIOp::create(builder, loc, count, constant(0));
}

/// Has the position of `ring`, which the loop carries from `position` on, leave out other teams'
/// stages.
void TeamTurns::skip(Ring &ring, unsigned position) {
  auto behind = [&](Value slot, Value parity, Value steps) {
    Value sum = add(slot, steps), stages = constant(ring.stages);
    Value rounds = arith::DivSIOp::create(builder, loc, sum, stages);
    return std::pair<Value, Value>(
        arith::RemSIOp::create(builder, loc, sum, stages),
        arith::RemSIOp::create(builder, loc, add(parity, rounds), constant(2)));
  };
  builder.setInsertionPoint(tiles);
  Value steps = stepsOf(ring);
  Value others = multiply(steps, constant(teams - 1));
  OpOperand &slot = tiles.getInitArgsMutable()[position];
  OpOperand &parity = tiles.getInitArgsMutable()[position + 1];
  auto [first, phase] = behind(slot.get(), parity.get(), multiply(team, steps));
  slot.set(first);
  parity.set(phase);
  Operation *yield = tiles.getBody()->getTerminator();
  builder.setInsertionPoint(yield);
  auto [next, then] = behind(yield->getOperand(position), yield->getOperand(position + 1), others);
  yield->setOperand(position, next);
  yield->setOperand(position + 1, then);
}

/// Gives each team a buffer of its own in place of `alloc`.
void TeamTurns::separate(AllocSharedOp alloc) {
  builder.setInsertionPoint(alloc);
  SharedType type = alloc.getType();
  Value all = AllocSharedOp::create(builder, alloc.getLoc(), type.withStages(teams), nullptr);
  builder.setInsertionPointAfterValue(team);
  Value own = StageOp::create(builder, alloc.getLoc(), type, all, team);
  alloc.replaceAllUsesWith(own);
  alloc.erase();
}

void TeamTurns::run(MutableArrayRef<Ring> rings) {
  builder.setInsertionPointToStart(&roles.getConsumer().front());
  SmallVector<Value> numbers;
  for (int64_t number = 0; number < teams; ++number)
    numbers.push_back(constant(number));
  team = OfWarpgroupOp::create(builder, loc, builder.getIndexType(), numbers);
  takeTurns();
  for (auto [position, ring] : llvm::enumerate(rings))
    skip(ring, 2 * position);
  builder.setInsertionPoint(tiles);
  Value step = tiles.getStep();
  tiles.setLowerBound(add(tiles.getLowerBound(), multiply(team, step)));
  tiles.setStep(multiply(step, constant(teams)));
  SmallVector<AllocSharedOp> own;
  roles->getParentOfType<FuncOp>().walk([&](AllocSharedOp alloc) {
    if (!isOfRing(alloc, rings))
      own.push_back(alloc);
  });
  for (AllocSharedOp alloc : own)
    separate(alloc);
}

void tk::giveTilesToTeams(WarpRolesOp roles, MutableArrayRef<Ring> rings) {
  for (auto loop : roles.getConsumer().getOps<scf::ForOp>())
    if (loop.getNumResults() == 2 * rings.size())
      return TeamTurns(roles, loop).run(rings);
}
