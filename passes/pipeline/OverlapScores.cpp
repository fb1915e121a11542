//===- OverlapScores.cpp - issue the next scores before the exponentials --===//
//
// If a loop's second product runs under the next iteration's work (tk-overlap-chains), the first
// product is issued with it and waited for at once. Nothing runs under the first product. This pass
// issues the next iteration's first product before this iteration's exponentials.
//
// 1. An iteration issues the next first product as soon as its own scores have been read for the
//    last time: the exponents are computed, the exponentials are not. They run under that product,
//    which takes the registers of the scores that have been read.
// 2. The loop carries the product in flight, also into the first iteration. The last iteration, and
//    a loop without iterations, issue the product of the previous stage again, and nothing reads
//    it. A branch would be no alternative: where branches meet, ptxas gives products in flight
//    registers of their own (C7511). A stage of the first product is therefore released one
//    iteration later.
// 3. An iteration issues its second product when its scores are there, and waits for it before the
//    exponentials. The maxima run under it.
//
//   for %j, %o, %p {                          s = dot %q, %k[first]
//     s = dot %q, %k[j]                       for %j, %o, %p, %s {
//     o1 = dot %p, %v[j - 1], %o                s1 = wait %s; release %k[j - 1]
//     s1 = wait s pending 1; release %k[j]      o1 = dot %p, %v[j - 1], %o; m = max s1
//     m = max s1; p1 = exp s1, m          →     x = exponent s1, m; s' = dot %q, %k[j + 1]
//     o2 = wait o1; ...                         o2 = wait o1 pending 1; p1 = exp2 x; ...
//   }                                         }
//                                             wait %s; release %k[last]
//
// The pass takes loops whose exponentials take longer than their products, and consumers with
// registers for two tiles of scores. Heads of 64 to 128 gain 3 to 12 %, heads of 256 would lose 5
// to 12 %. It takes only 8-bit numerators, because ptxas lets no 16-bit product run beside
// arithmetic on another product's accumulators (C7513). Loops with masks under branches are
// declined: between a product and its wait, a branch takes the registers that the product reads.
// The keys need more than two stages.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/limits/Loops.h"

#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_OVERLAPSCORES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::overlap_scores;

namespace {

class ScoreOverlap {
public:
  ScoreOverlap(scf::ForOp loop, int64_t registers)
      : loop(loop), builder(loop), registers(registers) {}

  bool analyse();
  void apply();

private:
  /// The stage of a product's right operand: where it is waited for and left.
  struct Operand {
    PhaseWaitOp wait;
    StageOp stage;
    PhaseArriveOp leave;
    unsigned slot, parity; ///< of the loop's arguments
  };
  bool findOperand(WarpgroupDotOp dot, Operand &operand);
  bool findPrevious();
  bool findWeights();
  bool isPlain();
  bool isLongerThanProducts();
  bool fits();
  Value createScores(Value slot, Value into);
  Value following(unsigned argument, IRMapping &mapping);
  void waitForSum(IRMapping &mapping);
  Value waitForNext(IRMapping &mapping);
  Value beginNext(IRMapping &mapping, Value slot, Value scores);
  Value cloneStep(IRMapping &mapping, Value inFlight, Value before);

  scf::ForOp loop;
  OpBuilder builder;
  int64_t registers; ///< of a thread
  WarpgroupDotOp first, second;
  WarpgroupWaitOp firstWait, secondWait;
  Operand keys, values;
  PhaseWaitOp previousWait; ///< of the step before the loop, as is the next
  PhaseArriveOp previousLeave;
  ScaledExpDiffOp weights;
};

} // namespace

static WarpgroupWaitOp findWait(WarpgroupDotOp dot, int64_t pending) {
  auto wait = dot->hasOneUse() ? dyn_cast<WarpgroupWaitOp>(*dot->user_begin()) : WarpgroupWaitOp();
  bool isFor = wait && wait.getPending() == static_cast<uint64_t>(pending) &&
               wait.getNumResults() == 1 && wait->getBlock() == dot->getBlock();
  return isFor ? wait : WarpgroupWaitOp();
}

