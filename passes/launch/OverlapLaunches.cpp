//===- OverlapLaunches.cpp - programmatic dependent launch ----------------===//
//
// Between the last block of a launch and the first block of the next one, a multiprocessor idles
// for the latency of a launch. From sm_90 on, blocks of the next launch may start earlier and wait
// themselves (programmatic dependent launch). In a program of several launches:
//
// 1. The kernels of all launches but the last begin with `tkgpu.launch_release`. The next launch
//    starts when the last of their blocks has started, and takes the place of blocks that end.
// 2. The kernels of all launches but the first wait for all earlier launches to end, before they
//    touch memory (`tkgpu.launch_wait`).
//
// The runtime starts a launch behind the one before it if its blocks could end up on few
// multiprocessors (would_crowd, runtime/cuda/GpuLaunch.h).
//
// The first launch follows launches of others, and does not wait. No later pass may move loads: a
// load has no effects in the IR, and must not move ahead of the wait.
//
// A kernel with `tk.overlaps_calls` overlaps the calls around it, too: all of its launches begin
// with both operations, and any of their buffers may be written by the call before.
//
// Before: tkgpu.func @first { ... }
//         tkgpu.func @second { %x = load %scratch; ... }
// After:  tkgpu.func @first { launch_release; ... }
//         tkgpu.func @second { launch_wait %scratch; %x = load %scratch; ... }
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/CallOverlap.h"
#include "passes/machine/Machine.h"

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_OVERLAPLAUNCHES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The arguments of a launch's function that other launches write.
static SmallVector<Value> getWrittenBefore(LaunchOp launch, FuncOp function) {
  SmallVector<Value> buffers;
  for (auto [operand, argument] : llvm::zip(launch.getArgs(), function.getBlock()->getArguments()))
    if (isa<BufferType>(argument.getType()) && operand.getDefiningOp<LaunchOp>())
      buffers.push_back(argument);
  return buffers;
}

static SmallVector<Value> getBuffers(FuncOp function) {
  SmallVector<Value> buffers;
  for (Value argument : function.getBlock()->getArguments())
    if (isa<BufferType>(argument.getType()))
      buffers.push_back(argument);
  return buffers;
}

namespace {

struct OverlapLaunches : tk::impl::OverlapLaunchesBase<OverlapLaunches> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (!hasFeature(target, Feature::LaunchOverlap))
      return;
    SymbolTable symbols(getOperation());
    getOperation()->walk([&](KernelOp kernel) {
      const bool overlapsCalls = kernel->hasAttr(overlapsCallsAttrName);
      SmallVector<LaunchOp> launches(kernel.getBody().front().getOps<LaunchOp>());
      for (auto [number, launch] : llvm::enumerate(launches)) {
        auto function = symbols.lookup<FuncOp>(launch.getKernel());
        OpBuilder builder = OpBuilder::atBlockBegin(function.getBlock());
        if (overlapsCalls || number + 1 < launches.size())
          LaunchReleaseOp::create(builder, launch.getLoc());
        if (number == 0 && !overlapsCalls)
          continue;
        LaunchWaitOp::create(builder, launch.getLoc(),
                             overlapsCalls ? getBuffers(function)
                                           : getWrittenBefore(launch, function));
        ++numOverlapped;
      }
    });
  }
};

} // namespace
