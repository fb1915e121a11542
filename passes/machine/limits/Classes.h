//===- Classes.h - when sizes share code ------------------------*- C++ -*-===//
//
// When a call runs the code of classes of sizes instead of code for its own sizes
// (compiler/ClassChoice.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_CLASSES_H
#define TK_PASSES_MACHINE_LIMITS_CLASSES_H

#include <cstdint>

namespace tk::limits::class_choice {

/// Of the predicted time of its own code, what the code of classes may take.
inline constexpr double mostOfOwnTime = 1.05;
/// Nanoseconds that it may take longer in any case: what queued launches add to each other.
inline constexpr double ofQueuedLaunch = 700;
/// Keys tell no larger divisors of most sizes apart: see RelevantFacts.cpp.
inline constexpr int64_t largestDivisor = 128;
/// Beyond this a size's key tells too little of it for a prediction.
inline constexpr int64_t largestPredicted = int64_t(1) << 31;

} // namespace tk::limits::class_choice

#endif // TK_PASSES_MACHINE_LIMITS_CLASSES_H
