//===- ContractionFactors.h - what multiplies the factors of a sum -*- C++ -*-===//
//
// Which contractions tk-split-contractions can divide along their sum, by what their factors are.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_SPLIT_CONTRACTIONFACTORS_H
#define TK_PASSES_TENSOR_SPLIT_CONTRACTIONFACTORS_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

/// What lengths of parts are multiples of where a factor is converted: a tile's k is that of a line
/// of memory.
inline constexpr int64_t convertedUnit = 128;

/// By what a constant divides index `k` in `index`, where `index` is that quotient.
std::optional<int64_t> divisorOf(mlir::Value index, mlir::Value k);

/// What becomes of the factors of a contraction: warpgroups multiply them, as they are in 16 or in
/// 8 bits, or converted, or warps do, since rows of 16 bits are not aligned, or warps and CUDA
/// cores do, in f32 or f64, or warps multiply what threads compute.
enum class Factors { Unfit, AsStored, Narrow, Converted, Unaligned, Wide, Computed };

/// Are the factors loaded or converted from what is, and can that be read in parts? Beside 16 bits
/// floats of 8 are converted, too.
Factors classifyFactors(KernelOp kernel, ReduceOp reduce);

/// The product that `reduce` sums, group of terms by group: the one reduction inside it, over as
/// many terms in each; null if it sums anything else.
ReduceOp findGroup(ComputeOp compute, ReduceOp reduce);

/// The extents of the results of `compute`, where they are bounded: of the last two, and the number
/// of all others together.
struct ResultSize {
  int64_t rows, columns, others = 1;
};
std::optional<ResultSize> sizeOfResults(KernelOp kernel, ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_CONTRACTIONFACTORS_H
