//===- JoinedScores.cpp - scores of a window's two boundary tiles ---------===//
//
// The part of tk-join-ends (JoinEnds.cpp) that computes one tile of scores for a window's last and
// first iteration: three halves, two of which are mixed by where each row ends.
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/JoinEnds.h"

#include "dialects/tkgpu/TkGpuLayout.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Half of the rows of a stage, from `from` on.
Value EndJoiner::createHalf(RingPlace place, Value slot, Value from) {
  auto type = SharedType(place.stage.getType()).withRows(rows / 2);
  return StageOp::create(builder, place.stage.getLoc(), type, place.stage.getSource(), slot, from);
}

/// Whether terms of half a step, from `terms` on, lie before (else: not before) the rows' bounds.
Value EndJoiner::createBelow(Value terms, Value bound, bool isBelow, Type tile) {
  auto shaped = cast<RankedTensorType>(tile);
  Location loc = terms.getLoc();
  LayoutAttr layout = getLayout(shaped);
  auto line = cast<RankedTensorType>(mask.terms.getType());
  auto half = RankedTensorType::get({rows / 2}, line.getElementType(), sliceLayout(layout, 0));
  Value places = arith::AddIOp::create(
      builder, loc, BroadcastOp::create(builder, loc, half, terms, ArrayRef<int64_t>()),
      IotaOp::create(builder, loc, half, IntegerAttr()));
  auto indices = RankedTensorType::get(shaped.getShape(), line.getElementType(), layout);
  Value across = BroadcastOp::create(builder, loc, indices, places, ArrayRef<int64_t>{1});
  Value down = BroadcastOp::create(builder, loc, indices, bound, ArrayRef<int64_t>{0});
  return arith::CmpIOp::create(
      builder, loc, isBelow ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sge, across, down);
}

Value EndJoiner::constant(Location loc, int64_t number) {
  return arith::ConstantIndexOp::create(builder, loc, number);
}

/// `a` for the first warpgroup and `b` for the second one.
Value EndJoiner::ofWarpgroup(Value a, Value b) {
  return OfWarpgroupOp::create(builder, a.getLoc(), builder.getIndexType(), ValueRange{a, b});
}

/// `a` or, if there is a condition and it fails, `b`.
Value EndJoiner::choose(Value condition, Value a, Value b) {
  return condition ? arith::SelectOp::create(builder, a.getLoc(), condition, a, b).getResult() : a;
}

