//===- OverlapTiles.cpp - begin the next tile under the last product ------===//
//
// If a loop's second product runs under the next iteration's work (tk-overlap-chains), the first
// iteration of a tile has no product beside it, and the last product has no arithmetic. This pass
// joins the two, in consumers that loop over tiles:
//
// 1. After the iterations of a tile, the next tile's first product is issued, and then this tile's
//    last one. Only the first is waited for, and the arithmetic on its scores runs under the last
//    one.
// 2. The loop over tiles carries the results of that first iteration, and whether the next tile has
//    iterations. Tiles that follow from fewer elements are computed again.
// 3. A tile whose first iteration has not been computed, such as the first tile, begins by itself.
//
//   for %t {                                      for %t, %have, %p {
//     if any {                                      if any {
//       s = dot %q, %k; wait; p = f(s)                %p0 = if %have { %p } else { s = ...; f(s) }
//       %p1 = for ... { ... }                         %p1 = for ... { ... }
//       o = dot %p1, %v; wait                →        if %t is not the last and any of the next {
//     }                                                 s = dot %q', %k'; o = dot %p1, %v
//     store o                                           wait s; p' = f(s); wait o
//   }                                                 } else { o = dot %p1, %v; wait }
//                                                   }
//                                                   store o
//                                                 }
//
// The stages that the next tile's first loads wait for are released before the last product is
// issued. Warpgroups with loop bounds of their own (tk-bound-warpgroups) are declined: they release
// the others' stages after their results, so that their circular buffers are not yet at the next
// tile.
//
// In other cases, the additional instructions of ptxas cost as much as is gained. The pass
// therefore takes 16-bit numerators, and heads of 256 or more columns. It takes heads of 128
// columns under a causal mask over 8192 or more keys, and in windows without a bias. Windows of 256
// to 1024 keys gain 1.009 to 1.022 on an H200; with a bias they would have 0.96 to 0.98.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/machine/limits/Loops.h"
#include "passes/pipeline/ChainTile.h"
#include "passes/pipeline/StepMasks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_OVERLAPTILES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::overlap_tiles;

namespace {

class TileOverlap : ChainTile {
public:
  explicit TileOverlap(scf::ForOp tiles) : ChainTile(tiles), rewriter(tiles->getContext()) {}

  bool analyse() { return ChainTile::analyse() && doesPay(); }
  void apply();

private:
  bool doesPay();
  Value advance(Value value, IRMapping &here);
  void collectHead(Operation *user, llvm::SetVector<Operation *> &needed);
  void cloneHead(const llvm::SetVector<Operation *> &needed, IRMapping &ahead);
  scf::IfOp createEnd();
  void fillNext(scf::IfOp end, IRMapping ahead);
  void createOpening();
  SmallVector<Value> yieldsOfEnd(const IRMapping &mapping);

  IRRewriter rewriter;
  SmallVector<unsigned> endYields; ///< results of the branch of the closing or the next opening
};

} // namespace

/// Are there many steps in some tiles and few in others, by a mask below the diagonal?
static bool isLongBelowDiagonal(scf::ForOp steps) {
  APInt end;
  auto from = steps.getLowerBound().getDefiningOp<arith::AddIOp>();
  auto upper = steps.getUpperBound().getDefiningOp<arith::MinSIOp>();
  return from && matchPattern(from.getLhs(), m_Constant()) && upper &&
         !matchPattern(upper.getLhs(), m_Constant()) &&
         matchPattern(upper.getRhs(), m_ConstantInt(&end)) && end.getSExtValue() >= kLongRange;
}

/// Are ranges bounded on both sides by masks, of products as they are?
static bool isWindow(scf::ForOp steps) {
  StepBounds bounds;
  scf::IfOp mask = findMask(steps, bounds);
  return mask && bounds.areBoth() &&
         mask.elseYield().getOperand(0).getDefiningOp<WarpgroupWaitOp>();
}

bool TileOverlap::doesPay() {
  auto sums = cast<RankedTensorType>(last.getType());
  int64_t columns = sums.getDimSize(1);
  return getElementTypeOrSelf(last.getA()).getIntOrFloatBitWidth() == 16 &&
         !steps.getUpperBound().getDefiningOp<OfWarpgroupOp>() &&
         (columns >= kWideSums ||
          (columns >= kWideSums / 2 && (isLongBelowDiagonal(steps) || isWindow(steps))));
}

/// What `value`, which the loop over tiles yields, will be, before the last product.
Value TileOverlap::advance(Value value, IRMapping &here) {
  Operation *op = value.getDefiningOp();
  if (!op || !tiles->isProperAncestor(op) || op->isBeforeInBlock(branch))
    return value;
  if (op == branch)
    return thenYield().getOperand(cast<OpResult>(value).getResultNumber());
  if (!here.contains(value)) {
    for (Value operand : op->getOperands())
      if (Value known = advance(operand, here); known != operand)
        here.map(operand, known);
    rewriter.clone(*op, here);
  }
  return here.lookup(value);
}

