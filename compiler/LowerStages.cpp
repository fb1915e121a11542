//===- LowerStages.cpp - run the pipeline until a kernel fits -------------===//
//
// 1. Run the passes up to the stage that is asked for.
// 2. If the tiles of a launch need more shared memory or more registers than there are, plan the
//    fused kernel again for less, three quarters of the memory each time.
// 3. If no plan fits, fuse the kernel anew with all reductions, scans and products stored.
// 4. If none fits then, the functions that do not fit reduce one element at a time, and at last all
//    of them: slow, but no program is refused.
// StoreByTime.cpp lowers a kernel again whose predicted time is far above the least one.
//
//===----------------------------------------------------------------------===//
#include "compiler/CompiledSource.h"

#include "compiler/BatchInvariance.h"
#include "compiler/Dump.h"
#include "compiler/PassDiagnostics.h"
#include "compiler/StageText.h"
#include "compiler/Stopwatch.h"
#include "dialects/tk/TkInvariance.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/plan/ScheduleLimits.h"
#include "passes/plan/StatementShape.h"
#include "runtime/Environment.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace tk {

/// What tiles are planned for at last, and what part of the room before each time.
static constexpr int64_t leastShared = 32768, lessShared = 3, ofShared = 4;
/// Functions that reduce one element at a time before all of them do.
static constexpr size_t mostSingles = 6;

void CompiledSource::restore(ModuleOp module, ModuleOp from) {
  module.getBodyRegion().takeBody(from.getBodyRegion());
  module->setAttrs(from->getAttrDictionary());
}

Status CompiledSource::lowerToFit(ModuleOp module, Stage to, const Dump &dump, StageSeen seen) {
  auto lowerWithLess = [&]() -> Status {
    if (Status fused = runStages(module, Stage::Tk, Stage::Fused, dump, seen); !fused)
      return fused;
    auto target = module->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    for (int64_t shared = target ? target.getShared() : 0;;) {
      OwningOpRef<ModuleOp> fused = module.clone();
      Status lowered = runStages(module, Stage::Fused, to, dump, seen);
      shared = shared * lessShared / ofShared;
      if (!lowered)
        detail::log_message("planned again: " + lowered.error().message());
      if (lowered || !module->hasAttr(gpu::needsLessAttrName) || shared < leastShared)
        return lowered;
      restore(module, *fused);
      module->setAttr(planningSharedAttrName, Builder(context.get()).getI64IntegerAttr(shared));
    }
  };
  OwningOpRef<ModuleOp> tensors = module.clone();
  Status lowered = lowerWithLess();
  // What is fused must not depend on sizes where results do not.
  if (lowered || !module->hasAttr(gpu::needsLessAttrName) ||
      module->hasAttr(batchInvariantAttrName))
    return lowered;
  restore(module, *tensors);
  module->setAttr(gpu::storesReductionsAttrName, UnitAttr::get(context.get()));
  tensors = module.clone();
  lowered = lowerWithLess();
  if (lowered || !module->hasAttr(gpu::needsLessAttrName))
    return lowered;
  // Reductions of one element at a time fit whatever they are over.
  SmallVector<Attribute> singles;
  while (singles.size() < mostSingles) {
    auto which = module->getAttrOfType<StringAttr>(gpu::needsLessAttrName);
    if (!which || llvm::is_contained(singles, which))
      break;
    singles.push_back(which);
    restore(module, *tensors);
    module->setAttr(gpu::singleTermsAttrName, Builder(context.get()).getArrayAttr(singles));
    tensors = module.clone();
    lowered = runStages(module, Stage::Tk, to, dump, seen);
    if (lowered || !module->hasAttr(gpu::needsLessAttrName))
      return lowered;
  }
  llvm::SaveAndRestore disabled(driver.pipeline.disabled);
  driver.pipeline.disabled.insert("tk-tile");
  restore(module, *tensors);
  return lowerWithLess();
}

Status CompiledSource::runStages(ModuleOp module, Stage from, Stage to, const Dump &dump,
                                 StageSeen seen) {
  PassDiagnostics collect(context.get());
  Stopwatch watch;
  PipelineOptions pipeline = driver.pipeline;
  if (module->hasAttr(batchInvariantAttrName))
    leaveOutSizedSteps(pipeline.disabled);
  for (auto [stage, name] : {std::pair(Stage::Fused, "fused"), std::pair(Stage::Tiled, "tiled"),
                             std::pair(Stage::Gpu, "gpu")}) {
    if (stage > to)
      break;
    if (stage <= from)
      continue;
    if (failed(runPipeline(module, from, stage, pipeline)))
      return passError(collect);
    if (dump.enabled())
      dump.write(std::string(name) + ".mlir", printModule(module));
    if (seen)
      seen(name, module);
    from = stage;
  }
  detail::log_message("passes: " + watch.str());
  return {};
}

} // namespace tk
