//===- MaterializeOperands.cpp - operands stored in another form ----------===//
//
// The patterns in their order, each in a file of its own:
//
//   gather       operands whose rows a table gathers          GatherFactors.cpp
//   unpack       operands of several numbers a byte           UnpackFactors.cpp
//   computed     operands that each tile would compute again  StoreFactors.cpp
//   batches      operands and results along a batch index     TurnBatches.cpp
//   align-sums   operands of sums over several indices        AlignSums.cpp
//   transpose    operands that lie across the sum             TransposeFactors.cpp
//   pad          operands with rows of no alignment           PadFactors.cpp
//   invariants   functions that many elements share           StoreInvariants.cpp
//   scans        scans along a second index                   StoreScans.cpp
//
// Patterns up to `pad` are for warpgroups, `invariants` for any GPU, and `scans` for all targets.
//
//===----------------------------------------------------------------------===//
#include "passes/fusion/MaterializeOperands.h"

#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/fusion/AlignSums.h"
#include "passes/fusion/GatherFactors.h"
#include "passes/fusion/PadFactors.h"
#include "passes/fusion/StoreFactors.h"
#include "passes/fusion/TurnBatches.h"
#include "passes/fusion/UnpackFactors.h"

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {
#define GEN_PASS_DEF_MATERIALIZEOPERANDS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

namespace {

struct MaterializeOperands : tk::impl::MaterializeOperandsBase<MaterializeOperands> {
  using MaterializeOperandsBase::MaterializeOperandsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    auto run = [&](StringRef name, llvm::function_ref<unsigned(KernelOp)> store) {
      patterns.run(name, [&] {
        getOperation()->walk([&](KernelOp kernel) { numStored += store(kernel); });
      });
    };
    auto target = getOperation()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    if (target && target.getHopper()) {
      const int64_t processors = target.getProcessors();
      run("gather", gatherFactors);
      run("unpack", unpackFactors);
      run("computed", storeFactors);
      run("batches", turnBatches);
      run("align-sums", alignSums);
      run("transpose", [&](KernelOp kernel) { return transposeFactors(kernel, processors); });
      run("pad", [&](KernelOp kernel) { return padFactors(kernel, processors); });
    }
    if (target)
      run("invariants", storeInvariants);
    run("scans", storeScans);
  }
};

} // namespace