/// Is the stage of `dot`'s right operand waited for, read and left here, once each, at a position
/// that the loop carries?
bool ScoreOverlap::findOperand(WarpgroupDotOp dot, Operand &operand) {
  auto argumentOf = [&](Value value, unsigned &number) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != loop.getBody() || argument == loop.getInductionVar())
      return false;
    number = argument.getArgNumber() - 1;
    return true;
  };
  operand.stage = dot.getB().getDefiningOp<StageOp>();
  if (!operand.stage || operand.stage->getBlock() != loop.getBody() ||
      !operand.stage->hasOneUse() || !argumentOf(operand.stage.getStage(), operand.slot))
    return false;
  unsigned waits = 0, leaves = 0;
  for (Operation *user : operand.stage.getStage().getUsers()) {
    if (user->getBlock() != loop.getBody())
      return false;
    if (auto wait = dyn_cast<PhaseWaitOp>(user))
      operand.wait = wait, ++waits;
    if (auto leave = dyn_cast<PhaseArriveOp>(user))
      operand.leave = leave, ++leaves;
  }
  return waits == 1 && leaves == 1 && operand.wait->isBeforeInBlock(dot) &&
         argumentOf(operand.wait.getParity(), operand.parity);
}

/// The stage of the first product in the step before the loop (tk-overlap-chains).
bool ScoreOverlap::findPrevious() {
  for (Operation *op = loop->getPrevNode(); op && !previousWait; op = op->getPrevNode()) {
    auto leave = dyn_cast<PhaseArriveOp>(op);
    if (leave && !previousLeave && leave.getPhases() == keys.leave.getPhases())
      previousLeave = leave;
    auto wait = dyn_cast<PhaseWaitOp>(op);
    if (wait && wait.getPhases() == keys.wait.getPhases())
      previousWait = wait;
  }
  // One stage is held while the next one is waited for, and another one should be under way.
  return previousWait && previousLeave && previousWait.getSlot() == previousLeave.getSlot() &&
         keys.wait.getPhases().getType().getStages() > 2;
}

/// The exponentials of the scores, which read them last.
bool ScoreOverlap::findWeights() {
  Value scores = firstWait.getResult(0);
  for (Operation *user : scores.getUsers())
    if (auto weight = dyn_cast<ScaledExpDiffOp>(user); weight && weight.getA() == scores)
      weights = weight;
  return weights && weights->getBlock() == loop.getBody() && weights->isBeforeInBlock(secondWait) &&
         llvm::all_of(scores.getUsers(), [&](Operation *user) {
           return user == weights ||
                  (user->getBlock() == loop.getBody() && user->isBeforeInBlock(weights));
         });
}

/// Nothing else is asynchronous in the loop, nor under a branch.
bool ScoreOverlap::isPlain() {
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool isKnown = &op == first || &op == second || &op == firstWait || &op == secondWait ||
                   &op == keys.wait || &op == values.wait || &op == keys.leave ||
                   &op == values.leave;
    if (!isKnown && (op.getNumRegions() > 0 || !isMemoryEffectFree(&op)))
      return false;
  }
  return true;
}

/// Do the exponentials take the longer time? A warp's take 8 cycles for each of a thread's scores,
/// and the products of 8-bit floats of a multiprocessor one for 64 terms of a warpgroup's row of
/// sums. Where products are longer they fill the matrix unit, and turns leave it idle.
bool ScoreOverlap::isLongerThanProducts() {
  constexpr int64_t cyclesOfExponential = 8, termsOfCycle = 64;
  auto scores = cast<RankedTensorType>(first.getType()),
       sum = cast<RankedTensorType>(second.getType());
  int64_t keys = scores.getDimSize(1), columns = sum.getDimSize(1);
  int64_t inner = cast<SharedType>(first.getA().getType()).getShape()[1];
  return keys * (inner + columns) <=
         termsOfCycle * cyclesOfExponential * registersOfTile(first.getType());
}

bool ScoreOverlap::fits() {
  int64_t sum = 2 * registersOfTile(first.getType()) + registersOfTile(second.getType()) +
                registersOfTile(second.getA().getType());
  return sum + kOtherRegisters <= registers;
}

