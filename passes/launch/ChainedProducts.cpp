//===- ChainedProducts.cpp - products that take what others compute -------===//
#include "passes/launch/ChainedProducts.h"

#include "dialects/tkgpu/TkGpuPlan.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

bool tk::giveAllRegisters(FuncOp function) {
  constexpr size_t leastSums = 3;
  auto schedule = getTiles(function);
  if (function.getMinBlocks() || !schedule || schedule.getReduce().size() < leastSums)
    return false;
  const bool isChain = function
                           ->walk([](DotOp dot) {
                             const bool isOnCores =
                                 getElementTypeOrSelf(dot.getA().getType()).isF32() &&
                                 dot.getPrecision() != Precision::TF32;
                             return isOnCores ? WalkResult::interrupt() : WalkResult::advance();
                           })
                           .wasInterrupted();
  if (isChain)
    function.setMinBlocks(1);
  return isChain;
}
