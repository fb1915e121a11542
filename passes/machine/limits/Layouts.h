//===- Layouts.h - limits of layouts and of tiles' loops ---*- C++ -*-===//
//
// How tiles lie in registers and in shared memory, and how large they may be (passes/layout,
// passes/tiling). Each namespace is that of the file that uses it. Values without a measurement
// beside them are assumed; a device that differs much from an H200 needs them looked at.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_LAYOUTS_H
#define TK_PASSES_MACHINE_LIMITS_LAYOUTS_H

#include <cstdint>

namespace tk::limits::align_rows {

/// Blocks of more warps move pairs of elements no faster than vectors.
inline constexpr int64_t mostWarpsOfPairs = 2;
/// A warp moves a row of no more bytes by elements.
inline constexpr int64_t shortRowBytes = 640 * 2;

} // namespace tk::limits::align_rows

namespace tk::limits::blocked_layouts {

/// Tiles of which a thread has no more are not cut into parts (tk-cut-stores).
inline constexpr int64_t mostUncut = 32;
/// Blocks of 32 warps are alone on their multiprocessors, and have no gain: residual + RMSNorm to
/// f8 of 2048 x 32768 on an H200 0.932 of the copy, side by side 0.913.
inline constexpr size_t mostWarpBits = 4;

} // namespace tk::limits::blocked_layouts

namespace tk::limits::bulk_box {

/// Rows of a group that are gathered together at least: of fewer the one thread that begins copies
/// would begin too many.
inline constexpr int64_t kLeastGroup = 4;

} // namespace tk::limits::bulk_box

namespace tk::limits::form_warpgroup_dots {

/// Up to so many columns reading the right operand into the registers of each warp costs less than
/// reading the left one in pairs.
inline constexpr int64_t kFewColumns = 16;
/// Four lanes read 16 bytes each of a row in shared memory.
inline constexpr int64_t kLanesBytes = 64;

} // namespace tk::limits::form_warpgroup_dots

namespace tk::limits::read_once {

/// How many times the second-level cache a tensor may be for a part of it to last until the next
/// launch (16 rows by 28672 x 8192 of bf16, 470 MB, gain 3 % warm and lose as much cold).
inline constexpr int64_t mostCaches = 6;

} // namespace tk::limits::read_once

namespace tk::limits::settled_masks {

/// What is farther away than any index is unbounded.
inline constexpr int64_t farAway = int64_t(1) << 40;

} // namespace tk::limits::settled_masks

namespace tk::limits::slice_products {

/// What accumulators and operands that stay may take of a thread's 1020 bytes of registers.
inline constexpr int64_t kRegisterBytes = 768;
/// What accumulators and two slices of FMA operands may take: all but those of addresses.
inline constexpr int64_t kSlicedBytes = 960;

} // namespace tk::limits::slice_products

namespace tk::limits::block_loops {

/// The largest tile, in elements a thread, that a sum may spread over registers.
inline constexpr int64_t maxElementsPerThread = 64;

} // namespace tk::limits::block_loops

namespace tk::limits::block_ranges {

/// So many numbers are loaded one by one where a tile begins.
inline constexpr int64_t mostGroups = 8;
/// What loops that begin where a mask does begin at a multiple of, in terms.
inline constexpr int64_t alignment = 16;

} // namespace tk::limits::block_ranges

namespace tk::limits::gather_layouts {

/// Indices of a gather that a thread loads at most, so that it has all that it needs.
inline constexpr int64_t mostLoadedAgain = 8;

} // namespace tk::limits::gather_layouts

#endif // TK_PASSES_MACHINE_LIMITS_LAYOUTS_H
