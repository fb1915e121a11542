//===- Splits.h - limits of reductions in parts -----------------*- C++ -*-===//
//
// How many parts products, chains and reductions are cut into, and how long these are
// (passes/tensor/split). Each namespace is that of the file that uses it. Values without a
// measurement beside them are assumed; a device that differs much from an H200 needs them looked
// at.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_SPLITS_H
#define TK_PASSES_MACHINE_LIMITS_SPLITS_H

#include "passes/machine/Costs.h"

#include <cstdint>

namespace tk::limits::chain_length {

/// Parts that each processor should have, of different lengths where rows are masked.
inline constexpr int64_t partsWanted = 8;
/// Rows of a warp's tile, and terms of a step, whose keys and values lie in shared memory.
inline constexpr int64_t rowsOfWarpTile = 16, termsOfStep = 64;
/// Each row's state has about as many bytes as so many terms of 8 or 16 bits.
inline constexpr double termsOfState = 2;
/// Another length of parts takes less than this share of the time of the usual one, or is not
/// taken: the number of blocks that run at a time is an estimate.
inline constexpr double mostTimeOfOtherLength = 0.95;
/// The least terms of a part for each row.
inline constexpr int64_t leastTermsOfRow = 64;
/// The least terms of a part whose pages a warpgroup reads, a block of its own. 8 sequences of 4096
/// keys, 32 heads on 8 of 128, H200: 55.5 us with parts of 256 terms, 47.2 of 512, 42.5 of
/// 1024, 39.7 of 2048, which sequences of different lengths would share worse.
inline constexpr int64_t leastTermsOfPages = 1024;

} // namespace tk::limits::chain_length

namespace tk::limits::chain_rows {

/// Columns for which inner products are computed again: up to a few they cost less than a launch.
inline constexpr int64_t fewColumns = 4, manyColumns = int64_t(1) << 20;

} // namespace tk::limits::chain_rows

namespace tk::limits::declined_products {

/// Multiply-adds of a sum that is worth a note.
inline constexpr double largeSum = double(int64_t(1) << 24);

} // namespace tk::limits::declined_products

namespace tk::limits::mask_operands {

/// Fewer rows or columns are no tile: threads read the operands once as they are.
inline constexpr double leastSide = 16;
/// Nanoseconds that a block takes for each term of a sum as it is, however few results it has: a
/// wait for memory every 8 terms, of which some overlap. As predicted for 56 x 128 results.
inline constexpr double timeOfTerm = 40;
/// Into how many parts the product's sum is cut at most (tk-split-contractions).
inline constexpr int64_t mostCuts = 16;

} // namespace tk::limits::mask_operands

namespace tk::limits::order_factors {

/// More factors than this are left as they are: the search is over all pairs of subsets.
inline constexpr size_t mostFactors = 8;
/// Indices of all factors: a set of them is 32 bits.
inline constexpr size_t mostIndices = 16;
/// Bytes of the stored result of one step: 1 GiB.
inline constexpr double mostBytesOfStep = double(int64_t(1) << 30);
/// The time of one loop relative to that of the steps, at least.
inline constexpr double leastGain = 1.3;
/// Nanoseconds of a term on an H200, where the whole device is busy. Predicted for sums that
/// `tkc inspect --cost` was asked about: two operands of 16 bits, two of f32, a sum without two
/// operands, and one loop over three factors or more that are not two operands.
inline constexpr double termOnMatrixUnit = 3.4e-6, termOnCores = 5e-5, termOfPair = 1e-4,
                        termOfManyFactors = 3e-4;
/// Results of the smallest tile of a contraction.
inline constexpr double outputsOfSmallTile = 32 * 32;

} // namespace tk::limits::order_factors

namespace tk::limits::separate_taps {

/// Taps that one loop sums, at most: each has an accumulator of a vector in registers.
inline constexpr int64_t mostTaps = 8;
/// Elements of the operand that all taps read, at least: loading them once for each tap takes more
/// time than the choice of the tap in a launch behind.
inline constexpr double leastElements = 1 << 21;

} // namespace tk::limits::separate_taps

