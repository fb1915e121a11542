//===- CountedRows.h - rows whose places are counted through ----*- C++ -*-===//
//
// Along one axis of a tile a count c, c + 1, ... may stand for several indices of a tensor, each of
// which is a digit of it: with E0 and E1 places along two axes
//
//   count % E1    count / E1 % E0    count / E1 / E0
//
// Each index is a multiple of its digit, plus scalars.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_COUNTEDROWS_H
#define TK_PASSES_LAYOUT_COUNTEDROWS_H

#include "passes/layout/MemoryAccess.h"

namespace tk {

/// A scalar of the function, or a tile of one number.
struct CountedExtent {
  mlir::Value value;
  std::optional<int64_t> number;

  mlir::Value build(mlir::OpBuilder &builder, mlir::Location loc) const;
};

/// One index: `step` times its digit, plus `number` and multiples of scalars.
struct CountedDigit {
  int64_t step = 1, number = 0;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> scalars;
  CountedExtent extent; ///< how many values the digit has; of the outermost one not known

  bool isPlain() const { return step == 1 && number == 0 && scalars.empty(); }
  /// What is added to multiples of the digit, at the builder's position, less `base`.
  mlir::Value buildDistance(mlir::OpBuilder &builder, mlir::Location loc, int64_t base) const;
};

struct CountedRows {
  mlir::Value count;                      ///< the tile of its values
  llvm::SmallVector<mlir::Value> starts;  ///< which add up to the first one
  unsigned first = 0;                     ///< the tensor's axis of the outermost digit
  llvm::SmallVector<CountedDigit> digits; ///< from the outermost one inwards

  unsigned end() const { return first + digits.size(); }
  /// Do the axes follow each other in memory without a gap, so that the count is one index of all?
  bool areContiguous(mlir::ValueRange strides) const;
  /// The digits of the first row, at the builder's position.
  llvm::SmallVector<mlir::Value> buildFirst(mlir::OpBuilder &builder, mlir::Location loc) const;
};

/// Reads the indices of `access` along `axis` of its tile, of which there are two at least, side by
/// side.
std::optional<CountedRows> readCountedRows(const MemoryAccess &access, int64_t axis);

/// The least and the greatest value of a scalar of a function; nothing if there are no bounds.
struct ScalarRange {
  int64_t least = 0, most = 0;
};
std::optional<ScalarRange> rangeOfScalar(mlir::Value scalar);

} // namespace tk

#endif // TK_PASSES_LAYOUT_COUNTEDROWS_H
