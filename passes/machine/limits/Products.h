//===- Products.h - limits of tiles of products and chains ------*- C++ -*-===//
//
// Tiles, stages and warpgroups of products and of back-to-back contractions (passes/plan). Each
// namespace is that of the file that uses it. Values without a measurement beside them are
// assumed; a device that differs much from an H200 needs them looked at.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_PRODUCTS_H
#define TK_PASSES_MACHINE_LIMITS_PRODUCTS_H

#include <cstdint>

namespace tk::limits::fit_tiles {

/// Of each operand of a product on CUDA cores, how much a thread may have in registers: what a
/// layout can name.
inline constexpr int64_t mostOperands = 1024;
/// What is left of shared memory each time a plan is made again, see CompiledSource::lower.
inline constexpr double partOfEachTime = 0.75;

} // namespace tk::limits::fit_tiles

namespace tk::limits::plan_chains {

/// Rows beyond the last one that tiles whose rows are no power of two may have, as a part of all.
inline constexpr int64_t partOfRowsBeyond = 16;
/// Terms of a chain's outer sum, under a mask that follows its rows, up to which steps are short.
inline constexpr int64_t shortMaskedRange = 4096;
/// Blocks that read the same second factors of a chain at a time keep their traffic from mattering.
inline constexpr int64_t blocksThatShare = 4;
/// Columns of a chain's outputs up to which these, and the traffic, are narrow.
inline constexpr int64_t narrowOutputs = 64;
/// Registers that threads of copies keep of theirs, and those that a thread needs beside tiles.
inline constexpr int64_t registersOfCopies = 40, registersBeside = 24;
/// Blocks on a multiprocessor of chains of one warpgroup and one step, and stages that each has at
/// least. Assumed.
inline constexpr int64_t mostBlocksOfShortChain = 3, leastStagesOfShortChain = 2;

} // namespace tk::limits::plan_chains

namespace tk::limits::plan_hopper {

/// Rows that count as few beside many columns, of all products that a tile has together: gate and
/// up of 64 x 4096 x 14336 take 75.5 us on an H200 as few rows, 61 as many; of 32 rows 61.0.
inline constexpr int64_t mostFewRows = 64;
/// Bytes of k in a tile: a span of the widest swizzle.
inline constexpr int64_t sliceBytes = 128;
/// Terms of the shortest slice.
inline constexpr int64_t leastSlice = 16;
/// Of f32 accumulators, what a thread of two warpgroups may hold.
inline constexpr int64_t accumulatorRegisters = 128;
/// Slices of k on their way to a block, and where a slice has two boxes that are neighbours along
/// k.
inline constexpr int64_t stagesOfSlices = 8, stagesOfPairs = 6;
/// Slices that are added up at once: f32 products by parts in bf16 at 4096^3 take 1267 us on an
/// H100 so, and 1547 with one.
inline constexpr int64_t slicesOfBlock = 2, mostRowsOfBlocked = 128;
/// Slices of k on their way to a block that shares its multiprocessor with another one. Measured on
/// an H200 with 16 x 14336 x 4096 and weights of 8 bits: 22.9 us with 4, 23.5 with 5, 24.4 with 8.
inline constexpr int64_t stagesOfConverted = 4;
/// Bits that an element counts as in slices whose threads unpack words: with 64 terms a slice's
/// waits and addresses take as many instructions as its numbers.
inline constexpr int64_t bitsOfPacked = 8;
/// Bytes of words of packed numbers that a row of a box has at least (BulkBox.cpp).
inline constexpr int64_t bytesOfWords = 32;
/// Terms of such a slice at least: four lanes read 16 bytes each of a row.
inline constexpr int64_t leastOfConverted = 64;
/// Of more blocks on a multiprocessor than that, rings leave the first-level cache more room for
/// scales with one stage less: 16 x 28672 x 8192, 448 blocks, 69.9 us with 4, 66.7 with 3.
inline constexpr int64_t blocksOfFullRings = 3;
/// Rows of a tile that is read once that are gathered together at least.
inline constexpr int64_t rowsOfFixedBox = 4;
/// Sums of a tile of few columns: 128 x 64.
inline constexpr int64_t sumsOfFewColumns = 128 * 64;

} // namespace tk::limits::plan_hopper

namespace tk::limits::plan_schedule {

/// How much of the last index of an outer contraction one block keeps.
inline constexpr int64_t widestOutput = 256;
/// Of a row's scores and outputs, how many a warp with 32 rows holds in registers.
inline constexpr int64_t widestChainRow = 192;
/// Bits along k of an operand's tile: lines of 128 bytes, which is what memory moves.
inline constexpr int64_t wideSliceBits = 1024;
/// Of a chain on CUDA cores whose blocks would leave multiprocessors without work.
inline constexpr int64_t fewestRowsOfChain = 2;
/// Rows of a product that the matrix unit multiplies at least.
inline constexpr int64_t leastMatrixRows = 16;
/// Of small tiles on CUDA cores: results that a thread has at least where there are so many blocks
/// for each processor.
inline constexpr int64_t leastOutputs = 16, manyBlocks = 32;
/// Of all sums of products that share a tile, on the matrix unit, what a thread may have.
inline constexpr int64_t mostSums = 128;

} // namespace tk::limits::plan_schedule

namespace tk::limits::plan_teams {

/// Tiles' rows that are walked together; a tile that is read besides takes some of the cache.
inline constexpr int64_t rowsTogether = 32, rowsBesideTile = 16;

} // namespace tk::limits::plan_teams

#endif // TK_PASSES_MACHINE_LIMITS_PRODUCTS_H
