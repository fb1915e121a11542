//===- Approximate.cpp - passes on the bodies of compute ops and tiles ----===//
//
// Three passes run the patterns on index arithmetic and on functions. Each pattern has a file of
// its own, whose head describes it and its error bound.
//
// 1. tk-convert-indices takes bodies of compute ops, before they become kernels. `widen` computes
//    with 64 bits where 32 do not hold a value (WidenIndices.cpp). `floats` converts indices to
//    floats before they are added (ConvertIndices.cpp).
// 2. tk-approximate-functions takes bodies of compute ops, too. `exponentials`
//    (ApproximateExps.cpp), `logits` (ApproximateScores.cpp), `narrow-results`
//    (ApproximateNarrow.cpp) and `logistic` (ApproximateLogistic.cpp) use the hardware's
//    approximations where a result is rounded to 16 bits or fewer. `bounded-logits`
//    (BoundScores.cpp), `scales` (FoldScales.cpp), `powers` (FoldPowers.cpp) and `references`
//    (FreeReferences.cpp) simplify the maximum of a softmax and what is done to its logits and
//    numerators. `reciprocals` multiplies by one reciprocal a row (RowQuotients.cpp).
// 3. tk-refine-tiles takes kernels over tiles. `row-parts` moves a row's part of a bias from the
//    scores to the row maximum (SeparateRows.cpp). `accumulators` begins a product with the
//    accumulators that it is added to (AccumulateProducts.cpp).
//
// Before: %p = exp_diff %x, %m; yield (max) %x * %c, (sum) %p                   // `scales`
// After:  yield (max) %x, (sum) scaled_exp_diff %x, %m by %c
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/numerics/AccumulateProducts.h"
#include "passes/numerics/ApproximateExps.h"
#include "passes/numerics/ApproximateNarrow.h"
#include "passes/numerics/BoundScores.h"
#include "passes/numerics/ConvertIndices.h"
#include "passes/numerics/FoldScales.h"
#include "passes/numerics/FreeReferences.h"
#include "passes/numerics/RowQuotients.h"
#include "passes/numerics/SeparateRows.h"
#include "passes/numerics/WidenIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {
#define GEN_PASS_DEF_CONVERTINDICES
#define GEN_PASS_DEF_APPROXIMATEFUNCTIONS
#define GEN_PASS_DEF_REFINETILES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static void forComputes(ModuleOp module,
                        llvm::function_ref<void(KernelOp kernel, ComputeOp compute)> rewrite) {
  for (KernelOp kernel : module.getOps<KernelOp>())
    for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
      rewrite(kernel, compute);
}

namespace {

struct ConvertIndices : tk::impl::ConvertIndicesBase<ConvertIndices> {
  using ConvertIndicesBase::ConvertIndicesBase;

  /// That of the marks, too.
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, gpu::TkGpuDialect>();
  }

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    patterns.run("widen", [&] { forComputes(getOperation(), widenIndices); });
    patterns.run("floats", [&] { forComputes(getOperation(), convertIndices); });
  }
};

struct ApproximateFunctions : tk::impl::ApproximateFunctionsBase<ApproximateFunctions> {
  using ApproximateFunctionsBase::ApproximateFunctionsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    auto run = [&](StringRef name, void (*rewrite)(ComputeOp)) {
      patterns.run(name, [&] {
        forComputes(getOperation(), [&](KernelOp, ComputeOp compute) { rewrite(compute); });
      });
    };
    run("exponentials", markApproximateExps);
    run("logits", approximateScores);
    patterns.run("bounded-logits", [&] { forComputes(getOperation(), boundScores); });
    run("narrow-results", markNarrowFunctions);
    run("logistic", approximateLogistics);
    run("reciprocals", shareReciprocals);
    patterns.run("scales", [&] { forComputes(getOperation(), foldScales); });
    run("powers", foldPowers);
    run("references", markFreeReferences);
  }
};

struct RefineTiles : tk::impl::RefineTilesBase<RefineTiles> {
  using RefineTilesBase::RefineTilesBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    auto run = [&](StringRef name, void (*rewrite)(gpu::FuncOp)) {
      patterns.run(name, [&] {
        for (gpu::FuncOp function : getOperation().getOps<gpu::FuncOp>())
          rewrite(function);
      });
    };
    run("row-parts", separateRows);
    run("accumulators", accumulateProducts);
  }
};

} // namespace