namespace tk::limits::decayed_sums {

/// The elements of a chunk: as many as a tile of a product on CUDA cores has rows.
inline constexpr int64_t chunk = 64;

} // namespace tk::limits::decayed_sums

namespace tk::limits::pack_operands {

/// The fewest rows, columns and elements that tiles of pairs are cut from, and the multiple of the
/// latter if zeros behind the last element would count (passes/plan).
inline constexpr int64_t leastSide = 32, leastTerms = 8;
/// More instructions of an element take longer than its loads: tiles save nothing. A quotient by a
/// value of the columns in 4096 x 4096 x 128 terms on an H200: 2.8 ms without tiles, 3.6 with them.
inline constexpr double mostInstructions = 8;

} // namespace tk::limits::pack_operands

namespace tk::limits::part_states {

/// More ranges than that, each of which every segment is compared with, take longer than is won.
inline constexpr int64_t mostRanges = 1024;
/// Terms of a range, and those of all ranges for each processor where a result has so many columns,
/// from which on more is won than two launches take. Lengths between a quarter and all of what is
/// said, H200, 32 heads on 8 of 128, one and 16 queries, parts -> shares: 8 sequences of 32768 keys
/// 167 -> 161, 185 -> 168 us, 64 of 8192 336 -> 321, 358 -> 354, 32 of 4096 94 -> 91, 108 -> 106;
/// 16 of 4096 52 -> 54, 59 -> 62, one of 32768 46 -> 42, 42 -> 45, one of 8192 12 -> 16, 16 -> 18,
/// 64 of 1024 53 -> 55, 63 -> 74.
inline constexpr int64_t leastRange = 4096, termsOfProcessor = 7680, columnsOfResult = 128;

} // namespace tk::limits::part_states

namespace tk::limits::plan_parts {

/// Outputs of a reduction that are so few that its terms are cut into parts.
inline constexpr int64_t fewOutputs = 64;
/// ... if they are means and variances of more than a block holds: their parts are read once.
inline constexpr int64_t fewMoments = 256;
/// Sums of columns: how many a block has side by side, rows that are worth a partial result, and
/// columns that are enough by themselves.
inline constexpr int64_t columnsOfBlock = 64, leastRows = 128, mostColumns = 1 << 20;

/// Elements between those of neighbouring columns, such as 2 of `x[r, 2 * c]`, up to which a warp's
/// loads of a row share sectors of 32 bytes.
inline constexpr int64_t farthestNeighbours = 4;
/// Blocks that a multiprocessor should get: of plain sums, and of squared distances whose terms
/// come early (tk-fetch-ahead); of products with a row, of whose factor a block reads the row's
/// part beside; and where blocks wait before they read on. Products of 1 x 14336 x 4096 and 1 x
/// 4096 x 14336 on an H200: 35.1 and 34.6 us with 4, 31.6 and 31.6 with 7 and 8, 35.1 with 27.
inline constexpr int64_t blocksOfSums = 4, blocksOfProducts = 8, blocksThatWait = 8;
/// Likewise where a block takes in one value, or few.
inline constexpr int64_t blocksOfTotals = 8;
/// ... and of one total of what lies in one piece: all parts at once, the last of which joins them
/// (parallel/JoinLaunches.h). Of 2^26 elements of bf16 on an H200: 34.5 us, where parts in four
/// turns have 36.7 so and 35.5 in two launches.
inline constexpr int64_t blocksOfTotal = 2;
/// Terms that one part has at least, and neighbours in memory; the fewest neighbours where
/// multiprocessors would be left without a part: whole lines of 4 bytes each.
inline constexpr int64_t leastTerms = 8192, leastRun = 1024, shortestRun = 32;
/// Terms that a part of a product with few results has at least. A block takes about 9 ns for each,
/// as predicted for 8 x 8 results.
inline constexpr int64_t termsOfTile = 512;
/// Values of an index that a part of it has at least if terms are computed from products: columns
/// of their tiles, of which threads of two blocks have the registers.
inline constexpr int64_t lengthOfProducts = 32;
/// Terms of which one block soon finds the greatest: their parts' places are read one after the
/// other. One block is predicted 11.7 us for 128256 numbers of f32, parts 6.9; 6.7 for 65536.
inline constexpr int64_t termsOfPlace = 65536;
/// Of a carried reduction: what a block has in registers at once, but not more of these than a
/// block soon combines.
inline constexpr int64_t leastCarried = 8192, mostStates = 4096;
/// What a cluster's registers hold, and its shared memory where elements have 16 bits.
inline constexpr int64_t longestInRegisters = 131072, longestInMemory = 524288, packedBits = 16;

} // namespace tk::limits::plan_parts

