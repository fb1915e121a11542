#include "dialects/tkgpu/TkGpuDialect.h"

#include "passes/Passes.h"

namespace tk {
#define GEN_PASS_DEF_COARSENTHREADS
#include "passes/Passes.h.inc"
} // namespace tk

namespace {
struct CoarsenThreads : tk::impl::CoarsenThreadsBase<CoarsenThreads> {
  void runOnOperation() override {}
};
} // namespace
