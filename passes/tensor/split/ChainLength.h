//===- ChainLength.h - how long the parts of a split-KV are -----*- C++ -*-===//
//
// 1. All multiprocessors together get about 8 parts each, or 11 if a warp computes a part.
// 2. A part is a multiple of 128 elements long. It has at least 256 elements, and about 64 for each
//    row, so that its state is small beside its operands. If a warpgroup reads pages of 16-bit
//    elements, it has at least 1024, unless multiprocessors would be idle.
// 3. If a warp has a tile of 16 rows, blocks run in rounds (StreamCost.h). Another length is taken
//    if it takes much less time, since it leaves fewer blocks for a last round.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_SPLIT_CHAINLENGTH_H
#define TK_PASSES_TENSOR_SPLIT_CHAINLENGTH_H

#include "passes/tensor/split/ChainRows.h"

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// Parts that each multiprocessor should have where a part is a warp's, which has few loads in
/// flight. On an H200 heads of 128 columns with keys of their own read 0.90 to 0.98 of the copy's
/// rate with 11, 0.79 to 0.86 with 8 parts, 0.87 to 0.95 with 16, whose lengths are powers of two
/// more often.
inline constexpr int64_t partsOfWarpWanted = 11;
/// What parts are a multiple of, and have at least. A state is then a few percent of the factors.
inline constexpr int64_t termsOfPartUnit = 128, leastTermsOfPart = 256;

/// Chooses the length of the parts of a back-to-back contraction that ends at `upper`.
class ChainLength {
public:
  ChainLength(KernelOp kernel, ComputeOp compute, const ChainRows &chain, mlir::Value upper)
      : kernel(kernel), compute(compute), chain(chain), reduce(chain.reduce), upper(upper) {}
  /// Nothing if sizes are not known, or if there are too many rows for one tile.
  std::optional<int64_t> choose(gpu::TargetAttr target);

private:
  int64_t countTilesOfRows(gpu::TargetAttr target, int64_t rows);
  struct Streamed {
    int64_t read = 0, staged = 0; ///< bytes of a term, in memory and in shared memory
    int64_t converted = 0;        ///< of the larger converted operand, in shared memory
    bool isComputed = false; ///< more than converted: CUDA cores bound the loop, and not memory
  };
  std::optional<Streamed> countStreamed();
  bool streamsPages(gpu::TargetAttr target, int64_t rows);
  int64_t avoidShortRound(gpu::TargetAttr target, int64_t rows, int64_t batch, int64_t length);

  KernelOp kernel;
  ComputeOp compute;
  const ChainRows &chain;
  ReduceOp reduce;
  mlir::Value upper;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_CHAINLENGTH_H
