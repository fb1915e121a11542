//===- OverlapChains.cpp - the second product under the next iteration ----===//
//
// In a loop with a back-to-back contraction (scores, then their weighted sum), the second product
// waits for all arithmetic on the scores. This pass moves the second product into the next
// iteration, where it runs under that iteration's arithmetic.
//
// 1. The loop carries the softmax numerators, and the sum as it was before the product.
// 2. An iteration issues its first product and, right after it, the second product of the iteration
//    before. It waits only for the first one. The arithmetic on the scores runs under the second
//    product, which is waited for where its sum is needed.
// 3. A prologue computes the first iteration's scores, and an epilogue the last iteration's second
//    product. A branch surrounds all if the loop may have no iteration.
//
//   for %j, %o {                              s = dot %q, %k; p = f(s); %o0 = %o * g(s)
//     s = dot %q, %k[j]; wait                 for %j from the second on, %o, %p {
//     p = f(s)                          →       s = dot %q, %k[j]; o1 = dot %p, %v[j - 1], %o
//     o1 = dot p, %v[j], %o * g(s)              wait but for one; p1 = f(s); wait
//     wait; yield o1                            yield o1 * g(s), p1
//   }                                         }
//                                             dot %p, %v[last], %o; wait
//
// Scores may be sums of several products, each of which begins with the sums of the one before.
// They are issued together and waited for once. A stage of `%v` is acquired and released with its
// product, so that its circular buffer proceeds in the same order. A stage outside of the loop that
// only the first product reads, such as the queries, is released before the last second product.
// The next tile can then arrive meanwhile.
//
// Warpgroups that divide the columns exchange the numerators through shared memory: the loop
// carries what a thread has read from there.
//
// Scores of several products begin together, too, if the chain does not overlap because `%v` is the
// stage of `%k`. Its first iteration goes before the loop if tk-keep-references can then keep that
// iteration's row maximum.
//
// The pass declines if the first product depends on the sum, or if the iteration uses the sum after
// its wait. It declines, too, if another operation uses the stage of `%v`.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/pipeline/ProductWaits.h"
#include "passes/pipeline/ReferenceLoop.h"

#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_OVERLAPCHAINS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

class ChainOverlap {
public:
  explicit ChainOverlap(scf::ForOp loop) : loop(loop), builder(loop) {}

  bool analyse();
  void apply();

  /// Scores of several products are begun together where the chain stays as it is, because both
  /// products read one tile.
  bool beginScores();

private:
  bool findDots();
  void beginTogether();
  bool collectSecond();
  bool collectPositions();
  void collectConversions();
  /// The values that an iteration leaves for the second product, then those that the loop carries.
  struct State {
    SmallVector<Value> carried; ///< one an iteration argument
    Value weights;
  };
  PhaseArriveOp leavesFirst();
  SmallVector<Operation *> leavesBefore();
  State firstPart(IRMapping &mapping, bool withSecond, const State &before);
  Value secondPart(const State &state, SmallVectorImpl<Value> &carried);

  scf::ForOp loop;
  OpBuilder builder;
  SmallVector<WarpgroupWaitOp> between; ///< the scores' products
  WarpgroupDotOp first, second;         ///< the last one of the scores, the one of the weights
  WarpgroupWaitOp firstWait, secondWait;
  llvm::SetVector<Operation *> secondOps; ///< what moves, in order
  SmallVector<unsigned> positions;        ///< arguments that only what moves depends on
  SmallVector<Operation *> conversions;   ///< of the weights, the last one first
  unsigned sum = 0;                       ///< the argument that the second product adds to
};

} // namespace

/// Adds what is stored in `block` where `load` reads.
static void addStored(LocalLoadOp load, Block *block, SmallVectorImpl<Value> &values) {
  for (Operation *user : load.getSource().getUsers())
    if (auto store = dyn_cast<LocalStoreOp>(user); store && store->getBlock() == block)
      values.push_back(store.getValue());
}

/// Does `value` follow from `source` inside the block of `within`, through registers or shared
/// memory?
static bool dependsOn(Value value, Operation *source, Block *block) {
  llvm::SmallPtrSet<Operation *, 32> visited;
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Operation *producer = work.pop_back_val().getDefiningOp();
    Operation *op = producer ? block->findAncestorOpInBlock(*producer) : nullptr;
    if (!op || !visited.insert(op).second)
      continue;
    if (op == source)
      return true;
    op->walk([&](Operation *inner) {
      llvm::append_range(work, inner->getOperands());
      if (auto load = dyn_cast<LocalLoadOp>(inner))
        addStored(load, block, work);
    });
  }
  return false;
}

