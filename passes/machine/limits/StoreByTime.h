//===- StoreByTime.h - when other choices of fusion are tried ---*- C++ -*-===//
#ifndef TK_PASSES_MACHINE_LIMITS_STOREBYTIME_H
#define TK_PASSES_MACHINE_LIMITS_STOREBYTIME_H

#include <cstdint>

namespace tk::limits::store_by_time {

/// Kernels whose predicted time is above so many times the least time, and above so many ns, are
/// lowered again with results stored. No program of bench/programs/sizes.txt gets another predicted
/// time by that.
inline constexpr double kTimesLeast = 1.5, kLeastTime = 20000;

/// The same for products that are stored for readers which reduce their rows, and for products
/// whose axes are not in order: there are few of them, and so few comparisons.
inline constexpr double kTimesLeastOfProducts = 1.5;

/// Part of the predicted time that a stored result must leave at most: models err by less. Part of
/// it that another one behind it must leave.
inline constexpr double kMostOfTime = 0.8, kMostOfTimeMore = 0.9;

/// Part of the predicted time at which a result is stored before others are tried.
inline constexpr double kEnoughOfTime = 0.25;

/// Results that are stored one after the other.
inline constexpr unsigned kMostResults = 3;
/// Operations of kernels that are lowered to compare them, about 2 s of compilation where walks
/// over blocks are short.
inline constexpr unsigned kMostOperations = 5000;

} // namespace tk::limits::store_by_time

#endif // TK_PASSES_MACHINE_LIMITS_STOREBYTIME_H
