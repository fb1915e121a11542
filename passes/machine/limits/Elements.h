//===- Elements.h - limits of elements and small products -------*- C++ -*-===//
//
// Tiles of elementwise statements, of reductions across memory, of small products and of sums that
// blocks share (passes/plan). Each namespace is that of the file that uses it. Values without a
// measurement beside them are assumed; a device that differs much from an H200 needs them looked
// at.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_ELEMENTS_H
#define TK_PASSES_MACHINE_LIMITS_ELEMENTS_H

#include "passes/machine/TileFacts.h"

#include <cstdint>

namespace tk::limits::analyze_statement {

/// Elements so far apart still lie in one sector.
inline constexpr int64_t longestStep = 8;

} // namespace tk::limits::analyze_statement

namespace tk::limits::merge_indices {

/// A multiple of the terms of each slice that CUDA cores multiply.
inline constexpr int64_t wholeSlices = 32;

} // namespace tk::limits::merge_indices

namespace tk::limits::plan_across {

/// Reductions of columns: how many a block has side by side, and its threads.
inline constexpr int64_t columnsAcross = 64, threadsAcross = 128;
/// Of such columns' terms that a thread has a maximum and sums of, and corrects those for: what it
/// takes in at a time, in bits. logsumexp down 16384 x 4096 of bf16 on an H200: 41.2 us with half
/// as many, 39.3 us so.
inline constexpr int64_t bitsOfTerms = 1024, leastBits = 16;
/// The longest column that a block holds, its elements of all columns, and of those a thread's.
inline constexpr int64_t longestColumn = longestHeldColumn, elementsOfColumns = 16384,
                         elementsOfColumnThread = 32, threadsOfColumns = 512;
/// How many accesses of a thread bring all terms of short ones at once.
inline constexpr int64_t accessesAcross = 4;
/// How few terms a thread goes through for its results, and how many blocks each multiprocessor
/// should still have.
inline constexpr int64_t fewTerms = 64, blocksOfWindows = 4;
/// The same of a window of two or three axes, of which lanes along it would read each element many
/// times.
inline constexpr int64_t termsOfWindow = 2048, termsOfWindowAxis = 1024;
/// How many results a block has then, and how many where some of what is read is the same for those
/// below one another. Sums on an H200 of 4 terms of 8 x 2048 x 4096 in bf16, with weights of each
/// column: 131 us with 8192 results, 177 with 4096, 291 with 2048, 722 with threads that meet. Of
/// 7 x 7 windows along memory, with weights of each plane: 607, 562, 435 with 4096, 2048, 1024.
inline constexpr int64_t resultsOfBlock = 1024, resultsThatShare = 8192;
/// Of a chain of few terms, how many results a thread has, how many of their terms at a time, and
/// how many results each multiprocessor must have for each term that threads do not share out. On
/// an H100, decoding: 16 queries of 64 sequences in 2 parts 766 -> 741 us; of 8 sequences in 8
/// parts (496 results) 372.7 -> 374.3, with lengths 258.2 -> 257.0; 4 of 16 in 9 (220) 364.9 ->
/// 366.3; 1 of 8 in 16 (15) 355.7 -> 359.7.
inline constexpr int64_t resultsOfChain = 4, termsOfChain = 16, resultsOfProcessor = 256;
/// Where windows slide along an index across memory, how many neighbours along it a block has: of
/// vectors with weights of their own, and of others. 7 x 7 windows of 32 x 56 x 56 x 256: 149 us
/// with 4 x 4 pixels, 227 with 32 side by side; of planes 237 us with 2 x 8, 272 with 1 x 16.
inline constexpr int64_t vectorsThatShare = 4, elementsThatShare = 8;
/// Of what is reduced for each element of a row that is scanned, how many terms a thread has.
inline constexpr int64_t termsBesideScans = 16;
/// The rows of a short scan down columns at most, and its elements of a thread.
inline constexpr int64_t rowsOfShortScan = 256, elementsOfShortScan = 16;
/// What memory moves at once or at least.
inline constexpr int64_t lineBits = 8 * lineBytes, sectorBits = 8 * sectorBytes;

} // namespace tk::limits::plan_across

namespace tk::limits::plan_states {

/// Of a reduction over scanned states: how many terms a tile has at most along one index, how many
/// states a thread has at most, how many states of steps of the scan, and how many operations on
/// them.
inline constexpr int64_t mostTerms = 1024, mostStates = 8, mostElements = 128, leastElements = 32,
                         operationsOfTile = 1536;
/// How many columns and threads a block has at most, and how many threads a multiprocessor should
/// have before a thread has several states.
inline constexpr int64_t columnsOfSector = 8, mostThreads = 512, threadsOfProcessor = 224;

} // namespace tk::limits::plan_states