/// The loop's products: all but the last one add to the same scores.
bool ChainOverlap::findDots() {
  SmallVector<WarpgroupDotOp> dots(loop.getBody()->getOps<WarpgroupDotOp>());
  if (dots.size() < 2)
    return false;
  second = dots.pop_back_val(), first = dots.pop_back_val();
  WarpgroupDotOp next = first;
  for (WarpgroupDotOp dot : llvm::reverse(dots)) {
    WarpgroupWaitOp wait = findPlainWait(dot);
    if (!wait || isPromoted(next) || !wait->hasOneUse() || next.getAcc() != wait.getResult(0) ||
        !wait->isBeforeInBlock(next))
      return false;
    between.push_back(wait);
    next = dot;
  }
  return true;
}

bool ChainOverlap::analyse() {
  if (!findDots())
    return false;
  firstWait = findPlainWait(first), secondWait = findPlainWait(second);
  if (!firstWait || !secondWait || !isa<RankedTensorType>(second.getA().getType()) ||
      !firstWait->isBeforeInBlock(second) || !dependsOn(second.getA(), firstWait, loop.getBody()))
    return false;
  // The first product must not need the carried sum, nor anything that does.
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  if (!secondWait->hasOneUse() || *secondWait->user_begin() != yield)
    return false;
  sum = secondWait->use_begin()->getOperandNumber();
  collectConversions();
  return collectSecond();
}

/// Weights take the registers of those before, which the second product in flight reads. Where an
/// iteration does nothing with the sum once that is there, ptxas moves their copies under the next
/// products, and then lets no product run beside another (C7513): they are converted after the
/// wait.
void ChainOverlap::collectConversions() {
  if (second.getAcc() != loop.getRegionIterArg(sum))
    return;
  Operation *op = second.getA().getDefiningOp();
  while (op && isa<arith::TruncFOp, ConvertLayoutOp>(op) && op->hasOneUse() &&
         op->getBlock() == loop.getBody()) {
    conversions.push_back(op);
    op = op->getOperand(0).getDefiningOp();
  }
}

/// The second product with the waits and arrivals of its operand's stages.
bool ChainOverlap::collectSecond() {
  auto stage = second.getB().getDefiningOp<StageOp>();
  if (!stage || stage->getBlock() != loop.getBody())
    return false;
  // All that happens at the slot of its stage.
  Value slot = stage.getStage();
  auto argument = dyn_cast<BlockArgument>(slot);
  if (!argument || argument.getOwner() != loop.getBody())
    return false;
  for (Operation &op : *loop.getBody()) {
    auto wait = dyn_cast<PhaseWaitOp>(op);
    auto arrive = dyn_cast<PhaseArriveOp>(op);
    bool atSlot = (wait && wait.getSlot() == slot) || (arrive && arrive.getSlot() == slot);
    if (atSlot || &op == stage || &op == second || &op == secondWait)
      secondOps.insert(&op);
  }
  return collectPositions();
}

/// The ring's position, and how it advances, move along.
bool ChainOverlap::collectPositions() {
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  // Arguments that are used by what moves and to compute their own next values alone.
  llvm::SetVector<unsigned> numbers;
  for (Operation *op : secondOps)
    for (Value operand : op->getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand);
          argument && argument.getOwner() == loop.getBody() && argument != loop.getInductionVar() &&
          !isa<RankedTensorType>(argument.getType()))
        numbers.insert(argument.getArgNumber() - 1);
  positions = numbers.takeVector();
  // What computes their next values, and nothing else, moves too.
  llvm::SmallPtrSet<Operation *, 16> next;
  SmallVector<Value> work;
  for (unsigned number : positions)
    work.push_back(yield.getOperand(number));
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != loop.getBody() || !next.insert(op).second)
      continue;
    if (op->getNumRegions() > 0 || !isMemoryEffectFree(op))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  SmallVector<Operation *> ordered;
  for (Operation &op : *loop.getBody())
    if (secondOps.contains(&op) || next.contains(&op))
      ordered.push_back(&op);
  secondOps.clear();
  secondOps.insert_range(ordered);
  for (unsigned number : positions)
    for (Operation *user : loop.getRegionIterArg(number).getUsers())
      if (!secondOps.contains(user))
        return false;
  for (Operation *op : secondOps)
    for (Operation *user : op->getUsers())
      if (!secondOps.contains(user) && user != yield)
        return false;
  return true;
}