/// The operations of a tile's head that `user` follows from.
void TileOverlap::collectHead(Operation *user, llvm::SetVector<Operation *> &needed) {
  visitOperands(user, [&](Value operand) {
    Operation *op = operand.getDefiningOp();
    if (op && isHead(op) && needed.insert(op))
      collectHead(op, needed);
  });
}

void TileOverlap::cloneHead(const llvm::SetVector<Operation *> &needed, IRMapping &ahead) {
  for (Operation &op : llvm::make_early_inc_range(*tiles.getBody()))
    if (needed.contains(&op) && !(op.getNumResults() > 0 && ahead.contains(op.getResult(0))))
      rewriter.clone(op, ahead);
}

/// What a branch of the tile's end yields of the tile's own results.
SmallVector<Value> TileOverlap::yieldsOfEnd(const IRMapping &mapping) {
  SmallVector<Value> values;
  for (unsigned number : endYields)
    values.push_back(mapping.lookupOrDefault(thenYield().getOperand(number)));
  return values;
}

/// The last product with the next tile's opening, if there is one, and without.
scf::IfOp TileOverlap::createEnd() {
  Location loc = last.getLoc();
  rewriter.setInsertionPoint(closing.front());
  Value next =
      arith::AddIOp::create(rewriter, loc, tiles.getInductionVar(), tiles.getStep()).getResult();
  Value isTile =
      arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, next, tiles.getUpperBound());
  // All that is computed for the next tile is of one that there is.
  Value safe =
      arith::SelectOp::create(rewriter, loc, isTile, next, tiles.getInductionVar()).getResult();
  IRMapping ahead, here;
  ahead.map(tiles.getInductionVar(), safe);
  auto yield = cast<scf::YieldOp>(tiles.getBody()->getTerminator());
  for (auto [argument, value] : llvm::zip_equal(tiles.getRegionIterArgs(), yield.getOperands()))
    if (canAdvance(value))
      ahead.map(argument, advance(value, here));
  llvm::SetVector<Operation *> needed;
  if (Operation *op = branch.getCondition().getDefiningOp(); op && isHead(op)) {
    needed.insert(op);
    collectHead(op, needed);
  }
  cloneHead(needed, ahead);
  Value isNext =
      arith::AndIOp::create(rewriter, loc, isTile, ahead.lookupOrDefault(branch.getCondition()));
  SmallVector<Type> types;
  for (auto [number, value] : llvm::enumerate(thenYield().getOperands())) {
    bool isPosition = llvm::any_of(
        positions, [&](const Position &position) { return position.result == number; });
    if (!isPosition && !llvm::is_contained(closing, value.getDefiningOp()))
      continue;
    endYields.push_back(number);
    types.push_back(value.getType());
  }
  types.push_back(rewriter.getI1Type());
  for (Value value : state)
    types.push_back(value.getType());
  auto end = scf::IfOp::create(rewriter, loc, types, isNext, /*withElseRegion=*/true);
  fillNext(end, std::move(ahead));
  rewriter.setInsertionPointToStart(end.elseBlock());
  IRMapping alone;
  for (Operation *op : closing)
    rewriter.clone(*op, alone);
  SmallVector<Value> values = yieldsOfEnd(alone);
  for (Type type : ArrayRef(types).drop_front(values.size()))
    values.push_back(
        arith::ConstantOp::create(rewriter, loc, cast<TypedAttr>(rewriter.getZeroAttr(type))));
  scf::YieldOp::create(rewriter, loc, values);
  return end;
}

/// The next tile's opening around this one's last product.
void TileOverlap::fillNext(scf::IfOp end, IRMapping ahead) {
  Location loc = last.getLoc();
  rewriter.setInsertionPointToStart(end.thenBlock());
  llvm::SetVector<Operation *> needed;
  for (Operation *op : opening)
    collectHead(op, needed);
  for (Operation &op : *tiles.getBody())
    if (isHead(&op) && isa<PhaseWaitOp>(op)) {
      needed.insert(&op);
      collectHead(&op, needed);
    }
  cloneHead(needed, ahead);
  IRMapping mine;
  bool isOver = false;
  auto lastAt = llvm::find(closing, last.getOperation());
  auto finish = [&] {
    if (std::exchange(isOver, true))
      return;
    for (Operation *op : llvm::make_range(std::next(lastAt), closing.end()))
      rewriter.clone(*op, mine);
  };
  for (Operation *op : opening) {
    if (op == firstWait) {
      for (Operation *begun : llvm::make_range(closing.begin(), std::next(lastAt)))
        rewriter.clone(*begun, mine);
      auto wait = WarpgroupWaitOp::create(rewriter, loc, ahead.lookup(first.getResult()), 1);
      ahead.map(firstWait.getResult(0), wait.getResult(0));
      continue;
    }
    if (op == conversions.back())
      finish();
    rewriter.clone(*op, ahead);
  }
  finish();
  for (const Position &position : positions)
    mine.map(steps.getResult(position.init), ahead.lookup(steps.getInitArgs()[position.init]));
  SmallVector<Value> values = yieldsOfEnd(mine);
  values.push_back(arith::ConstantIntOp::create(rewriter, loc, 1, 1));
  for (Value value : state)
    values.push_back(ahead.lookup(value));
  scf::YieldOp::create(rewriter, loc, values);
}