namespace tk::limits::plan_elements {

/// Of a statement without reductions: the warps of a block, and the blocks that each multiprocessor
/// should still have where a thread takes more than one access.
inline constexpr int64_t warpsOfElements = 4, blocksToSpare = 16;
/// Values of an index that a thread may have all of, with what it loads for them.
inline constexpr int64_t mostResultsOfLoad = 4;
/// How many rows share what a thread loads element by element for them.
inline constexpr int64_t rowsThatShare = 4;

} // namespace tk::limits::plan_elements

namespace tk::limits::plan_factor_rows {

/// How many rows a block has at most, and its threads.
inline constexpr int64_t mostRows = 4, threadsOfRows = 512;
/// What rows share is worth it from this part of what they have of their own.
inline constexpr int64_t leastPart = 4;
/// What is shared stays in the first-level cache up to so many bytes.
inline constexpr int64_t mostCached = 32 << 10;
/// For each multiprocessor: fewer blocks than these leave some without work at the end.
inline constexpr int64_t leastBlocks = 3;

} // namespace tk::limits::plan_factor_rows

namespace tk::limits::plan_joins {

/// More blocks of a multiprocessor would not be joined.
inline constexpr int64_t blocksOfParts = 2;

} // namespace tk::limits::plan_joins

namespace tk::limits::plan_pairs {

/// Fewer rows or columns share too little. Slices along the reduction, of which there are only
/// whole ones: no value outside counts for nothing in every term.
/// Tiles of 256 rows spill where sizes are not known.
inline constexpr int64_t mostRows = 128, leastRows = 8, leastSide = 32, longestSlice = 16,
                         shortestSlice = 8, shortestPaddedSlice = 2;
/// Fewer terms of a pair take no longer than what follows from their sum: in the terms of another
/// reduction they stay.
inline constexpr int64_t leastTerms = 8;

} // namespace tk::limits::plan_pairs

namespace tk::limits::block_rows {

/// Tiles that a block goes through at most, and where sizes are not known. Blocks of a
/// multiprocessor beside and behind each other.
inline constexpr int64_t mostOfBlock = 256, tilesWhereUnknown = 64, blocksOfProcessor = 16;
/// More tiles than any launch has.
inline constexpr int64_t mostTiles = int64_t(1) << 40;

} // namespace tk::limits::block_rows

namespace tk::limits::plan_several_axes {

/// Of so many tiles along an index the one that ends early is of no weight.
inline constexpr int64_t tilesThatEnd = 8;

} // namespace tk::limits::plan_several_axes

namespace tk::limits::plan_shared {

/// How many numbers a thread adds up, in words.
inline constexpr int64_t mostCarried = 48;
/// Shorter ranges are reduced at once. A block's threads, and how many neighbours each has.
inline constexpr int64_t leastShared = 1024, threadsOfShared = 256, neighbours = 4;
/// Elements of other results from which on threads run along these, and the terms that there are
/// then at least. Those of windows are fewer.
inline constexpr int64_t leastAcross = 8, leastTermsAcross = 128;
/// Results of a multiprocessor from which on each thread goes through the terms of its own; the
/// threads of a block then, and the results of a thread at most.
inline constexpr int64_t resultsOfProcessor = 1024, threadsOfOwn = 128, mostOwn = 4,
                         leastTermsOfOwn = 16;
/// The terms that such threads take at a time. Sums over 256 neighbours for each of 200,000
/// elements take 10.8 us with four terms and 20.0 with one (H200).
inline constexpr int64_t termsOfOwn = 4;
/// What a place costs for all results, in terms of one result.
inline constexpr int64_t costOfPlace = 4;

} // namespace tk::limits::plan_shared

namespace tk::limits::plan_small_products {

/// The longest side of a small product, and its results. Of 262144 products of 8 x 8 x 16 in f32
/// the contraction's tiles are predicted 82 us, where the bytes take 81; of 4 x 4 x 16 they are
/// predicted 60, this plan 39, and the bytes take 38.
inline constexpr int64_t longestSide = 8, mostResults = 32;
/// The points and terms of a block, of sums along memory and of others. Of 3 x 3 x 16 with operands
/// across memory: 28.4 us as 32 x 4, 34.7 as 16 x 16; of 3 x 3 x 64 along memory 194 and 99.5. Of
/// 3 x 5 x 64 along memory 259 with 16 points, and 133 with 8.
inline constexpr int64_t pointsOfBlock = 16, resultsOfBlock = 256, termsOfBlock = 16,
                         pointsAcross = 32, termsAcross = 4, mostTermsAcross = 64;
/// Blocks that each multiprocessor should have.
inline constexpr int64_t blocksOfProcessor = 4;
/// The warps of that block.
inline constexpr int64_t warpsOfBlock = 4;

} // namespace tk::limits::plan_small_products

#endif // TK_PASSES_MACHINE_LIMITS_ELEMENTS_H