/// Two steps' scores in place of those of one. `isKnown`: the tile's ends are joined in any case.
void EndJoiner::joinOpening(OpeningStep &opening, const StepRange &range, bool isKnown) {
  Location loc = opening.dot.getLoc();
  Value isJoined = isKnown ? Value() : range.isJoined;
  builder.setInsertionPoint(opening.dot);
  RingPlace &place = opening.keys;
  RingPosition at = {place.stage.getStage(), place.enter.getParity()};
  RingPosition second = advance(loc, at), third = advance(loc, at, 2);
  RingPosition other = {choose(isJoined, second.slot, at.slot),
                        choose(isJoined, second.parity, at.parity)};
  createEnter(place, other);
  Value begin = constant(loc, 0);
  Value middle = constant(loc, rows / 2);
  Value fromEnds = ofWarpgroup(begin, choose(isJoined, middle, begin));
  Value fromWhole = ofWarpgroup(middle, choose(isJoined, begin, middle));
  auto whole = cast<RankedTensorType>(opening.dot.getType());
  auto function = tiles->getParentOfType<FuncOp>();
  auto half = RankedTensorType::get(
      {rows, rows / 2}, whole.getElementType(),
      warpgroupAccumulatorLayout(whole.getContext(), rows, rows / 2, function.getNumWarps()));
  Value zeros = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(half));
  SmallVector<Value> stages = {createHalf(place, at.slot, fromEnds),
                               createHalf(place, other.slot, fromEnds),
                               createHalf(place, ofWarpgroup(other.slot, at.slot), fromWhole)};
  SmallVector<Value> dots;
  for (Value stage : stages)
    dots.push_back(WarpgroupDotOp::create(builder, loc, half, opening.dot.getA(), stage, zeros,
                                          /*accumulate=*/Value(), opening.dot.getPrecision()));
  builder.setInsertionPoint(opening.wait);
  auto wait = WarpgroupWaitOp::create(builder, opening.wait.getLoc(), dots,
                                      static_cast<int64_t>(opening.wait.getPending()));
  // Both stages are left, and the ring goes on behind them.
  builder.setInsertionPointAfter(place.leave);
  if (isKnown) {
    createLeave(place, second);
  } else {
    auto leaves = scf::IfOp::create(builder, loc, isJoined, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(leaves.thenBlock());
    createLeave(place, second);
  }
  builder.setInsertionPoint(place.nextSlot);
  opening.keys.nextSlot.replaceAllUsesWith(choose(isJoined, third.slot, second.slot));
  opening.keys.nextParity.replaceAllUsesWith(choose(isJoined, third.parity, second.parity));
  // What is below the end of a row is of the last step, and what is beyond it of the first one.
  RowMask &rowMask = opening.mask;
  builder.setInsertionPoint(rowMask.branch);
  Value none = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(half, APFloat::getInf(APFloat::IEEEsingle(), /*Negative=*/true)));
  Value terms = arith::AddIOp::create(builder, loc, range.last, fromEnds);
  Value below = createBelow(terms, rowMask.upper, /*isBelow=*/true, half);
  Value beyond = wait.getResult(1), all = wait.getResult(2);
  if (!isKnown) {
    auto isTerm = [&](Value from, Value isBelow) -> Value {
      return arith::AndIOp::create(builder, loc, isBelow,
                                   createBelow(from, rowMask.lower, /*isBelow=*/false, half));
    };
    below = isTerm(terms, below);
    beyond = choose(isJoined, beyond, none);
    Value from = arith::AddIOp::create(
        builder, loc, ofWarpgroup(choose(isJoined, range.first, range.last), range.last),
        fromWhole);
    all = choose(isTerm(from, createBelow(from, rowMask.upper, /*isBelow=*/true, half)), all, none);
  }
  Value ends = choose(below, wait.getResult(0), beyond);
  auto joined = JoinOp::create(builder, loc, whole, ValueRange{ends, all});
  joined.setAxis(1);
  rowMask.branch.getResult(0).replaceAllUsesWith(joined);
  rowMask.branch.erase();
  opening.wait.erase();
  opening.dot.erase();
}

/// Has `value` computed before the branch at the end of a tile.
Value EndJoiner::hoistScalar(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != closing.thenBlock())
    return value;
  for (Value operand : op->getOperands())
    hoistScalar(operand);
  op->moveBefore(closing);
  return value;
}

/// The next tile begins under this one's end if its own ends are joined.
StepRange EndJoiner::joinNext() {
  RowRange ofRows;
  ofRows.lower = next.mask.beforeLower.getLhs();
  SmallVector<Value> work = {closing.getCondition()};
  while (!work.empty() && !ofRows.upperMost) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (auto both = dyn_cast_or_null<arith::AndIOp>(op))
      llvm::append_range(work, both->getOperands());
    if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
        compare && compare.getLhs() == ofRows.lower &&
        compare.getPredicate() == arith::CmpIPredicate::slt)
      ofRows.upperMost = compare.getRhs();
  }
  ofRows.lowerMost = hoistScalar(next.mask.beforeLower.getRhs());
  ofRows.upper = hoistScalar(next.mask.behindUpper.getRhs());
  builder.setInsertionPoint(closing);
  StepRange range = createRange(closing.getLoc(), ofRows);
  closing.getConditionMutable().assign(
      arith::AndIOp::create(builder, closing.getLoc(), closing.getCondition(), range.isJoined));
  joinOpening(next, range, /*isKnown=*/true);
  return range;
}
