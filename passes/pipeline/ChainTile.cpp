//===- ChainTile.cpp - a tile of chained products -------------------------===//
#include "passes/pipeline/ChainTile.h"

#include "passes/pipeline/ProductWaits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

void tk::visitOperands(Operation *op, llvm::function_ref<void(Value)> visit) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      visit(operand);
  });
}

static int64_t countElements(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumElements() : 1;
}

bool ChainTile::findSteps() {
  for (scf::IfOp candidate : tiles.getBody()->getOps<scf::IfOp>()) {
    if (candidate.getElseRegion().empty())
      continue;
    for (scf::ForOp loop : candidate.thenBlock()->getOps<scf::ForOp>()) {
      if (llvm::range_size(loop.getOps<WarpgroupDotOp>()) != 2)
        continue;
      if (steps)
        return false;
      branch = candidate, steps = loop;
    }
  }
  if (!steps)
    return false;
  SmallVector<WarpgroupDotOp> dots(branch.thenBlock()->getOps<WarpgroupDotOp>());
  if (dots.size() != 2)
    return false;
  first = dots[0], last = dots[1];
  firstWait = findPlainWait(first), lastWait = findPlainWait(last);
  return firstWait && lastWait && first->isBeforeInBlock(steps) && steps->isBeforeInBlock(last) &&
         firstWait->isBeforeInBlock(steps);
}

/// The parts of a tile's program, none of which may have effects but those of its stages.
bool ChainTile::collectParts() {
  for (Operation &op : *tiles.getBody()) {
    if (isHead(&op) && !isMemoryEffectFree(&op) && !isa<PhaseWaitOp>(op))
      return false;
    if (!isHead(&op) && &op != branch && isa<PhaseWaitOp, PhaseArriveOp, scf::ForOp>(op))
      return false;
  }
  bool areSteps = false;
  for (Operation &op : branch.thenBlock()->without_terminator()) {
    if (&op == steps) {
      areSteps = true;
      continue;
    }
    if (!isMemoryEffectFree(&op) &&
        !isa<PhaseWaitOp, PhaseArriveOp, WarpgroupDotOp, WarpgroupWaitOp>(op))
      return false;
    // The first factor's stage is left before the last product.
    bool isLeft = areSteps && closing.empty() && isa<PhaseArriveOp>(op);
    if (!isLeft)
      (areSteps ? closing : opening).push_back(&op);
  }
  // What comes of the last product is the tile's result, or how its ring goes on.
  for (Operation *op : closing)
    for (Operation *user : op->getUsers())
      if (user != thenYield() && user->getBlock() != branch.thenBlock())
        return false;
  return true;
}

/// How the rings of what the opening reads go on from tile to tile.
bool ChainTile::collectPositions() {
  auto yield = cast<scf::YieldOp>(tiles.getBody()->getTerminator());
  for (auto [init, value] : llvm::enumerate(steps.getInitArgs())) {
    Operation *op = value.getDefiningOp();
    if (!op || !isOpening(op) || isa<RankedTensorType>(value.getType()))
      continue;
    Value result = steps.getResult(init);
    auto inBranch = llvm::find(thenYield().getOperands(), result);
    if (inBranch == thenYield().getOperands().end())
      return false;
    unsigned number = inBranch - thenYield().getOperands().begin();
    auto inTiles = llvm::find(yield.getOperands(), branch.getResult(number));
    if (inTiles == yield.getOperands().end() || !branch.getResult(number).hasOneUse())
      return false;
    unsigned tile = inTiles - yield.getOperands().begin();
    // Nothing else goes by where the ring was.
    for (Operation *user : tiles.getRegionIterArg(tile).getUsers())
      if (!isOpening(branch.thenBlock()->findAncestorOpInBlock(*user)) &&
          user != branch.elseYield())
        return false;
    for (Operation *user : value.getUsers())
      if (!isOpening(user) && user != steps)
        return false;
    positions.push_back({unsigned(init), tile, number});
  }
  return true;
}

/// Can `value`, of the opening, be computed from fewer than `elements` of what it leaves?
bool ChainTile::isRemade(Value value, int64_t elements) {
  Operation *op = value.getDefiningOp();
  if (op->getNumRegions() > 0 || !isMemoryEffectFree(op) || isa<StageOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    if (auto argument = dyn_cast<BlockArgument>(operand))
      return argument.getOwner() != tiles.getBody() || argument == tiles.getInductionVar();
    return !isOpening(operand.getDefiningOp()) || countElements(operand) < elements ||
           isRemade(operand, elements);
  });
}

/// Has `value` carried if it is of the opening, or what it is computed from.
bool ChainTile::need(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isOpening(op) || state.contains(value) || remade.contains(op))
    return true;
  if (isRemade(value, countElements(value))) {
    remade.insert(op);
    return llvm::all_of(op->getOperands(), [&](Value operand) { return need(operand); });
  }
  return isa<RankedTensorType>(value.getType()) && state.insert(value);
}

bool ChainTile::collectState() {
  for (Operation *op : opening)
    for (Value result : op->getResults()) {
      bool isPosition = llvm::any_of(positions, [&](const Position &position) {
        return steps.getInitArgs()[position.init] == result;
      });
      bool isLeft = llvm::any_of(result.getUsers(), [&](Operation *user) {
        return !isOpening(branch.thenBlock()->findAncestorOpInBlock(*user));
      });
      if (isLeft && !isPosition && !need(result))
        return false;
    }
  // Weights take the registers of those that the last product reads: they are converted behind it.
  auto weights = dyn_cast<OpResult>(last.getA());
  if (!weights || weights.getOwner() != steps)
    return false;
  Operation *op = steps.getInitArgs()[weights.getResultNumber()].getDefiningOp();
  while (op && isOpening(op) && isa<arith::TruncFOp, ConvertLayoutOp>(op)) {
    conversions.push_back(op);
    op = op->getOperand(0).getDefiningOp();
  }
  return !conversions.empty();
}

bool ChainTile::canAdvance(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !tiles->isProperAncestor(op) || op->isBeforeInBlock(branch))
    return true;
  if (op == branch) {
    Value inside = thenYield().getOperand(cast<OpResult>(value).getResultNumber());
    return !llvm::is_contained(closing, inside.getDefiningOp());
  }
  return op->getBlock() == tiles.getBody() && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return canAdvance(operand); });
}

bool ChainTile::analyse() {
  if (!findSteps() || !collectParts() || !collectPositions() || !collectState())
    return false;
  auto yield = cast<scf::YieldOp>(tiles.getBody()->getTerminator());
  // Arguments that the head and the opening read.
  bool areKnown = true;
  auto visit = [&](Value operand) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (argument && argument.getOwner() == tiles.getBody() && argument != tiles.getInductionVar())
      areKnown &= canAdvance(yield.getOperand(argument.getArgNumber() - 1));
  };
  for (Operation &op : *tiles.getBody())
    if (isHead(&op))
      visitOperands(&op, visit);
  for (Operation *op : opening)
    visitOperands(op, visit);
  return areKnown;
}
