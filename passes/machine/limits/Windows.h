//===- Windows.h - limits of windows and convolutions -----------*- C++ -*-===//
//
// When convolutions are flattened or have shares, and how long these are (passes/tensor/windows).
// Each namespace is that of the file that uses it. Values without a measurement beside them are
// assumed; a device that differs much from an H200 needs them looked at.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_WINDOWS_H
#define TK_PASSES_MACHINE_LIMITS_WINDOWS_H

#include <cstdint>

namespace tk::limits::band_products {

/// Results of a block, and the fewest taps and results along the filter's axis that have blocks.
inline constexpr int64_t blockSizes[] = {64, 128};
inline constexpr double leastTaps = 16, leastResults = 128;
/// The band's terms are whole slices of so many.
inline constexpr int64_t termsOfSlice = 64;
/// How far a result's place may lie from the next one's.
inline constexpr int64_t longestStep = 4;
/// Nanoseconds of a term on CUDA cores (H200, f16, 8 x 256 x 4096 results of 127 taps: 650 us;
/// bf16, 256 x 2048 results of 1 to 2048 terms: 221 us), and of one on the matrix unit at 600
/// TFLOP/s.
inline constexpr double termOfSum = 5e-4, termOfProduct = 3.3e-6;
/// Bytes of an element of the band or of the windows, written and read; of a block's result, which
/// two launches read, and one writes again in 16 bits.
inline constexpr double bytesOfOperand = 4, bytesOfBlocks = 10;
/// The band, the windows, the product and the check for NaN are launches.
inline constexpr double launches = 5;
/// Part of the sum's time that blocks may take.
inline constexpr double mostOfTime = 0.7;

} // namespace tk::limits::band_products

namespace tk::limits::count_terms {

/// Shares that are added up term by term.
inline constexpr int64_t mostAddedOneByOne = 8;
/// A rounded factor is stored for sums that take as long as so many launches at least.
inline constexpr double launchesOfRounding = 2;

} // namespace tk::limits::count_terms

namespace tk::limits::counted_terms {

/// Shares at most, and slices of a share at least, for the first of which a block waits.
inline constexpr int64_t mostShares = 32;
inline constexpr double leastSlices = 8;
/// The time of more shares, or of taps that are columns, relative to that without, at most.
inline constexpr double mostTimeOfMore = 0.97;
/// Launches beside the product and the stores of its operands: the sum of its shares.
inline constexpr double launchesOfShares = 1;
/// The axes of a tensor whose windows TMA loads read, but for the last one.
inline constexpr size_t mostPixelIndices = 4;

} // namespace tk::limits::counted_terms

namespace tk::limits::flatten_windows {

/// Parts of a flattened sum that are added up term by term.
inline constexpr int64_t mostAddedOneByOne = 8;
/// A rounded factor is stored for sums that take as long as so many launches at least.
inline constexpr double launchesOfRounding = 2;

} // namespace tk::limits::flatten_windows

namespace tk::limits::share_channels {

/// Channels of a slice, and shares at most.
inline constexpr int64_t channelsOfSlice = 64, mostShares = 8;
/// How large a dimension usually is, relative to its bound.
inline constexpr double usualShareOfBound = 0.75;
/// The time in shares relative to that of the whole sum, at most.
inline constexpr double mostTimeOfShares = 0.85;

} // namespace tk::limits::share_channels

namespace tk::limits::window_cost {

/// The time of a flat product on warps, where warpgroups take 1, beside that of a sum as it is
/// written: as predicted for convolutions in 16 bits on sm_80.
inline constexpr double timeOfWarps = 2;

/// Indices of a sum that are at most as long are counted through as one on CUDA cores, which saves
/// waiting for the first slice of each, where so many rows share what each element's place takes.
inline constexpr double longestShort = 32, leastRowsOfShort = 32;
/// Results of a small tile, of which each processor has one at least.
inline constexpr double resultsOfTile = 64 * 64;
/// Rows of the tiles of these; terms of a slice on CUDA cores, which has those of the longest index
/// of the sum alone.
inline constexpr double rowsOfTile = 128, termsOfSlice = 16, leastSlice = 8;
/// Steps of a share at least.
inline constexpr int64_t leastSteps = 4;
/// Rows and channels of the groups that one product has, at most: the more groups there are, the
/// more of the products are with 0. The time of more groups relative to that of fewer, at most:
/// their results are checked for NaN.
inline constexpr double mostOfGroups = 128, mostTimeOfGroups = 0.75;

} // namespace tk::limits::window_cost

#endif // TK_PASSES_MACHINE_LIMITS_WINDOWS_H
