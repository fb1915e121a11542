//===- Rows.h - limits of rows and the columns beside them ------*- C++ -*-===//
//
// What blocks, threads and clusters hold of rows (passes/plan), and when rows are copied ahead,
// kept or cut into parts (passes/rows). Each namespace is that of the file that uses it. Values
// without a measurement beside them are assumed; a device that differs much from an H200 needs
// them looked at.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_ROWS_H
#define TK_PASSES_MACHINE_LIMITS_ROWS_H

#include <cstdint>

namespace tk::limits::attach_reductions {

/// Rows of a fragment of a product, which the threads of one warp have.
inline constexpr int64_t rowsOfPart = 16;

} // namespace tk::limits::attach_reductions

namespace tk::limits::carried_tiles {

/// What a thread carries, in registers, and its elements of 16 bits of a tile, half as many of
/// wider ones: beside what it carries it has them, and what it computes from them.
inline constexpr int64_t mostCarried = 32, elementsOfThread = 16, mostCarriedOfLoneRow = 64;
/// Threads of a block that reduces rows, at most, and of one that has elements alone; threads of a
/// multiprocessor, whose registers leave each so many.
inline constexpr int64_t threadsOfRows = 256, mostThreadsOfRow = 512, threadsOfElements = 128;
/// Of a row that has a block to itself. LayerNorm's gradient of 16384 x 2048 on an H200: 62.2 us
/// so, 67.4 with two rows; of 65536 x 256 41.8 with 16 rows, 44.9 with 8.
inline constexpr int64_t threadsOfLoneRow = 128;
/// Blocks of a cluster that shares rows: more warps than a block has are those of a cluster.
inline constexpr int64_t leastClusterBlocks = 4, mostClusterBlocks = 8;
/// Threads that a multiprocessor has at once for rows, and for elements.
inline constexpr int64_t rowThreadsAtOnce = 512, elementThreadsAtOnce = 1024;

} // namespace tk::limits::carried_tiles

namespace tk::limits::carry_columns {

/// How many times the bytes that partial results are written and read with should be saved.
inline constexpr double leastGain = 0.75;
/// Partial results of a sector: f32.
inline constexpr int64_t columnsOfSector = 8;
/// Bits of a partial result that are written and read: f32.
inline constexpr int64_t partialBits = 2 * 32;

} // namespace tk::limits::carry_columns

namespace tk::limits::kept_rows {

/// The longest row of which a multiprocessor holds several, so that one is loaded while another is
/// reduced.
inline constexpr int64_t longestOwnRow = 16384;
/// Three blocks of so many threads fit with 80 registers each, which do for so many elements where
/// they are read from shared memory a part at a time.
inline constexpr int64_t blocksOfThirds = 3, threadsOfThird = 256, elementsInParts = 128;
/// Blocks of so many warps are small.
inline constexpr int64_t mostWarpsOfSmall = 2;
/// Clusters of more blocks are not to be had for all multiprocessors at once.
inline constexpr int64_t mostClusterBlocks = 4;
/// Shorter rows are as fast in registers.
inline constexpr int64_t leastKeptRow = 16384;
/// Of each element of a row that shared memory keeps.
inline constexpr int64_t rowBits = 16;
/// Rows that clusters go through at a time.
inline constexpr int64_t spreadRowsAtOnce = 32;

} // namespace tk::limits::kept_rows

namespace tk::limits::plan_rows {

/// Blocks that have one row of no more bits end faster than others are started; with accesses of 8
/// bytes, which are fewer, that holds of longer ones.
inline constexpr int64_t shortRowBits = 640 * 16, shortRowBitsInHalves = 768 * 16;
/// Rows that end before their tiles have no fewer threads.
inline constexpr int64_t leastThreads = 128;
/// Blocks that move fewer bytes end faster than others are started.
inline constexpr int64_t leastBytesOfBlock = 4096;
/// What a block takes at a time of a row that it does not hold: where a thread has one element, of
/// rows of unknown length, and of long ones.
inline constexpr int64_t smallSlice = 256, slice = 1024, longSlice = 8192;
/// What a block takes at a time of a longer row that it scans, if there are rows for all blocks:
/// 1024 sums along 16384 f32 take 33.1 us in such slices, and 37.6 in whole rows (H200).
inline constexpr int64_t sliceOfScan = 4096;
/// Rows of a multiprocessor from which on its blocks have enough bytes on their way without a
/// cluster.
inline constexpr int64_t rowsOfProcessor = 3;
/// Terms that a tile of rows between offsets has at least.
inline constexpr int64_t leastRange = 8;

} // namespace tk::limits::plan_rows

namespace tk::limits::await_parts {

/// More parts bring nothing.
inline constexpr int64_t numParts = 4;
/// Of smaller blocks a multiprocessor has so many that others compute while one waits.
inline constexpr int64_t leastThreads = 512;

} // namespace tk::limits::await_parts

