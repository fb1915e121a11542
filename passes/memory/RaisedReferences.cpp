//===- RaisedReferences.cpp - references of weights that are at least 0 ---===//
#include "passes/memory/RaisedReferences.h"

#include "passes/memory/Branches.h"

#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The loop whose results `loop` goes on with, in the same order, in steps of the same length.
bool ReferenceRaising::findMasked() {
  masked = loop.getInitArgs().empty() ? scf::ForOp()
                                      : loop.getInitArgs().front().getDefiningOp<scf::ForOp>();
  return masked && masked->getBlock() == loop->getBlock() &&
         isEqualConstantIntOrValue(masked.getStep(), loop.getStep()) &&
         llvm::equal(masked.getResults(), loop.getInitArgs());
}

/// The factor of the scores that a weight is of; null if it is 1, nothing if `op` is no weight.
static std::optional<Value> scaleOf(Operation *op) {
  if (auto scaled = dyn_cast<ScaledExpDiffOp>(op))
    return scaled.getScale();
  return isa<ExpDiffOp>(op) ? std::optional<Value>(Value()) : std::nullopt;
}

/// What takes weights under nothing to those under `reference`: a step that is the first one has
/// it.
static Operation *factorUnder(Value reference) {
  for (Operation *user : reference.getUsers())
    if (user->hasAttr(rescaleAttrName) && scaleOf(user) && user->getOperand(1) == reference)
      return user;
  return nullptr;
}

/// What a running maximum was before this step; null if it is none, or the first step's.
static Value maximumBefore(Value reference) {
  auto joined = reference.getDefiningOp<arith::MaximumFOp>();
  if (!joined)
    return {};
  bool isNewFirst = joined.getLhs().getDefiningOp<gpu::ReduceOp>() != nullptr;
  Value before = isNewFirst ? joined.getRhs() : joined.getLhs();
  return matchPattern(before, m_Constant()) ? Value() : before;
}

/// What result `number` of a branch has grown from, whichever way is taken; null if there is no
/// such.
static Value commonBefore(scf::IfOp branch, unsigned number) {
  Value before = maximumBefore(branch.thenYield().getOperand(number));
  bool isCommon = before && before == branch.elseYield().getOperand(number) &&
                  !branch->isAncestor(before.getParentRegion()->getParentOp());
  return isCommon ? before : Value();
}

