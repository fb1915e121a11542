//===- MovedOperations.cpp - what moves with an operation -----------------===//
#include "passes/pipeline/MovedOperations.h"

#include "passes/layout/TileComponents.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tk;

bool tk::collectNeeds(Operation *op, Operation *place, llvm::SetVector<Operation *> &moved,
                      MayMove mayMove) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    Operation *def = operand.getDefiningOp();
    return !def || collectMoved(def, place, moved, mayMove);
  });
}

bool tk::collectMoved(Operation *op, Operation *place, llvm::SetVector<Operation *> &moved,
                      MayMove mayMove) {
  if (op->getBlock() != place->getBlock() || op->isBeforeInBlock(place) || moved.contains(op))
    return true;
  if (isReduction(op) || op->getNumRegions() > 0 || !isMemoryEffectFree(op) || !mayMove(op) ||
      !collectNeeds(op, place, moved, mayMove))
    return false;
  moved.insert(op);
  return true;
}
