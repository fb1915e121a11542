#include "dialects/tkgpu/TkGpuDialect.h"

#include "passes/Passes.h"

namespace tk {
#define GEN_PASS_DEF_SELECTSCHEDULE
#include "passes/Passes.h.inc"
} // namespace tk

namespace {
struct SelectSchedule : tk::impl::SelectScheduleBase<SelectSchedule> {
  void runOnOperation() override {}
};
} // namespace