namespace tk::limits::cut_stores {

/// So many of a tile's elements fit the registers of a thread that has 64, and so many leave room
/// for weights of columns and addresses.
inline constexpr int64_t mostElements = 32, elementsOfPart = 16;
/// What two loads each give for so many parts of a tile fits a thread's registers.
inline constexpr int64_t partsLoadedAtOnce = 2;
/// A row whose memory is filled again part by part (tk-refill-parts) has so many.
inline constexpr int64_t partsOfRefilled = 4;
/// A multiprocessor has two blocks of so many threads that have 64 registers.
inline constexpr int64_t threadsOfHalf = 512;

} // namespace tk::limits::cut_stores

namespace tk::limits::fetch_ahead {

/// Threads that scan, of up to 128 registers, fill a multiprocessor.
inline constexpr int64_t threadsThatScan = 512;
/// What is left at least for what threads exchange.
inline constexpr int64_t leastExchangeBytes = 4096;

} // namespace tk::limits::fetch_ahead

namespace tk::limits::fetch_operands {

/// Bytes in flight with which a multiprocessor reads at the memory's rate: 32 bytes a nanosecond
/// for about 800 ns on an H200.
inline constexpr int64_t bytesInFlight = 24 * 1024;
/// A thread carries at most so many registers of small loads to the next iteration.
inline constexpr int64_t mostCarried = 16;

} // namespace tk::limits::fetch_operands

namespace tk::limits::hoist_loads {

/// So many elements of a thread, of all its loads, are held whatever else it computes.
inline constexpr int64_t littleInAll = 32;

} // namespace tk::limits::hoist_loads

namespace tk::limits::join_reductions {

/// So many values of a tile fit the registers of a thread that has 64.
inline constexpr unsigned mostElements = 32;
/// So many warps take longer to meet than to join pairs, and fewer where each has long parts.
inline constexpr uint64_t leastWarps = 8;

} // namespace tk::limits::join_reductions

namespace tk::limits::keep_rows {

/// Of a thread's usual registers, those that a row may not take.
inline constexpr int64_t mostRegisters = 32;

} // namespace tk::limits::keep_rows

namespace tk::limits::row_fetcher {

/// More rows in flight bring nothing.
inline constexpr int64_t enoughStages = 4;
/// What a cluster's block that has a multiprocessor to itself wants of rows; what lies beyond is as
/// much more to be done when there is nothing left to bring (tk-hand-out-tiles).
inline constexpr int64_t enoughBytes = 65536;
/// Rows that a cluster's block computes at a time while it exchanges the next one's sums.
inline constexpr int64_t rowsOnChip = 2;
/// What a thread of a loop that adds up reads in each iteration, in bytes: of fewer, as of what an
/// unrolled loop leaves over, there are few iterations.
inline constexpr int64_t leastBytesOfSums = 64;
/// How many iterations of such a loop have their tiles in shared memory. Mean and variance of
/// 16384 x 4096 and 65536 x 1024 on an H200: 37.4 and 37.5 us with 2, 37.5 and 37.6 with 3, 37.7
/// and 37.5 with 4. Sums alone gain nothing.
inline constexpr int64_t stagesOfSums = 2;

} // namespace tk::limits::row_fetcher

namespace tk::limits::share_random_blocks {

/// Words of a block.
inline constexpr int64_t wordsOfBlock = 4;

} // namespace tk::limits::share_random_blocks

namespace tk::limits::unroll_loops {

/// What a thread should have on its way, in bytes, and how many iterations may provide that.
inline constexpr int64_t bytesAtOnce = 64, mostIterations = 4;
/// Of a window, how many loads are in the text.
inline constexpr int64_t mostLoads = 128;
/// ... and how many instructions for divisions, exponentials and the like: where these take the
/// time, text that no cache of instructions holds costs more than loads.
inline constexpr int64_t mostCostly = 2048;
/// Likewise of iterations whose terms are many more than what is loaded for them.
inline constexpr int64_t mostCostlyTogether = 1024;

} // namespace tk::limits::unroll_loops

namespace tk::limits::plan_offset_rows {

/// A block's warps, and its rows at most.
inline constexpr int64_t warpsOfRows = 4, mostRows = 32;
/// Elements of its terms that a thread has at a time, and how many terms those are at most.
inline constexpr int64_t elementsOfThread = 32, mostTerms = 8;
/// Terms of reductions without columns: at least, and at most.
inline constexpr int64_t leastAlone = 8, mostAlone = 32;
/// Blocks that each multiprocessor should have.
inline constexpr int64_t blocksOfProcessor = 4;

} // namespace tk::limits::plan_offset_rows

#endif // TK_PASSES_MACHINE_LIMITS_ROWS_H
