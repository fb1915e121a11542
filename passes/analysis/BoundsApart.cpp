//===- BoundsApart.cpp - accesses in statements of their own --------------===//
#include "passes/analysis/BoundsApart.h"

using namespace mlir;
using namespace tk;

bool tk::isInBoundsApart(Operation *op, Dependence &onOthers) {
  WalkResult result = op->walk([&](LoadOp load) {
    bool isSafe = load.getPad() || llvm::all_of(load.getIndices(), [&](Value index) {
                    return !getIterationIndices(index).empty() && !onOthers.on(index);
                  });
    return isSafe ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}