/// Finds the references that the tiles' steps begin with.
bool ReferenceRaising::findFirst() {
  WalkResult result = tiles.walk([&](gpu::ReduceOp reduce) {
    if (!reduce.getFreeReference())
      return WalkResult::advance();
    Value reference = reduce.getResult();
    if (auto joined = reduce->hasOneUse() ? dyn_cast<arith::MaximumFOp>(*reduce->user_begin())
                                          : arith::MaximumFOp())
      reference = joined.getResult();
    if (maximumBefore(reference))
      return WalkResult::advance();
    first.push_back(reference);
    Operation *factor = factorUnder(reference);
    std::optional<Value> scale = factor ? scaleOf(factor) : std::nullopt;
    auto spread = scale && *scale ? scale->getDefiningOp<BroadcastOp>() : BroadcastOp();
    bool isOutside =
        spread && !tiles->isAncestor(spread.getSource().getParentRegion()->getParentOp());
    return scale && (!*scale || isOutside) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted() && !first.empty();
}

/// Is what the tile before hands on as `argument` there where its threads meet?
bool ReferenceRaising::isKnownAtMeeting(BlockArgument argument) {
  if (!meeting || argument.getOwner() != tiles.getBody() || argument == tiles.getInductionVar())
    return false;
  Operation *op = tiles.getYieldedValues()[argument.getArgNumber() - 1].getDefiningOp();
  return op && op->getBlock() == meeting->getBlock() && op->isBeforeInBlock(meeting);
}

/// Can it be said of the rows' references? Finds which of them the tile before hands on.
bool ReferenceRaising::canAnswer(Value reference) {
  if (auto argument = dyn_cast<BlockArgument>(reference)) {
    if (carried || !isKnownAtMeeting(argument))
      return false;
    carried = argument;
    return true;
  }
  if (Value before = maximumBefore(reference))
    return canAnswer(before);
  unsigned number = cast<OpResult>(reference).getResultNumber();
  if (auto branch = reference.getDefiningOp<scf::IfOp>()) {
    if (Value before = commonBefore(branch, number))
      return canAnswer(before);
    return canAnswer(branch.thenYield().getOperand(number)) &&
           canAnswer(branch.elseYield().getOperand(number));
  }
  return llvm::is_contained(first, reference);
}

bool ReferenceRaising::analyse() {
  tiles = loop->getParentOfType<scf::ForOp>();
  if (!tiles || maxima.size() != 1 || !maxima.front().first.getFreeReference() || !findMasked())
    return false;
  for (auto barrier : tiles.getBody()->getOps<BarrierOp>())
    if (barrier.getWarpgroup())
      meeting = barrier;
  // Another meeting in each tile would cost more than integers bring.
  return findFirst() && canAnswer(masked.getInitArgs()[maxima.front().second]) && carried;
}

/// Raises a first step's reference, in all its uses.
void ReferenceRaising::raise(Value reference) {
  OpBuilder builder(reference.getContext());
  builder.setInsertionPointAfterValue(reference);
  Location loc = reference.getLoc();
  Type type = reference.getType();
  Value scale = *scaleOf(factorUnder(reference));
  if (scale)
    scale = BroadcastOp::create(builder, loc, type, scale.getDefiningOp<BroadcastOp>().getSource(),
                                ArrayRef<int64_t>());
  else
    scale = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(cast<ShapedType>(type), builder.getF32FloatAttr(1)));
  auto raised = RaisedReferenceOp::create(builder, loc, type, reference, scale);
  reference.replaceAllUsesExcept(raised, raised);
}

/// The answer of the tile before, where its threads met, of what it hands on.
Value ReferenceRaising::answerOfNext() {
  unsigned number = carried.getArgNumber() - 1;
  Location loc = meeting.getLoc();
  OpBuilder builder(meeting);
  Value ofNext = NoneNegativeOp::create(builder, loc, tiles.getYieldedValues()[number]);
  meeting.erase();
  IRRewriter rewriter(tiles);
  Value none = arith::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(false));
  tiles = cast<scf::ForOp>(*tiles.replaceWithAdditionalYields(
      rewriter, none, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) -> SmallVector<Value> {
        return {ofNext};
      }));
  return tiles.getRegionIterArgs().back();
}

Value ReferenceRaising::answer(Value reference) {
  if (reference == carried)
    return answerOfNext();
  if (Value before = maximumBefore(reference))
    return answer(before);
  unsigned number = cast<OpResult>(reference).getResultNumber();
  auto branch = reference.getDefiningOp<scf::IfOp>();
  if (!branch) {
    OpBuilder builder(reference.getContext());
    builder.setInsertionPointAfterValue(reference);
    return NoneNegativeOp::create(builder, reference.getLoc(), reference);
  }
  if (Value before = commonBefore(branch, number))
    return answer(before);
  Value ofThen = answer(branch.thenYield().getOperand(number)),
        ofElse = answer(branch.elseYield().getOperand(number));
  return addResult(branch, ofThen, ofElse);
}

void ReferenceRaising::apply() {
  for (Value reference : first)
    raise(reference);
  auto [reduce, number] = maxima.front();
  reduce.setAsIntegers(true);
  Value holds = answer(masked.getInitArgs()[number]);
  OpBuilder builder(masked);
  Location loc = loop.getLoc();
  Value end = loop.getUpperBound();
  masked.setUpperBound(arith::SelectOp::create(builder, loc, holds, masked.getUpperBound(), end));
  builder.setInsertionPoint(loop);
  loop.setLowerBound(arith::SelectOp::create(builder, loc, holds, loop.getLowerBound(), end));
}
