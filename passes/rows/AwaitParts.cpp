//===- AwaitParts.cpp - a row is read as its parts come -------------------===//
#include "passes/rows/AwaitParts.h"
#include "passes/layout/TileComponents.h"
#include "passes/layout/TilePieces.h"
#include "passes/machine/limits/Rows.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::await_parts;

/// The only operation of its kind in the function, which stands in its block; null if there is
/// none, or another.
template <typename Op> static Op onlyOne(FuncOp function) {
  Op found;
  bool isOne = true;
  function.walk([&](Op op) {
    isOne &= !found && op->getBlock() == function.getBlock();
    found = op;
  });
  return isOne ? found : Op();
}

/// The first read of all that `copy` brings, behind `wait`.
static PrivateLoadOp firstRead(CopyPrivateOp copy, AsyncWaitOp wait) {
  PrivateLoadOp first;
  for (Operation *user : copy.getTarget().getUsers()) {
    auto load = dyn_cast<PrivateLoadOp>(user);
    if (user != copy && (!load || load->getBlock() != wait->getBlock()))
      return {};
    if (load && (!first || load->isBeforeInBlock(first)))
      first = load;
  }
  return first && !first.getOffsets() && wait->isBeforeInBlock(first) ? first : PrivateLoadOp();
}

/// Begins the copy of each part of what `copy` brings, as a group.
static void copyParts(CopyPrivateOp copy, int64_t length) {
  OpBuilder builder(copy);
  for (int64_t part = 0; part < numParts; ++part) {
    auto brought = cast<CopyPrivateOp>(builder.clone(*copy));
    builder.setInsertionPoint(brought);
    SmallVector<Value> operands(copy->getOperands());
    for (Value &operand : operands)
      if (isTile(operand))
        operand =
            TilePieces(operand, copy.getOperation()).build(builder, operand, part * length, length);
    brought->setOperands(operands);
    brought.setOffsets(part * length);
    brought.setExtents(length);
    builder.setInsertionPointAfter(brought);
    AsyncCommitOp::create(builder, copy.getLoc());
  }
}

/// Reads the parts of what `load` reads as they come.
static void readParts(PrivateLoadOp load, RankedTensorType part) {
  OpBuilder builder(load);
  SmallVector<Value> read;
  for (int64_t number = 0; number < numParts; ++number) {
    AsyncWaitOp::create(builder, load.getLoc(), numParts - 1 - number);
    auto piece =
        PrivateLoadOp::create(builder, load.getLoc(), part, load.getSource(), load.getStage());
    piece.setOffsets(number * part.getDimSize(0));
    read.push_back(piece.getResult());
  }
  load.replaceAllUsesWith(JoinOp::create(builder, load.getLoc(), load.getType(), read).getResult());
  load.erase();
}

unsigned tk::awaitParts(FuncOp function) {
  auto copy = onlyOne<CopyPrivateOp>(function);
  auto commit = onlyOne<AsyncCommitOp>(function);
  auto wait = onlyOne<AsyncWaitOp>(function);
  if (!copy || !commit || !wait || wait.getPending() != 0 || copy.getOffsets() ||
      !copy->isBeforeInBlock(commit) || !commit->isBeforeInBlock(wait) ||
      function.getBlockWarps() * 32 < leastThreads)
    return 0;
  PrivateType memory = copy.getTarget().getType();
  RankedTensorType tile = memory.getTile();
  PrivateLoadOp first = firstRead(copy, wait);
  if (!first || memory.getStages() != 1 || tile.getRank() != 1)
    return 0;
  int64_t length = tile.getDimSize(0) / numParts;
  LayoutAttr layout = partLayout(getLayout(tile), length);
  if (!layout || int64_t(layout.getNumRegisters()) < memory.getVector())
    return 0;
  copyParts(copy, length);
  readParts(first, RankedTensorType::get(length, tile.getElementType(), layout));
  copy.erase();
  commit.erase();
  wait.erase();
  return numParts;
}
