//===- ScheduleEntries.cpp - the schedule block of a kernel ---------------===//
#include "passes/analysis/ScheduleEntries.h"

#include "dialects/tkgpu/TkGpuDialect.h"

using namespace mlir;
using namespace tk;

/// A driver leaves the block that applies to a variant alone, without what chose it. Elsewhere one
/// for another architecture does not apply, nor does one with a condition on sizes.
static bool applies(DictionaryAttr schedule, KernelOp kernel) {
  if (schedule.contains("when"))
    return false;
  auto arch = schedule.getAs<StringAttr>("arch");
  if (!arch)
    return true;
  StringRef number = arch.getValue();
  if (!number.consume_front("sm_"))
    return false;
  number = number.take_while(llvm::isDigit);
  auto target = kernel->getParentOp()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  int64_t value = 0;
  return target && !number.getAsInteger(10, value) && value == target.getArch();
}

DictionaryAttr tk::findScheduleBlock(KernelOp kernel) {
  if (auto schedules = kernel->getAttrOfType<ArrayAttr>("tk.schedules"))
    for (auto schedule : schedules.getAsRange<DictionaryAttr>())
      if (applies(schedule, kernel))
        return schedule;
  return {};
}