namespace tk::limits::share_parts {

/// Terms of a unit: no tile's step is shorter.
inline constexpr int64_t termsOfUnit = 64;

} // namespace tk::limits::share_parts

namespace tk::limits::significand_cost {

/// From Costs.h, where their sources are: a term of one output of a tile, for each pair of parts;
/// what more shares should take at most of the time of fewer.
inline constexpr double timeOfPair = cost::termOfProcessor,
                        worthOfShares = cost::mostTimeOfFinerSplit;
/// How many pieces a sum on CUDA cores is cut into at most where both are compared.
inline constexpr int64_t mostCuts = 16;
/// From Costs.h: bytes of a part, and of all scratch memory that parts may take; launches beside
/// the product's own, and beside one with a widened factor; what parts of such a product should
/// take at most of what CUDA cores do.
inline constexpr double bytesOfPart = cost::bytesOfPart, mostScratch = cost::mostScratchOfParts;
inline constexpr double launchesBeside = cost::launchesOfParts,
                        launchesOfWide = cost::launchesOfWidened;
inline constexpr double worthOfMixedParts = cost::mostTimeOfMixedParts;

} // namespace tk::limits::significand_cost

namespace tk::limits::significand_parts {

/// The greatest finite number of bf16.
inline constexpr double greatestPart = 0x1.FEp127;

} // namespace tk::limits::significand_parts

namespace tk::limits::split_chains {

/// The terms of a part in a batch-invariant kernel, whatever the sizes are.
inline constexpr int64_t termsOfInvariantPart = 256;

} // namespace tk::limits::split_chains

namespace tk::limits::chunk_products {

/// Rows of a chunk; and at most, if CUDA cores compute the scores in it.
inline constexpr int64_t chunks[] = {32, 64, 128}, longestWeighed = 32;
/// Launches beside that of the sum, and those of products in f32; rows and columns of a state at
/// least.
inline constexpr double launches = 3, launchesOfWide = 5, leastOfState = 16;
/// Bytes that a number of a state moves: it is stored, scanned, stored and read; and one of a
/// result, which is stored and read.
inline constexpr double bytesOfState = 12, bytesOfResult = 8;
/// The same of a score in f32. A term on CUDA cores takes longer in chunks of fewer rows than that,
/// which are smaller tiles.
inline constexpr double bytesOfScore = 8, rowsOfWideTile = 64;
/// Nanoseconds of a term of a product, in 16 bits and in f32; of a score's weight; of a term of a
/// score on CUDA cores, with an exponential; of a term of a scan of states. Predicted for an H200.
inline constexpr double termOfProduct = 4e-6, termOfWideProduct = 8e-5, termOfPair = 1e-3,
                        termOfWeighed = 5e-4, termOfScan = 1.2e-3;

} // namespace tk::limits::chunk_products