bool ScoreOverlap::analyse() {
  SmallVector<WarpgroupDotOp> dots(loop.getBody()->getOps<WarpgroupDotOp>());
  if (dots.size() != 2)
    return false;
  first = dots[0], second = dots[1];
  firstWait = findWait(first, 1), secondWait = findWait(second, 0);
  bool isChain = firstWait && secondWait && second->isBeforeInBlock(firstWait) &&
                 firstWait->isBeforeInBlock(secondWait) && !isPromoted(first) &&
                 !isPromoted(second) && isa<SharedType>(first.getA().getType()) &&
                 loop.isDefinedOutsideOfLoop(first.getA()) && !first.getAccumulate() &&
                 matchPattern(first.getAcc(), m_AnyZeroFloat());
  auto carried = isChain ? dyn_cast<BlockArgument>(second.getA()) : BlockArgument();
  if (!carried || carried.getOwner() != loop.getBody() ||
      !isByteFloat(getElementTypeOrSelf(carried.getType())))
    return false;
  return findOperand(first, keys) && findOperand(second, values) && findPrevious() &&
         findWeights() && isPlain() && isLongerThanProducts() && fits();
}

/// What `argument` of the loop will be in the next step: positions follow from numbers alone.
Value ScoreOverlap::following(unsigned argument, IRMapping &mapping) {
  Value value = loop.getBody()->getTerminator()->getOperand(argument);
  llvm::SetVector<Operation *> needed;
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (op && op->getBlock() == loop.getBody() && !mapping.contains(op->getResult(0)) &&
        needed.insert(op))
      llvm::append_range(work, op->getOperands());
  }
  for (Operation &op : *loop.getBody())
    if (needed.contains(&op))
      builder.clone(op, mapping);
  return mapping.lookupOrDefault(value);
}

/// A first product in the registers of `into`, or in some of its own.
Value ScoreOverlap::createScores(Value slot, Value into) {
  Location loc = first.getLoc();
  Value stage = StageOp::create(builder, loc, keys.stage.getType(), keys.stage.getSource(), slot);
  Value never = into ? arith::ConstantIntOp::create(builder, loc, 0, 1) : Value();
  return WarpgroupDotOp::create(builder, loc, first.getType(), first.getA(), stage,
                                into ? into : first.getAcc(), never, first.getPrecision());
}

/// The sum is there: its stage is left.
void ScoreOverlap::waitForSum(IRMapping &mapping) {
  Value product = mapping.lookup(second.getResult());
  auto wait = WarpgroupWaitOp::create(builder, secondWait.getLoc(), product, 1);
  mapping.map(secondWait.getResult(0), wait.getResult(0));
  builder.clone(*values.leave, mapping);
}

/// Waits for the stage of the next step's first product and returns where it is.
Value ScoreOverlap::waitForNext(IRMapping &mapping) {
  Location loc = keys.wait.getLoc();
  Value at = mapping.lookup(loop.getInductionVar());
  Value next = arith::AddIOp::create(builder, loc, at, loop.getStep());
  Value isMore =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, next, loop.getUpperBound());
  auto ahead = [&](unsigned argument) -> Value {
    Value here = mapping.lookup(loop.getRegionIterArg(argument));
    return arith::SelectOp::create(builder, loc, isMore, following(argument, mapping), here);
  };
  Value slot = ahead(keys.slot);
  PhaseWaitOp::create(builder, loc, keys.wait.getPhases(), slot, ahead(keys.parity));
  return slot;
}

/// In place of the weights: the next step's first product, then the weights of this one.
Value ScoreOverlap::beginNext(IRMapping &mapping, Value slot, Value scores) {
  Location loc = weights.getLoc();
  Value exponent = ScaledExponentOp::create(
      builder, loc, weights.getType(), scores, mapping.lookupOrDefault(weights.getB()),
      mapping.lookupOrDefault(weights.getScale()), weights.getPower());
  Value held = HoldOp::create(builder, loc, exponent.getType(), exponent);
  Value next = createScores(slot, scores);
  // The second product of this step's weights follows in any case, if not in the loop.
  Value valuesSlot = following(values.slot, mapping), parity = following(values.parity, mapping);
  PhaseWaitOp::create(builder, loc, values.wait.getPhases(), valuesSlot, parity);
  waitForSum(mapping);
  auto weight = math::Exp2Op::create(builder, loc, held);
  addMode(weight, MathMode::Approx);
  mapping.map(weights.getResult(), weight);
  return next;
}

