//===- KnownValues.h - integers of a program at given sizes -----*- C++ -*-===//
//
// Evaluates the integers of a tk.kernel or a tkgpu.func for sizes and block numbers that are given:
// extents, coordinates, bounds of loops, conditions. A tile of one axis is known as a line (its
// first element and the distance of neighbours), a mask as the share of its elements that is true.
// What depends on data is unknown.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_KNOWNVALUES_H
#define TK_PASSES_MACHINE_KNOWNVALUES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace tk {

/// What is known of a value.
struct Known {
  /// AtMost: data says how much less than `base` it is.
  enum class Kind : uint8_t { Unknown, AtMost, Scalar, Line, Share } kind = Kind::Unknown;
  int64_t base = 0;    ///< the scalar, or a line's first element
  int64_t step = 0;    ///< of a line
  int64_t count = 0;   ///< of a line: elements that count
  double share = 1;    ///< of a mask: elements that are true
  uint64_t symbol = 0; ///< of what depends on data: equal where it is the same data
  int64_t span = 0;    ///< of an irregular line: from its first element to its last, if known

  /// A step that no line has: neighbours are not equally far apart.
  static constexpr int64_t irregular = INT64_MIN;

  static Known scalar(int64_t value) { return {Kind::Scalar, value}; }
  static Known atMost(int64_t value) { return {Kind::AtMost, value}; }
  static Known line(int64_t base, int64_t step, int64_t count) {
    return {Kind::Line, base, step, count};
  }
  static Known mask(double share) { return {Kind::Share, 0, 0, 0, share}; }
  bool isScalar() const { return kind == Kind::Scalar; }
  bool isLine() const { return kind == Kind::Line; }
};

/// Where a block is.
struct BlockPlace {
  int64_t id[3] = {0, 0, 0};
  int64_t blocks[3] = {1, 1, 1};
  int64_t cluster = 1;
  unsigned warpgroup = 0; ///< whose of tkgpu.of_warpgroup's operands count
  int64_t told = 0;       ///< numbers that the block has been told so far
};

class KnownValues {
public:
  explicit KnownValues(BlockPlace place = {}) : place(place) {}

  void set(mlir::Value value, Known known) { values[value] = known; }
  void setScalar(mlir::Value value, int64_t number) { set(value, Known::scalar(number)); }
  void forget(mlir::Value value) { values.erase(value); }
  Known get(mlir::Value value) const { return values.lookup(value); }
  std::optional<int64_t> scalar(mlir::Value value) const;
  /// The scalar, or the most that it may be.
  std::optional<int64_t> estimate(mlir::Value value) const;
  /// A number that is the same for equal values of one program.
  uint64_t key(mlir::Value value) const;

  /// Evaluates an operation without regions; its results are unknown if it is of another kind.
  void evaluate(mlir::Operation *op);

  BlockPlace place;

private:
  Known evaluateArith(mlir::Operation *op) const;
  Known evaluateTile(mlir::Operation *op);
  Known evaluatePlace(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, Known> values;
};

} // namespace tk

#endif // TK_PASSES_MACHINE_KNOWNVALUES_H
