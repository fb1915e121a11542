//===- RankTest.h - comparisons of elements of two rows ---------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_RANKTEST_H
#define TK_PASSES_TENSOR_KEYS_RANKTEST_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// A condition `a[u] < b` of a reduction over u, or with <=, > or >=. Terms with `a[u] == b` may be
/// decided by `u < tie` or `u > tie`.
struct RankTest {
  mlir::Value key;           ///< a[u]
  mlir::Value bound;         ///< b
  mlir::Value tie;           ///< an index, or null
  bool isDescending = false; ///< larger keys come first
  bool isInclusive = false;  ///< equal keys count
  bool isBackward = false;   ///< of equal keys the later ones come first
  bool isUnsigned = false;
};

/// Matches a comparison of floats of 32 bits or fewer, or of integers of 32 bits or fewer.
std::optional<RankTest> matchRankTest(mlir::Value condition, mlir::Value index);

/// The number of `key` at the index `u`, an i64. Terms that count have numbers before the limit of
/// their bound. NaN has the last number. Numbers of different indices differ.
mlir::Value numberOf(mlir::OpBuilder &at, mlir::Location loc, const RankTest &test, mlir::Value key,
                     mlir::Value u);
/// The index of the key with the number `number`.
mlir::Value indexOf(mlir::OpBuilder &at, mlir::Location loc, const RankTest &test,
                    mlir::Value number);
/// The limit of the bound. If it is NaN no number is before it.
mlir::Value limitOf(mlir::OpBuilder &at, mlir::Location loc, const RankTest &test);
/// Is `number` before `limit`?
mlir::Value isBefore(mlir::OpBuilder &at, mlir::Location loc, const RankTest &test,
                     mlir::Value number, mlir::Value limit);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_RANKTEST_H
