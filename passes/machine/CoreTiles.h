//===- CoreTiles.h - tiles of contractions without wgmma --------*- C++ -*-===//
//
// The time of tiles of f32 contractions on CUDA cores, and of f64 contractions. Blocks on one
// multiprocessor hide each other's latencies. An element of the sum takes one latency for all
// blocks that run at once, plus the issue time of each block.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_CORETILES_H
#define TK_PASSES_MACHINE_CORETILES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/MathExtras.h"

#include <cstdint>

namespace tk {

/// A tile: the number of blocks that a multiprocessor runs at once, the nanoseconds of each element
/// of the sum, and the prologue and epilogue of a block in elements of the sum.
struct CoreTile {
  int64_t m, n, atOnce;
  double latency, share;
  int64_t besides = 12;

  /// The tiles of a result of `rows` x `columns`.
  int64_t count(int64_t rows, int64_t columns) const {
    return llvm::divideCeil(std::max<int64_t>(rows, 1), m) *
           llvm::divideCeil(std::max<int64_t>(columns, 1), n);
  }
  /// The time of sums of `terms` elements in `count` tiles on `processors` multiprocessors.
  double timeOf(int64_t count, int64_t terms, int64_t processors) const {
    int64_t blocks = llvm::divideCeil(count, processors);
    double term = latency * static_cast<double>(llvm::divideCeil(blocks, atOnce)) +
                  share * static_cast<double>(blocks);
    return term * static_cast<double>(terms + besides);
  }
};

/// In order of preference for equal times. Measured on an H200.
inline constexpr CoreTile coreTiles[] = {
    {256, 128, 1, 15, 150, 40}, {128, 128, 2, 18, 77}, {64, 64, 3, 8, 23},
    {64, 32, 4, 6.5, 13.8},     {32, 64, 4, 7, 14.8},  {32, 32, 6, 6, 10.5},
};
/// The tiles of f64, in slices of 16 elements (tk-overlap-slices).
inline constexpr CoreTile coreTilesOfF64[] = {
    {64, 128, 2, 8.3, 34.3, 30}, {64, 64, 3, 10, 16.2, 30},  {32, 128, 3, 9.3, 17.1, 30},
    {64, 32, 4, 12.5, 7.7, 30},  {32, 64, 4, 12.7, 7.7, 30}, {32, 32, 7, 10, 4.9, 30},
};

} // namespace tk

#endif // TK_PASSES_MACHINE_CORETILES_H
