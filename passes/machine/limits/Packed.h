//===- Packed.h - limits of operands of packed numbers ----------*- C++ -*-===//
//
// When threads unpack the numbers of words, and when a compute op stores them. Each namespace is
// that of the file that uses it.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_PACKED_H
#define TK_PASSES_MACHINE_LIMITS_PACKED_H

#include <cstdint>

namespace tk::limits::store_numbers {

/// Nanoseconds of all multiprocessors together for an element that threads unpack: a shift, a mask,
/// a conversion, a scale and a rounding. Predicted: products of 4096 x 4096 packed along the sum
/// take 15.5 us a tile of 128 rows.
inline constexpr double timeOfElement = 9e-4;
/// The same for blocks of a sum with scales of their own. Predicted: 68 us for 256 rows of 4096 x
/// 4096 weights in blocks of 32, and 27 with stored operands.
inline constexpr double timeInBlock = 1.25e-3;
/// Rows from which it is so: fewer are reductions of each result, 9 us for one row.
inline constexpr double leastRowsOfBlocks = 8;
/// The same for an element that is multiplied by an 8-bit integer on CUDA cores: of one row, and of
/// several. Predicted: 8.9 us for 4096 x 4096 weights of 2 bits and one row, 190 us for two rows.
inline constexpr double timeOfTerm = 5.3e-4, timeOfProduct = 1.1e-2;
/// Bytes that rows of boxes have, at least (BulkBox.cpp).
inline constexpr double bytesOfRow = 32;
/// Bytes of an element that is stored in 16 bits and read again.
inline constexpr double bytesMoved = 4;
/// The tiles of products whose operand threads unpack.
inline constexpr double rowsOfTile = 128, columnsOfTile = 64;
/// Terms that parts of sums are multiples of (ContractionFactors.h).
inline constexpr int64_t termsOfPart = 128;

} // namespace tk::limits::store_numbers

namespace tk::limits::unpack_factors {

/// Rows of a product whose sum becomes one for each number of a byte, where warpgroups do not
/// unpack boxes of words.
inline constexpr double mostRows = 32;
/// Terms of a slice of such boxes: the sum has whole ones.
inline constexpr int64_t leastTerms = 64;

} // namespace tk::limits::unpack_factors

namespace tk::limits::gather_factors {

/// Nanoseconds saved of a term by storing an operand whose elements a table gathers along the sum.
/// Predicted beside weights of 4 bits, 4096 x 4096: 64 rows 190 us instead of 20, 4096 rows 2860 us
/// instead of 200.
inline constexpr double savedByTerm = 4e-5;

} // namespace tk::limits::gather_factors

namespace tk::limits::unpacked_elements {

/// Neighbours along the sum that share a number which threads load by themselves: a thread of a
/// warpgroup's operand has 4 of 8 neighbours.
inline constexpr int64_t kLeastOfGroup = 16;

} // namespace tk::limits::unpacked_elements

namespace tk::limits::analyze_packed {

/// Columns of a tile whose words warpgroups read in boxes.
inline constexpr int64_t columnsOfWords = 64;

} // namespace tk::limits::analyze_packed

#endif // TK_PASSES_MACHINE_LIMITS_PACKED_H