/// Leaves out the waits between the scores' products. Their stages are left when all of them are
/// complete.
void ChainOverlap::beginTogether() {
  for (WarpgroupWaitOp wait : between) {
    for (Operation *op = wait->getNextNode(); op != firstWait;) {
      Operation *next = op->getNextNode();
      if (isa<PhaseArriveOp>(op))
        op->moveAfter(firstWait);
      op = next;
    }
    wait.getResult(0).replaceAllUsesWith(wait.getSources().front());
    wait.erase();
  }
}

bool ChainOverlap::beginScores() {
  if (!findDots() || between.empty())
    return false;
  firstWait = findPlainWait(first);
  auto keys = between.back().getSources().front().getDefiningOp<WarpgroupDotOp>();
  auto stage = keys ? keys.getB().getDefiningOp<StageOp>() : StageOp();
  auto values = second.getB().getDefiningOp<StageOp>();
  if (!firstWait || !stage || !values || stage.getSource() != values.getSource() ||
      stage.getStage() != values.getStage())
    return false;
  beginTogether();
  auto weights = dyn_cast<RankedTensorType>(second.getA().getType());
  if (weights && weights.getElementType().isBF16() && ReferenceLoop(loop).analyse(false))
    takeFirstIteration(loop);
  return true;
}

/// Everything but what moves, with the first product begun before `before`'s second one.
ChainOverlap::State ChainOverlap::firstPart(IRMapping &mapping, bool withSecond,
                                            const State &before) {
  State after;
  after.carried = before.carried;
  Value pendingSum;
  for (auto [argument, value] : llvm::zip_equal(loop.getRegionIterArgs(), before.carried))
    mapping.map(argument, value);
  auto sumArgument = loop.getRegionIterArg(sum);
  auto waitForSecond = [&](Location loc) {
    if (!pendingSum)
      return;
    auto wait = WarpgroupWaitOp::create(builder, loc, std::exchange(pendingSum, Value()), 0);
    mapping.map(sumArgument, wait.getResult(0));
    // The stage is left once it has been read; then the ring goes on.
    for (Operation *op : secondOps)
      if (isa<PhaseArriveOp>(op) || (isMemoryEffectFree(op) && !isa<StageOp>(op)))
        builder.clone(*op, mapping);
  };
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (secondOps.contains(&op) || llvm::is_contained(conversions, &op))
      continue;
    if (&op == firstWait) {
      Value scores = mapping.lookup(first.getResult());
      if (withSecond) {
        for (Operation *moved : secondOps)
          if (isa<PhaseWaitOp, StageOp>(moved))
            builder.clone(*moved, mapping);
        auto dot =
            WarpgroupDotOp::create(builder, second.getLoc(), second.getType(), before.weights,
                                   mapping.lookup(second.getB()), before.carried[sum],
                                   /*accumulate=*/Value(), second.getPrecision());
        pendingSum = dot.getResult();
      }
      auto wait = WarpgroupWaitOp::create(builder, firstWait.getLoc(), scores, withSecond ? 1 : 0);
      mapping.map(firstWait.getResult(0), wait.getResult(0));
      continue;
    }
    bool readsSum = false;
    op.walk([&](Operation *inner) {
      readsSum |= llvm::is_contained(inner->getOperands(), Value(sumArgument));
    });
    if (readsSum)
      waitForSecond(op.getLoc());
    builder.clone(op, mapping);
  }
  waitForSecond(loop.getLoc());
  for (Operation *op : llvm::reverse(conversions))
    builder.clone(*op, mapping);
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  for (auto [i, value] : llvm::enumerate(yield.getOperands())) {
    if (i == sum)
      after.carried[i] = mapping.lookupOrDefault(second.getAcc());
    else if (!llvm::is_contained(positions, unsigned(i)) || withSecond)
      after.carried[i] = mapping.lookupOrDefault(value);
  }
  after.weights = mapping.lookupOrDefault(second.getA());
  return after;
}

