//===- ScheduleLimits.cpp - schedules that do not fit ----------------------===//
#include "passes/plan/ScheduleLimits.h"

#include "dialects/tkgpu/TkGpuLayout.h"
#include "passes/analysis/Refusal.h"
#include "passes/plan/ScheduleBlock.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The kernel that launches a function.
static KernelOp kernelOf(FuncOp function) {
  KernelOp found;
  function->getParentOfType<ModuleOp>().walk([&](LaunchOp launch) {
    if (launch.getKernel() == function.getSymName())
      found = launch->getParentOfType<KernelOp>();
  });
  return found;
}

static void askForLess(FuncOp function) {
  function->getParentOp()->setAttr(needsLessAttrName, function.getSymNameAttr());
}

void tk::gpu::reportSharedLimit(FuncOp function, int64_t bytes, TargetAttr target,
                                std::optional<int64_t> fittingStages) {
  KernelOp kernel = kernelOf(function);
  std::optional<Location> place;
  if (kernel)
    place = placeOfKey(kernel, {"stages", "tile", "coarsen"});
  if (!place) {
    askForLess(function);
    function.emitError("needs ") << bytes << " B of shared memory, sm_" << target.getArch()
                                 << " has " << target.getShared() << " B";
    return;
  }
  InFlightDiagnostic refusal = refuse(*place, Refusal::ScheduleDoesNotFit);
  refusal << "the schedule needs " << bytes << " B of shared memory, sm_" << target.getArch()
          << " has " << target.getShared() << " B";
  if (fittingStages && *fittingStages > 1)
    refusal.attachNote() << "try stages = " << *fittingStages;
  else
    refusal.attachNote() << "try smaller tiles";
}

void tk::gpu::reportFactorLimit(FuncOp function, Value factor) {
  KernelOp kernel = kernelOf(function);
  std::optional<Location> place;
  if (kernel)
    place = placeOfKey(kernel, {"tile", "coarsen"});
  if (!place)
    askForLess(function);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(factor.getType()).getShape();
  InFlightDiagnostic refusal =
      place ? refuse(*place, Refusal::ScheduleDoesNotFit) : function.emitError();
  refusal << "a product's factor of " << shape[0] << " x " << shape[1]
          << " elements leaves more than 1024 to each of " << 32 * function.getNumWarps()
          << " threads";
  if (place)
    refusal.attachNote() << "try smaller tiles";
}

bool tk::gpu::asksForStages(FuncOp function) {
  KernelOp kernel = kernelOf(function);
  return kernel && placeOfKey(kernel, {"stages"});
}
