//===- OverlapLaunches.cpp - a launch begins as the one before it ends ----===//
//
// Between the last block of a launch and the first of the next one a processor has nothing to do
// for as long as a launch takes to get there. From sm_90 on blocks of the next launch may be there
// before, and wait themselves. In kernels of several launches,
//
// 1. the functions of all but the last launch let the next one begin, first of all: it begins when
//    the last of their blocks has begun, and takes the place of those that end;
// 2. the functions of all but the first wait, before they touch memory, for all earlier launches to
//    end.
//
// The first launch follows what others have launched and stays as it is. This runs last: the
// function's loads are free of effects, and none may move ahead of the wait.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
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

namespace {

struct OverlapLaunches : tk::impl::OverlapLaunchesBase<OverlapLaunches> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (!hasFeature(target, Feature::LaunchOverlap))
      return;
    SymbolTable symbols(getOperation());
    getOperation()->walk([&](KernelOp kernel) {
      SmallVector<LaunchOp> launches(kernel.getBody().front().getOps<LaunchOp>());
      for (auto [number, launch] : llvm::enumerate(launches)) {
        auto function = symbols.lookup<FuncOp>(launch.getKernel());
        OpBuilder builder = OpBuilder::atBlockBegin(function.getBlock());
        if (number + 1 < launches.size())
          LaunchReleaseOp::create(builder, launch.getLoc());
        if (number == 0)
          continue;
        LaunchWaitOp::create(builder, launch.getLoc(), getWrittenBefore(launch, function));
        ++numOverlapped;
      }
    });
  }
};

} // namespace
