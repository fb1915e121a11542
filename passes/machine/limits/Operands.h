//===- Operands.h - limits of operands, ranges and fusion -------*- C++ -*-===//
//
// When operands are stored in another form, ranges restricted, and statements fused or kept apart
// (passes/tensor/operands, ranges, normalize, fuse). Each namespace is that of the file that uses
// it. Values without a measurement beside them are assumed; a device that differs much from an
// H200 needs them looked at.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_OPERANDS_H
#define TK_PASSES_MACHINE_LIMITS_OPERANDS_H

#include <cstdint>
#include <limits>

namespace tk::limits::fuse_producers_cost {

/// How many rows have their reductions in parts (PlanParts.cpp, SplitChains.cpp).
inline constexpr int64_t fewRows = 64;
/// How many terms are so few that what is reduced of them is repeated for more values than
/// `fewValues`.
inline constexpr int64_t fewRepeatedTerms = 256;

} // namespace tk::limits::fuse_producers_cost

namespace tk::limits::fuse_products_cost {

/// Products that a block computes one in the terms of the other: what the inner one leaves is the
/// outer one's factor, in registers.
inline constexpr unsigned longestChain = 2;

} // namespace tk::limits::fuse_products_cost

namespace tk::limits::reduced_products {

/// More than any machine has use for.
inline constexpr int64_t many = int64_t(1) << 30;

} // namespace tk::limits::reduced_products

namespace tk::limits::reduced_pairs {

/// More bytes of pairs, written and read, are no scratch for a program that names none of them.
inline constexpr double mostBytes = 4e9;

} // namespace tk::limits::reduced_pairs

namespace tk::limits::scan_reads {

/// How many terms of each element a block may reduce beside a scan.
inline constexpr int64_t fewTerms = 16;
/// Of how many terms of a reduction a block may carry the scanned states.
inline constexpr int64_t heldStates = 1024;

} // namespace tk::limits::scan_reads

namespace tk::limits::separate_reductions {

/// Terms of a row that the block of a reduction around it has beside others
/// (Planner::indexInBlocks).
inline constexpr int64_t shortRowOfTerm = 1024;

} // namespace tk::limits::separate_reductions

namespace tk::limits::merge_computes {

/// The longest row that a block holds for a reduction and for what is computed of each element, and
/// the rows that each multiprocessor should have.
inline constexpr int64_t longestSharedRow = 8192, rowsOfProcessor = 4;

} // namespace tk::limits::merge_computes

namespace tk::limits::store_products {

/// So many sums the smallest tile of warpgroups has registers for (WarpgroupTiles.h).
inline constexpr size_t mostSums = 4;
/// Rows of the least tile of a chain, the widest that its factors have (PlanChains.cpp), and the
/// bytes of an element of these.
inline constexpr int64_t leastRowsOfTile = 64, widestTile = 256, bytesOfFactor = 2;

} // namespace tk::limits::store_products

namespace tk::limits::store_weights {

/// The most columns of a chain, and the outputs of a small tile of a product.
inline constexpr int64_t columnsOfChain = 256;
/// The outputs of that tile.
inline constexpr double outputsOfTile = 64 * 128;

} // namespace tk::limits::store_weights

namespace tk::limits::pad_conditions {

/// Taps of a window along an axis.
inline constexpr int64_t mostTaps = 64;

} // namespace tk::limits::pad_conditions

namespace tk::limits::axis_pairs {

/// Rows that most tiles of products have.
inline constexpr int64_t rowsOfProductTile = 128;

} // namespace tk::limits::axis_pairs

namespace tk::limits::form_windows {

/// The longest window. Blocks that go through longer rows have the same work from any begin.
inline constexpr int64_t mostTerms = 4096;
/// That of a sum of products of two operands: it is written out, and no matrix product any more.
inline constexpr int64_t mostTermsOfProduct = 8;
/// A reduction's range has so many windows at least.
inline constexpr int64_t leastShare = 2;

} // namespace tk::limits::form_windows

namespace tk::limits::group_factors {

/// More factors than this are left as they are: the search is over their pairs.
inline constexpr size_t mostFactors = 8;

} // namespace tk::limits::group_factors

