//===- RankTest.h - comparisons of elements of two rows ---------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_RANKTEST_H
#define TK_PASSES_TENSOR_KEYS_RANKTEST_H

#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

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

/// The order of a key or a bound as that of an integer of 64 bits, from -2^31 up to 2^31 - 1. As a
/// key NaN is the last one, as a bound the first one.
mlir::Value orderOf(mlir::OpBuilder &at, mlir::Location loc, const RankTest &test,
                    mlir::Value value, bool isKey);
/// A comparison of a key on its left with a float of 32 bits.
struct OrderTest {
  mlir::Value bound;
  mlir::arith::CmpFPredicate predicate;
};
/// The comparison that holds for keys whose order is at most `order`, an i64. An order before that
/// of all numbers has NaN for a bound.
OrderTest notAbove(mlir::OpBuilder &at, mlir::Location loc, const RankTest &test,
                   mlir::Value order);
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
