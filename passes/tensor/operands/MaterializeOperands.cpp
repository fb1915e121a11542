//===- MaterializeOperands.cpp - store operands in another form -----------===//
//
// TMA loads, wgmma and vector loads need operands in certain layouts and types. An operand in
// another form costs more at every use than a compute op that stores it once in the right form.
// Each pattern handles one kind of operand. The patterns run in this order:
//
//   gather       rows that a table gathers become contiguous rows       GatherFactors.cpp
//   packed-numbers  numbers that elements select become 16 bits       StoreNumbers.cpp
//   unpack       several numbers a byte become one tensor each          UnpackFactors.cpp
//   computed     operands that each tile would compute again            StoreFactors.cpp
//   batches      operands and results along a batch index               TurnBatches.cpp
//   align-sums   operands along different indices of one sum            AlignSums.cpp
//   transpose    operands that are not contiguous along the sum         TransposeFactors.cpp
//   pad          rows that do not begin at multiples of 16 bytes        PadFactors.cpp
//   invariants   long functions whose value many elements share         StoreInvariants.cpp
//   scans        scans along a second index                             StoreScans.cpp
//
// The patterns from `gather` to `pad` need a target with wgmma, but for `packed-numbers`, which
// needs a GPU target, as `invariants` does. The pattern `scans` runs for all targets. Each pattern
// but `unpack` and `scans` declines if the store takes more time than it saves.
//
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {x[t[i], k] * w[j, k]}}
//     =>                                                                          // gather
//   %g = tk.compute ["i", "k"] {x[t[i], k]}
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {g[i, k] * w[j, k]}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/MaterializeOperands.h"

#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/tensor/operands/AlignSums.h"
#include "passes/tensor/operands/GatherFactors.h"
#include "passes/tensor/operands/PadFactors.h"
#include "passes/tensor/operands/StoreFactors.h"
#include "passes/tensor/operands/StoreNumbers.h"
#include "passes/tensor/operands/TurnBatches.h"
#include "passes/tensor/operands/UnpackFactors.h"

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
    const int64_t processors = target ? target.getProcessors() : 0;
    const bool isHopper = target && target.getHopper();
    if (target) {
      run("gather", gatherFactors);
      run("packed-numbers", [&](KernelOp kernel) { return storeNumbers(kernel, processors); });
    }
    if (isHopper) {
      run("unpack", unpackFactors);
      run("computed", storeFactors);
    }
    if (target)
      run("batches", turnBatches);
    if (isHopper) { // warps read operands that lie across the sum as fast
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
