//===- WeightSums.h - rows of weights, and products that sum them -*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_WEIGHTSUMS_H
#define TK_PASSES_PIPELINE_WEIGHTSUMS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// Columns of ones beside a product's right operand: the fewest that a product takes.
inline constexpr int64_t kColumnsOfOnes = 8;

/// Where a step adds up the rows of its weights: all of a row, or what a thread has of it.
struct StepSum {
  mlir::Value before; ///< what they are added to
  mlir::arith::AddFOp sum;
  mlir::Operation *rows = nullptr;
};

/// Is `sum` what rows of the tile that `weights` is rounded from have been added to?
std::optional<StepSum> stepSumOf(mlir::Value sum, mlir::Value weights);

/// Does all that reads `sum` divide by it, or by it times something? A sum of rounded weights is
/// what products of them are to be divided by; anything else would show the rounding.
bool isDivisor(mlir::Value sum);

/// Can columns of ones stand behind a right operand that lies like this?
bool canHaveOnes(gpu::SharedType operand);

/// The buffer of the right operand whose columns of ones could sum what a loop sums itself: of its
/// last product, whose left operand are weights of 16 bits. Null if there is none.
gpu::AllocSharedOp findBesideOnes(mlir::scf::ForOp loop);

} // namespace tk

#endif // TK_PASSES_PIPELINE_WEIGHTSUMS_H
