//===- FusionPipeline.cpp - the tensor-level stage of compilation ---------===//
#include "passes/fusion/FusionPipeline.h"

#include "passes/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace tk {

void buildFusionPipeline(OpPassManager &manager, const FusionOptions &options) {
  auto add = [&](std::unique_ptr<Pass> pass) {
    if (!options.disabled.contains(pass->getArgument()))
      manager.addPass(std::move(pass));
  };
  add(createCollapseAxes());
  add(createSimplify());
  add(createDivideIndices());
  add(createSeparateReductions({options.maxExtra}));
  add(createFuseProducers({options.maxExtra}));
  // Divisions by a softmax's sum leave the products' sums, which so become joinable.
  add(createSimplify());
  // Before statements are joined, so that partial results over equal chunks are joined too.
  add(createSplitReductions({options.chunk}));
  add(createMergeComputes());
  add(createSimplify());
  add(createGroupRows());
  // Before reductions are joined: their ranges must be equal, and are once all are restricted.
  add(createRestrictRanges());
  add(createSimplify());
  add(createOnlineReductions());
  add(createSimplify());
}

void addMergingPasses(OpPassManager &manager) {
  manager.addPass(createSimplify());
  manager.addPass(createMergeComputes());
  manager.addPass(createSimplify());
  manager.addPass(createRestrictRanges());
  manager.addPass(createSimplify());
  manager.addPass(createOnlineReductions());
  manager.addPass(createSimplify());
}

void registerFusionPipeline() {
  PassPipelineRegistration<>("tk-fusion", "Fuse statements: every tensor-level pass in order",
                             [](OpPassManager &manager) { buildFusionPipeline(manager); });
}

} // namespace tk