/// A step whose first product is in flight, and that leaves the stage at `before`; returns the next
/// one's.
Value ScoreOverlap::cloneStep(IRMapping &mapping, Value inFlight, Value before) {
  Value next, slot;
  auto wait = WarpgroupWaitOp::create(builder, firstWait.getLoc(), inFlight, 0);
  Value scores = wait.getResult(0);
  mapping.map(firstWait.getResult(0), scores);
  PhaseArriveOp::create(builder, keys.leave.getLoc(), keys.leave.getPhases(), before,
                        keys.leave.getCluster());
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool isThere = op.getNumResults() > 0 && mapping.contains(op.getResult(0));
    bool isMoved = &op == first || &op == keys.wait || &op == keys.stage || &op == keys.leave ||
                   &op == values.wait || &op == values.leave;
    if (&op == weights)
      next = beginNext(mapping, slot, scores);
    else if (!isThere && !isMoved)
      builder.clone(op, mapping);
    // Here ptxas moves maxima before the wait, and lanes do not meet until all products have begun.
    if (&op == second)
      slot = waitForNext(mapping);
  }
  return next;
}

void ScoreOverlap::apply() {
  Location loc = loop.getLoc();
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound(), step = loop.getStep();
  ValueRange inits = loop.getInitArgs();
  Value isAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lower, upper);
  Value slot =
      arith::SelectOp::create(builder, loc, isAny, inits[keys.slot], previousWait.getSlot());
  Value parity =
      arith::SelectOp::create(builder, loc, isAny, inits[keys.parity], previousWait.getParity());
  SmallVector<Value> carried(inits);
  carried.push_back(previousLeave.getSlot());
  PhaseWaitOp::create(builder, loc, keys.wait.getPhases(), slot, parity);
  carried.push_back(createScores(slot, Value()));
  PhaseWaitOp::create(builder, loc, values.wait.getPhases(), inits[values.slot],
                      inits[values.parity]);
  auto rotated = scf::ForOp::create(builder, loc, lower, upper, step, carried);
  builder.setInsertionPointToStart(rotated.getBody());
  ValueRange arguments = rotated.getRegionIterArgs();
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), rotated.getInductionVar());
  mapping.map(ValueRange(loop.getRegionIterArgs()), arguments.drop_back(2));
  Value next = cloneStep(mapping, arguments.back(), arguments.drop_back().back());
  SmallVector<Value> yields;
  for (Value value : loop.getBody()->getTerminator()->getOperands())
    yields.push_back(mapping.lookupOrDefault(value));
  yields.push_back(arguments[keys.slot]);
  yields.push_back(next);
  scf::YieldOp::create(builder, loc, yields);
  builder.setInsertionPointAfter(rotated);
  ValueRange results = rotated.getResults();
  WarpgroupWaitOp::create(builder, loc, results.back(), 0);
  PhaseArriveOp::create(builder, loc, keys.leave.getPhases(), results.drop_back().back(),
                        keys.leave.getCluster());
  previousLeave.erase();
  loop.replaceAllUsesWith(results.drop_back(2));
  loop.erase();
}

namespace {

struct OverlapScores : tk::impl::OverlapScoresBase<OverlapScores> {
  void runOnOperation() override {
    SmallVector<std::pair<scf::ForOp, int64_t>> loops;
    getOperation().walk([&](WarpRolesOp roles) {
      int64_t registers = roles.getConsumerRegisters().value_or(0);
      roles.getConsumer().walk([&](scf::ForOp loop) { loops.emplace_back(loop, registers); });
    });
    for (auto [loop, registers] : loops) {
      ScoreOverlap overlap(loop, registers);
      if (!overlap.analyse()) {
        decline(loop, "tk-overlap-scores", "no product of 8-bit numerators stands in the loop");
        continue;
      }
      overlap.apply();
      ++numLoops;
    }
  }
};

} // namespace
