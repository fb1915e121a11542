//===- Shapes.h - limits of awkward shapes ----------------------*- C++ -*-===//
//
// Tiles of axes that are shorter than a side of a tile, of sums that are no power of two, and of
// windows that overlap. Each namespace is that of the file that uses it. Values without a
// measurement beside them are assumed; a device that differs much from an H200 needs them looked
// at.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_SHAPES_H
#define TK_PASSES_MACHINE_LIMITS_SHAPES_H

#include <cstdint>

namespace tk::limits::plan_elements {

/// The side of a square that is read along one index and written along another, and the least of
/// either. The elements of a block if a side is shorter still.
inline constexpr int64_t sideOfSquare = 64, leastSide = 16,
                         elementsOfSquares = sideOfSquare * sideOfSquare;

} // namespace tk::limits::plan_elements

namespace tk::limits::axis_pairs {

/// Axes of a permutation that are shorter than a square leave a part of it empty.
inline constexpr int64_t shortestTurned = plan_elements::sideOfSquare;

} // namespace tk::limits::axis_pairs

namespace tk::limits::plan_schedule {

/// Of a row's scores and outputs, how many a warp with 32 rows has on CUDA cores, where two blocks
/// of longer rows find no room on a multiprocessor.
inline constexpr int64_t widestRowOfCores = 96;
/// Terms of a slice of an inner sum on CUDA cores, and the part of the tile that holds all terms
/// which slices must take at most: each has barriers of its own.
inline constexpr int64_t longestSliceOfChain = 32, shortestSliceOfChain = 8;
inline constexpr double mostPartOfSlices = 0.8;

} // namespace tk::limits::plan_schedule

namespace tk::limits::split_windows {

/// Instructions of an element of a window in a result, its share of the loads included.
inline constexpr double instructionsOfTerm = 2;

} // namespace tk::limits::split_windows

#endif // TK_PASSES_MACHINE_LIMITS_SHAPES_H
