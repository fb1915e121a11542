//===- WarpgroupTiles.h - tiles of contractions for wgmma -------*- C++ -*-===//
#ifndef TK_PASSES_MACHINE_WARPGROUPTILES_H
#define TK_PASSES_MACHINE_WARPGROUPTILES_H

#include "passes/machine/Machine.h"
#include "llvm/ADT/ArrayRef.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdint>

namespace tk {

/// A tile, its warps, and the rate of its outputs relative to the largest tiles'.
struct WarpgroupTile {
  int64_t m, n, warps;
  double rate;

  /// The tiles of a result of `rows` x `columns`.
  int64_t count(int64_t rows, int64_t columns) const {
    return llvm::divideCeil(std::max<int64_t>(rows, 1), m) *
           llvm::divideCeil(std::max<int64_t>(columns, 1), n);
  }
  /// The time of `count` tiles on `processors` multiprocessors for each element of the sum: outputs
  /// of the largest tile, in waves.
  double timeOf(int64_t count, int64_t processors) const {
    return llvm::divideCeil(count, processors) * m * n / rate;
  }
  /// The same where rows are pixels of windows. TMA brings a pixel of a slice in 2.0 ns, and a row
  /// of the other operand in 1.2 ns. Blocks of one large tile do nothing else while they store it,
  /// which takes 0.26 of its products at 2304 terms. Fits to 3 x 3 windows of 256 channels on an
  /// H200, within 4 % of what seven tiles take.
  double timeOfWindows(int64_t count, int64_t processors) const {
    constexpr double outputsOfPixel = 113, outputsOfRow = 68, storing = 0.26;
    const auto outputs = static_cast<double>(m * n);
    const double copied =
        static_cast<double>(m) * outputsOfPixel + static_cast<double>(n) * outputsOfRow;
    const double stored = m * n > 128 * 128 ? storing * outputs : 0;
    return static_cast<double>(llvm::divideCeil(count, processors)) *
           (std::max(outputs / rate, copied) + stored);
  }
  /// What is added if `rows` of a tile's operands lie behind their tensors: TMA takes 6.5 ns to
  /// fill one of a slice with zeros. Measured on an H200 with 320 columns in tiles of 128 and 256.
  static double timeBehind(int64_t count, int64_t processors, int64_t rows) {
    constexpr double outputsOfFilledRow = 367;
    return static_cast<double>(llvm::divideCeil(count, processors) * rows) * outputsOfFilledRow;
  }
};

/// In order of preference for equal times. Rates were measured on an H200.
inline constexpr WarpgroupTile warpgroupTiles[] = {
    {128, 256, 8, 1.0}, {256, 128, 8, 0.99}, {128, 128, 8, 0.96}, {64, 256, 4, 0.8},
    {128, 64, 8, 0.7},  {64, 128, 4, 0.7},   {64, 64, 4, 0.45},
};

} // namespace tk

#endif // TK_PASSES_MACHINE_WARPGROUPTILES_H
