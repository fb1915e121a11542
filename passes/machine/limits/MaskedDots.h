//===- MaskedDots.h - numbers of kinds of elements --------------*- C++ -*-===//
#ifndef TK_PASSES_MACHINE_LIMITS_MASKEDDOTS_H
#define TK_PASSES_MACHINE_LIMITS_MASKEDDOTS_H

#include <cstdint>

namespace tk::limits::masked_dots {

/// What elements are that are not finite, as numbers that all types of operands have. A sum of
/// fewer than kNan infinities of either sign, and of any NaN, tells which kinds it has.
inline constexpr int64_t kNan = 256, kInfinity = 1;
inline constexpr double kMinusInfinity = 0x1p-9;

/// Sums of a thread beside which values are counted, or a mask that reads tensors is computed. With
/// 64, documents in 128 columns spill 170 bytes, and causal attention by mma.sync in 64 columns
/// 112.
inline constexpr int64_t kMostSums = 32;
/// Sums of a thread beside which warpgroups keep flags and counters of a second run. With 128,
/// attention in 256 columns spills 64 bytes; with 64, scores with ALiBi in a window 28.
inline constexpr int64_t kMostSumsBesideFlags = 64;
/// Sums of a thread by mma.sync, of all results, beside which single elements are computed again
/// without a function call. With 130, causal attention of 128 columns spills 88 bytes for 4; with
/// 256, its gradient 33 kB more.
inline constexpr int64_t kMostSumsOfElements = 160;

} // namespace tk::limits::masked_dots

#endif // TK_PASSES_MACHINE_LIMITS_MASKEDDOTS_H
