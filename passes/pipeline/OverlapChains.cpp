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
#include "passes/pipeline/ChainOverlap.h"
#include "passes/pipeline/ProductWaits.h"
#include "passes/pipeline/ReferenceLoop.h"

#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_OVERLAPCHAINS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

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
  while (op && isa<arith::TruncFOp, arith::SelectOp, ConvertLayoutOp>(op) && op->hasOneUse() &&
         op->getBlock() == loop.getBody()) {
    conversions.push_back(op);
    // Of a mask the weights that it keeps.
    auto select = dyn_cast<arith::SelectOp>(op);
    const bool keepsFalse = select && matchPattern(select.getTrueValue(), m_AnyZeroFloat());
    op = op->getOperand(!select ? 0 : keepsFalse ? 2 : 1).getDefiningOp();
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
