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
/// Bytes of an element that is stored in 16 bits and read again.
inline constexpr double bytesMoved = 4;
/// The tiles of products whose operand threads unpack.
inline constexpr double rowsOfTile = 128, columnsOfTile = 64;
/// Rows of products whose sums are cut into parts where an operand is converted
/// (SplitContractions).
inline constexpr double rowsOfParts = 64;

} // namespace tk::limits::store_numbers

namespace tk::limits::analyze_packed {

/// Columns of a tile whose words warpgroups read in boxes.
inline constexpr int64_t columnsOfWords = 64;

} // namespace tk::limits::analyze_packed

namespace tk::limits::warpgroup_operands {

/// So many elements of a tile of a left operand that read one stored element, such as the scale of
/// a group, leave so few loads that they need no shared memory. Assumed.
inline constexpr int64_t timesOfFew = 16;

} // namespace tk::limits::warpgroup_operands

#endif // TK_PASSES_MACHINE_LIMITS_PACKED_H
