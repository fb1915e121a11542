//===- WeightChain.h - loops that sum the rows of their weights -*- C++ -*-===//
//
// What tk-sum-in-products rewrites: loops that carry softmax numerators ("weights") to the next
// iteration's product, and a sum of their rows.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PIPELINE_WEIGHTCHAIN_H
#define TK_PASSES_PIPELINE_WEIGHTCHAIN_H

#include "passes/pipeline/WeightSums.h"

#include "dialects/tkgpu/TkGpuLayout.h"

namespace tk {

/// A chain of loops, from weights before the first to the product behind the last.
class WeightChain {
public:
  static std::optional<WeightChain> endingIn(gpu::WarpgroupDotOp last, int64_t sharedBytes);
  /// Has the products sum the rows (SumInProducts.cpp).
  void rewrite();

  /// A product of carried weights, and what waits for it.
  struct Product {
    gpu::WarpgroupDotOp dot;
    gpu::WarpgroupWaitOp wait;
  };

private:
  /// One loop of a chain, whose argument `sumAt` carries the sum.
  struct Step {
    mlir::scf::ForOp loop;
    unsigned sumAt = 0;
    StepSum sum;
    mlir::arith::MulFOp rescaled; ///< of the sum that is carried; null if it is carried as it is
    Product product;
  };

  // WeightChain.cpp
  bool collect(mlir::Value sum, mlir::Value weights);
  bool collectLoop(mlir::scf::ForOp loop, unsigned sumAt, unsigned weightsAt);
  bool readRing(int64_t sharedBytes);

  // SumInProducts.cpp
  mlir::RankedTensorType sumsType();
  mlir::Value rewriteStep(Step &step, mlir::Value sums);
  void rewriteSteps();
  void carrySums();

  /// Are sums carried as the product is, and not a step's at a time?
  bool areCarried() const { return !steps.front().rescaled; }

  llvm::SmallVector<Step> steps; ///< the first loop first
  StepSum initial;
  Product last;
  gpu::AllocSharedOp ring;
  gpu::LayoutAttr layout;
};

} // namespace tk

#endif // TK_PASSES_PIPELINE_WEIGHTCHAIN_H
