//===- ScalarCases.h - what is known of a launch's scalars ------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_SCALARCASES_H
#define TK_PASSES_ANALYSIS_SCALARCASES_H

#include "dialects/tk/TkDialect.h"
#include "dialects/tk/TkScheduleOps.h"

#include <optional>
#include <vector>

namespace tk {

/// Scores within soft caps that are no larger than this together need no maximum
/// (passes/numerics/BoundScores.cpp).
inline constexpr double kLargestCap = 50;

/// What the assumptions of a kernel say of a scalar.
struct AssumedNumber {
  bool isPositive = false;
  std::optional<double> largest;
};
AssumedNumber assumedOf(mlir::Value scalar);

/// The same of an integer; of a parameter that it is a conversion of.
struct AssumedInteger {
  int64_t divisor = 1; ///< a power of two
  std::optional<int64_t> least, most;
};
AssumedInteger assumedIntegerOf(mlir::Value scalar);

/// What a window's length should be: a multiple of a tile's rows, of at least some of them
/// (passes/pipeline/JoinEnds.cpp), and an index of 32 bits
/// (passes/tensor/ranges/RestrictRanges.cpp).
inline constexpr int64_t kWindowTile = 128, kLeastWindow = 384, kLongestWindow = int64_t(1) << 30;

/// The bounds of numbers of groups: powers of four (passes/tensor/keys/SortTerms.cpp).
inline constexpr int64_t kFewestGroups = 16, kMostGroups = int64_t(1) << 24;

/// The bounds of sizes that scalars are, powers of two: tiles are planned for them
/// (passes/plan/PlanElements.cpp). Longer ones are longer than a tile.
inline constexpr int64_t kShortestExtent = 4, kLongestExtent = 2048;

/// The largest divisor of such sizes: 16 bytes have as many elements of 8 bits.
inline constexpr int64_t kLargestExtentDivisor = 16;

/// Is a case one of a size, which is a condition on an integer alone?
bool isOfSize(ScalarCaseOp scalars);

/// Adds the conditions on scalar parameters that passes would use and that nothing says yet, as
/// tk.scalar_case. To be called on a kernel out of the frontend.
void addScalarCases(KernelOp kernel);

/// Makes the cases of a kernel assumptions, where they hold, and takes all others out.
void settleScalarCases(KernelOp kernel, const std::vector<bool> &holds);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_SCALARCASES_H
