//===- Keys.h - limits of sums by a key -------------------------*- C++ -*-===//
//
// How elements are counted and sorted by a key (passes/tensor/keys). Each namespace is that of the
// file that uses it. Values without a measurement beside them are assumed; a device that differs
// much from an H200 needs them looked at.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_KEYS_H
#define TK_PASSES_MACHINE_LIMITS_KEYS_H

#include <cstdint>

namespace tk::limits::count_by_digits {

/// Parts of the elements: some for each multiprocessor.
inline constexpr double partsOfElements = 512;
/// The elements of a part are a multiple of those that one step of a product takes.
inline constexpr int64_t elementsOfStep = 128;

} // namespace tk::limits::count_by_digits

namespace tk::limits::sum_by_key {

/// Bins of a sum at most. Each block that has a part of them reads all terms.
inline constexpr double mostBins = 1 << 20;
/// Bins whose counters a block has in shared memory: 32 KiB.
inline constexpr int64_t binsOfBlock = 8192;
/// The same of floats, of which each warp has sums of its own.
inline constexpr int64_t floatBinsOfBlock = 1024;
/// Parts of the terms: some for each multiprocessor, fewer if their counters together would be more
/// than so many.
inline constexpr double partsOfElements = 512, fewestParts = 32, countersOfParts = 262144;
/// The terms of a part are a multiple of these.
inline constexpr double termsOfStep = 1024;
/// Terms of a thread at a time, and warps of a block.
inline constexpr int64_t termsOfThread = 32, warpsOfBlock = 8;

} // namespace tk::limits::sum_by_key

namespace tk::limits::digit_order {

/// The values of the lower digit if the number of groups is not known: chunks then count 2 N words
/// of N rows in 262,144 groups.
inline constexpr double valuesOfUnknown = 512;

} // namespace tk::limits::digit_order

namespace tk::limits::row_order {

/// Elements of a sorted tensor that are counted one by one. More are searched.
inline constexpr int64_t fewElements = 64;

} // namespace tk::limits::row_order

namespace tk::limits::sort_row {

/// Elements of a thread that sorts a row with others. They are 64 bits each.
inline constexpr int64_t elementsOfThread = 16;
/// Elements that a block sorts, at least and at most: those of 32 warps.
inline constexpr int64_t fewestElements = 256, mostElements = 16384;

} // namespace tk::limits::sort_row

namespace tk::limits::rank_thresholds {

/// Bits of a digit of a threshold, at least and at most.
inline constexpr int64_t fewestBits = 2, mostBits = 8;
/// Launches that find a digit: sums of parts, and the digit. Both are predicted 8.7 us without the
/// terms.
inline constexpr double launchesOfStep = 3.5;
/// Blocks of a step: some for each multiprocessor. Each has the sums for so many values of a digit.
inline constexpr double blocksOfStep = 1024, valuesOfBlock = 8;
/// The terms of a part are a multiple of these.
inline constexpr int64_t termsOfStep = 1024;

} // namespace tk::limits::rank_thresholds

namespace tk::limits::sort_rows {

/// The rows of a block: those of a tile of a product.
inline constexpr int64_t rowsOfBlock = 128;
/// Launches that gather and return the rows.
inline constexpr double launchesBeside = 2;

} // namespace tk::limits::sort_rows

#endif // TK_PASSES_MACHINE_LIMITS_KEYS_H