/// The tile's own opening, unless the tile before has had it.
void TileOverlap::createOpening() {
  Location loc = first.getLoc();
  unsigned carried = tiles.getNumRegionIterArgs() - state.size();
  Value have = tiles.getRegionIterArg(carried - 1);
  SmallVector<Value> there, here;
  for (const Position &position : positions) {
    there.push_back(tiles.getRegionIterArg(position.tile));
    here.push_back(steps.getInitArgs()[position.init]);
  }
  for (auto [number, value] : llvm::enumerate(state)) {
    there.push_back(tiles.getRegionIterArg(carried + number));
    here.push_back(value);
  }
  rewriter.setInsertionPoint(steps);
  auto choice =
      scf::IfOp::create(rewriter, loc, ValueRange(here).getTypes(), have, /*withElseRegion=*/true);
  rewriter.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(rewriter, loc, there);
  rewriter.setInsertionPointToStart(choice.elseBlock());
  auto end = scf::YieldOp::create(rewriter, loc, here);
  for (Operation *op : opening)
    rewriter.moveOpBefore(op, end);
  rewriter.setInsertionPoint(steps);
  IRMapping mapping;
  mapping.map(here, choice.getResults());
  for (Operation *op : opening)
    if (remade.contains(op))
      rewriter.clone(*op, mapping);
  for (Operation *op : opening)
    for (Value result : op->getResults())
      if (mapping.contains(result))
        rewriter.replaceUsesWithIf(result, mapping.lookup(result), [&](OpOperand &use) {
          return !choice.getElseRegion().isAncestor(use.getOwner()->getParentRegion());
        });
}

void TileOverlap::apply() {
  Location loc = tiles.getLoc();
  rewriter.setInsertionPoint(tiles);
  SmallVector<Value> inits = {arith::ConstantIntOp::create(rewriter, loc, 0, 1)};
  for (Value value : state)
    inits.push_back(arith::ConstantOp::create(
        rewriter, loc, cast<TypedAttr>(rewriter.getZeroAttr(value.getType()))));
  scf::IfOp end = createEnd();
  unsigned before = branch.getNumResults(), added = inits.size();
  auto replaceYield = [&](scf::YieldOp yield, ValueRange more, const IRMapping &mapping) {
    SmallVector<Value> values;
    for (Value value : yield.getOperands())
      values.push_back(mapping.lookupOrDefault(value));
    llvm::append_range(values, more);
    rewriter.setInsertionPoint(yield);
    rewriter.replaceOpWithNewOp<scf::YieldOp>(yield, values);
  };
  SmallVector<Value> yields(thenYield().getOperands());
  for (auto [i, number] : llvm::enumerate(endYields))
    yields[number] = end.getResult(i);
  llvm::append_range(yields, end.getResults().take_back(added));
  rewriter.setInsertionPoint(thenYield());
  rewriter.replaceOpWithNewOp<scf::YieldOp>(thenYield(), yields);
  replaceYield(branch.elseYield(), inits, IRMapping());
  for (Operation *op : llvm::reverse(closing))
    rewriter.eraseOp(op);
  rewriter.setInsertionPoint(branch);
  auto wider = scf::IfOp::create(rewriter, branch.getLoc(), ValueRange(yields).getTypes(),
                                 branch.getCondition(), /*withElseRegion=*/true);
  wider.getThenRegion().takeBody(branch.getThenRegion());
  wider.getElseRegion().takeBody(branch.getElseRegion());
  rewriter.replaceOp(branch, wider.getResults().take_front(before));
  auto loop = tiles.replaceWithAdditionalYields(
      rewriter, inits, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
        return SmallVector<Value>(wider.getResults().take_back(added));
      });
  branch = wider;
  tiles = cast<scf::ForOp>(loop->getOperation());
  createOpening();
}

namespace {

struct OverlapTiles : tk::impl::OverlapTilesBase<OverlapTiles> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](WarpRolesOp roles) {
      llvm::append_range(loops, roles.getConsumer().getOps<scf::ForOp>());
    });
    for (scf::ForOp loop : loops) {
      TileOverlap overlap(loop);
      if (!overlap.analyse()) {
        decline(loop, "tk-overlap-tiles",
                "the first products of the next tile depend on this tile, or warpgroups have "
                "bounds of their own");
        continue;
      }
      overlap.apply();
      ++numLoops;
    }
  }
};

} // namespace