/// The last iteration's second product; positions advance.
Value ChainOverlap::secondPart(const State &state, SmallVectorImpl<Value> &carried) {
  IRMapping mapping;
  for (auto [argument, value] : llvm::zip_equal(loop.getRegionIterArgs(), state.carried))
    mapping.map(argument, value);
  mapping.map(second.getA(), state.weights);
  mapping.map(second.getAcc(), state.carried[sum]);
  for (Operation *op : secondOps)
    builder.clone(*op, mapping);
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  carried = state.carried;
  for (unsigned number : positions)
    carried[number] = mapping.lookupOrDefault(yield.getOperand(number));
  return carried[sum] = mapping.lookup(secondWait.getResult(0));
}

/// Where a stage around the loop is left that is the first product's left operand and nothing else.
PhaseArriveOp ChainOverlap::leavesFirst() {
  auto stage = first.getA().getDefiningOp<StageOp>();
  // Each ring has a position of its own, if loops carry it.
  if (!stage || stage->getBlock() != loop->getBlock() || !stage->hasOneUse() ||
      !isa<BlockArgument>(stage.getStage()))
    return {};
  for (Operation *user : stage.getStage().getUsers()) {
    auto arrive = dyn_cast<PhaseArriveOp>(user);
    if (arrive && arrive->getBlock() == loop->getBlock() && loop->isBeforeInBlock(arrive))
      return arrive;
  }
  return {};
}

/// How the stage of the tile before, which has had its results, is left.
SmallVector<Operation *> ChainOverlap::leavesBefore() {
  Operation *next = loop->getNextNode(); // behind sums that threads add up
  while (next && isMemoryEffectFree(next) && !next->hasTrait<OpTrait::IsTerminator>())
    next = next->getNextNode();
  auto wait = dyn_cast_or_null<BulkStoreWaitOp>(next);
  auto arrive = wait ? dyn_cast_or_null<PhaseArriveOp>(wait->getNextNode()) : PhaseArriveOp();
  return arrive ? SmallVector<Operation *>{wait, arrive} : SmallVector<Operation *>();
}

void ChainOverlap::apply() {
  Location loc = loop.getLoc();
  beginTogether();
  PhaseArriveOp leave = leavesFirst();
  // The tile before is stored by the time that this one's first scores have been worked on.
  SmallVector<Operation *> behindOpening = leavesBefore();
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound(), step = loop.getStep();
  Value isAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lower, upper);
  auto branch = scf::IfOp::create(builder, loc, loop.getResultTypes(), isAny, true);
  builder.setInsertionPointToStart(branch.thenBlock());
  State state;
  state.carried = SmallVector<Value>(loop.getInitArgs());
  IRMapping peeled;
  peeled.map(loop.getInductionVar(), lower);
  state = firstPart(peeled, /*withSecond=*/false, state);
  for (Operation *op : behindOpening)
    builder.clone(*op);
  Value from = arith::AddIOp::create(builder, loc, lower, step);
  SmallVector<Value> inits = state.carried;
  inits.push_back(state.weights);
  auto rotated = scf::ForOp::create(builder, loc, from, upper, step, inits);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(rotated.getBody());
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), rotated.getInductionVar());
    State inside;
    inside.carried = llvm::to_vector_of<Value>(rotated.getRegionIterArgs().drop_back());
    inside.weights = rotated.getRegionIterArgs().back();
    inside = firstPart(mapping, /*withSecond=*/true, inside);
    inside.carried.push_back(inside.weights);
    scf::YieldOp::create(builder, loc, inside.carried);
  }
  State last;
  last.carried = llvm::to_vector_of<Value>(rotated.getResults().drop_back());
  last.weights = rotated.getResults().back();
  if (leave)
    builder.clone(*leave);
  SmallVector<Value> results;
  secondPart(last, results);
  scf::YieldOp::create(builder, loc, results);
  builder.setInsertionPointToStart(branch.elseBlock());
  if (leave)
    builder.clone(*leave);
  for (Operation *op : behindOpening)
    builder.clone(*op);
  scf::YieldOp::create(builder, loc, loop.getInitArgs());
  loop.replaceAllUsesWith(branch.getResults());
  loop.erase();
  if (leave)
    leave.erase();
  for (Operation *op : behindOpening)
    op->erase();
}

namespace {

struct OverlapChains : tk::impl::OverlapChainsBase<OverlapChains> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      ChainOverlap overlap(loop);
      if (!overlap.analyse()) {
        decline(loop, "tk-overlap-chains",
                "no product of the loop takes what another one computed in the same iteration");
        numLoops += ChainOverlap(loop).beginScores();
        continue;
      }
      overlap.apply();
      ++numLoops;
    }
  }
};

} // namespace
