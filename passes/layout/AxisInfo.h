//===- AxisInfo.h - contiguity, constancy and divisibility ------*- C++ -*-===//
//
// What is known of index values: how far they run in steps of one along each axis of a tile, how
// far they stay the same, and by which power of two they can be divided. Vector accesses and
// asynchronous copies rest on nothing else.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_AXISINFO_H
#define TK_PASSES_LAYOUT_AXISINFO_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace tk {

/// Along one axis, all powers of two.
struct AxisFacts {
  int64_t contiguity = 1;   ///< aligned groups of this many elements are consecutive integers
  int64_t constancy = 1;    ///< aligned groups of this many elements are equal
  int64_t divisibility = 1; ///< divides the first element of each contiguous group
};

/// The facts of a value: one entry for each axis of a tile. For a scalar no axes, and
/// `divisibility` is the value's.
struct ValueFacts {
  llvm::SmallVector<AxisFacts> axes;
  int64_t divisibility = 1;
};

/// Computes facts on demand and remembers them. Values must not change while it lives.
class AxisInfo {
public:
  /// With `gathers` also of tiles that are loaded: equal where their indices are. What they are
  /// behind the end of the loop that loads them counts for nothing.
  explicit AxisInfo(bool gathers = false) : gathers(gathers) {}

  const ValueFacts &of(mlir::Value value);
  /// The power of two that divides a scalar.
  int64_t divisibilityOf(mlir::Value scalar) { return of(scalar).divisibility; }

private:
  ValueFacts compute(mlir::Value value);
  ValueFacts loadedFacts(mlir::Value loaded);
  bool gathers;
  llvm::DenseMap<mlir::Value, ValueFacts> known;
};

/// The divisibility of 0, and of what is not bounded otherwise.
inline constexpr int64_t kAnyDivisor = int64_t(1) << 30;

/// The constant that `value` is: a scalar, or a tile of one value.
std::optional<int64_t> constantIndex(mlir::Value value);

} // namespace tk

#endif // TK_PASSES_LAYOUT_AXISINFO_H