namespace tk::limits::separate_products {

/// More sums than this have no registers together.
inline constexpr size_t mostProducts = 4;
/// A term of a pairwise contraction, and of a contraction in f32, in nanoseconds on an H200. 4096^3
/// terms are predicted 7015 us, and 1278 to 3440 us.
inline constexpr double pairTerm = 1e-4, contractionTerm = 5e-5;

} // namespace tk::limits::separate_products

namespace tk::limits::unroll_reductions {

/// How many terms are written out.
inline constexpr int64_t mostTerms = 8;
/// The same of windows whose places are folded: those of 3 x 3 elements.
inline constexpr int64_t mostWindowTerms = 9;
inline constexpr int64_t mostWindowOperations = 288;
/// Of a product's factor that lies along memory, by how many results.
inline constexpr int64_t mostReads = 8;
/// How many operations that makes at most.
inline constexpr int64_t mostOperations = 96;

} // namespace tk::limits::unroll_reductions

namespace tk::limits::align_sums {

/// Of shorter innermost loops slices of products are not filled.
inline constexpr double leastInnermost = 32;

} // namespace tk::limits::align_sums

namespace tk::limits::pad_factors {

/// Of fewer rows or columns on warpgroups nothing is known.
inline constexpr int64_t fewestRows = 8;

} // namespace tk::limits::pad_factors

namespace tk::limits::store_factors {

/// Terms of an inner sum that one tile of a chain holds.
inline constexpr int64_t longestInnerSum = 256;

} // namespace tk::limits::store_factors

namespace tk::limits::store_invariants {

/// Of how many elements at least one value is.
inline constexpr double leastShare = 4;
/// Results of one statement, whose tiles share a thread's registers.
inline constexpr size_t mostResults = 4;
/// Long functions that take as long as one power: a logarithm of twice the precision, and an
/// exponential.
inline constexpr double longFunctionsOfPower = 2.5;

} // namespace tk::limits::store_invariants

namespace tk::limits::unpack_factors {

/// Each number of a byte has sums, and registers, of its own.
inline constexpr int64_t mostNumbers = 4;

} // namespace tk::limits::unpack_factors

namespace tk::limits::bound_masks {

/// Rows of which one range is known: no tile of a warpgroup has fewer.
inline constexpr int64_t rowsOfGroup = 64;

} // namespace tk::limits::bound_masks

namespace tk::limits::chain_masks {

/// Launches more take as long as so many scores.
inline constexpr double fewestScores = 1 << 24;

} // namespace tk::limits::chain_masks

namespace tk::limits::group_rows {

/// Fewer rows than that leave most of a product's tile empty.
inline constexpr int64_t leastRows = 8;

} // namespace tk::limits::group_rows

namespace tk::limits::list_blocks {

/// Terms of a block. What a table names is at least as large where it pays.
inline constexpr int64_t termsOfBlock = 64;
/// More terms than any range has whose bounds are not known.
inline constexpr int64_t mostTerms = std::numeric_limits<int32_t>::max();

} // namespace tk::limits::list_blocks

namespace tk::limits::restrict_ranges {

/// In batch-invariant kernels: what lower bounds are multiples of. Tiles of contractions have 16 to
/// 128 elements along the reduction, and parts 256.
inline constexpr int64_t beginUnit = 256;

} // namespace tk::limits::restrict_ranges

namespace tk::limits::shift_ranges {

/// Terms of a range, on average, from which on a block has a row of its own.
inline constexpr double mostTerms = 2048;
/// The same of terms that are rows of a tensor: a block reads a long range of them as fast alone.
inline constexpr double mostTermsAcross = 64;
/// The elements of a row of which each term has a sum, which a warp computes at a time.
inline constexpr int64_t longestSummedRow = 128;

} // namespace tk::limits::shift_ranges

namespace tk::limits::operand_invariants {

/// Elements of a row of an operand's tile that one thread computes one such value for.
inline constexpr double elementsOfThread = 4;
/// Instructions of a value that is worth a compute op of its own: a load takes one or two.
inline constexpr double leastInstructions = 8;
/// Rows of a tile of a product, at least: a stored value is read once for all of them.
inline constexpr double rowsOfTileAtLeast = 64;

} // namespace tk::limits::operand_invariants

#endif // TK_PASSES_MACHINE_LIMITS_OPERANDS_H