namespace tk::limits::split_contractions {

/// What lengths of parts are multiples of.
inline constexpr int64_t partUnit = 64;
/// The terms of another sum, and what part of the terms that are cut these are, which may be
/// computed where parts are added up.
inline constexpr int64_t mostTermsBeside = 128, timesTermsBeside = 16;
/// Times in terms that a processor adds up at the largest tiles' rate, about 2850 a nanosecond: to
/// read a byte of the operands, to store and add up an output of a part, to launch once more.
/// Measured on an H200 with 128 x 4096 and 1024 x 1024 outputs.
inline constexpr double costOfByte = 0.86, costOfOutput = 8, costOfLaunch = 7e6;
/// What a term of 8-bit floats takes of one of 16 bits, and of the time of the whole sum, what its
/// parts should take at most. Measured on an H200 with 128 x 1024 x 16384 (26.3 us whole, 14.3 in 4
/// parts), 256 x 512 x 8192 (15.6, 11.3) and 512 x 1024 x 8192 (16.6, 18.0 in 2).
inline constexpr double timeOfNarrowTerm = 0.47, worthOfNarrowParts = 0.9;
/// Fewer terms do not make up for storing and reading a part.
inline constexpr int64_t shortestPart = 1024;
/// Those of warps, whose blocks wait for each step: of four steps.
inline constexpr int64_t shortestPartOfWarps = 256;
/// Parts of a sum in 16 bits at most.
inline constexpr int64_t mostParts = 16;
/// Of sums so much longer than that there are as many parts as have so many terms each.
inline constexpr int64_t lengthOfManyParts = 8192;
/// Nanoseconds of a step of 64 terms of a block whose warps read rows that are not aligned, as
/// predicted for 64 x 16 and 64 x 64 outputs.
inline constexpr double timeOfStep = 360;
/// Of f32 and f64: more parts are chosen if they take less than this share of the time of fewer. To
/// store and add up a byte of a part takes so many times what a byte of memory does. Measured on an
/// H200 with 64 x 64 to 1024 x 1024 outputs.
inline constexpr double worthOfMoreParts = 0.96, partOfByte = 1.3;
/// Terms that such a part has at least, and what lengths of such parts are multiples of.
inline constexpr int64_t shortestWidePart = 64, wideUnit = 32;
/// Few rows and a factor that threads convert: how many blocks a processor should have, how many on
/// average read about as fast as memory gives, and how much more a second launch costs where each
/// term is scaled, which keeps threads busy. Measured on an H200 with weights of 8 bits: 64 blocks
/// take 2.45 times as long as their bytes at the rate of a copy, 128 1.32, 192 1.16, 256 1.07 to
/// 1.11; of 16 x 6144 x 4096, 96 blocks, two parts take 13.2 us for 13.8 where groups are scaled,
/// and 17.1 for less than 16.0 where terms are.
inline constexpr int64_t blocksThatRead = 2;
inline constexpr double blocksThatFill = 1.14, costOfScaledTerms = 2;
/// Up to so many parts, each is a term of its own where they are added up.
inline constexpr int64_t mostAskedParts = 64;
/// More parts, up to so many, are added up by a loop: as blocks of a multiprocessor or two have.
inline constexpr int64_t mostReducedParts = 512;

} // namespace tk::limits::split_contractions

namespace tk::limits::split_reductions {

/// Parts that a schedule block asks for begin at multiples of so many terms, so that their accesses
/// are as aligned as those of the whole.
inline constexpr int64_t partAlignment = 64;

} // namespace tk::limits::split_reductions

namespace tk::limits::split_scans {

/// Elements of a chunk of a row, and of columns that lie side by side.
inline constexpr int64_t chunkOfRow = 8192, chunkOfColumns = 1024;
/// Bytes that a block of columns has of each row at least.
inline constexpr int64_t leastBytesOfColumns = 32;

} // namespace tk::limits::split_scans

namespace tk::limits::squared_distances {

/// How many terms of a part the sample is the mean of: what a block reads at once.
inline constexpr int64_t sampleLength = 64;

} // namespace tk::limits::squared_distances

#endif // TK_PASSES_MACHINE_LIMITS_SPLITS_H
