//===- SignificandParts.h - the parts of a bf16x3 decomposition -*- C++ -*-===//
//
// The decisions (SignificandCost.cpp) and the stored parts (SignificandParts.cpp) of
// tk-split-significands. SplitSignificands.cpp rewrites the sums and defines the parts.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_FUSION_SIGNIFICANDPARTS_H
#define TK_PASSES_FUSION_SIGNIFICANDPARTS_H

#include "dialects/tk/TkDialect.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace tk {

/// Parts that are stored of a number, and pairs of parts that are multiplied of two.
inline constexpr int64_t countParts = 4, countPairs = 6;
/// Rows of parts, and the range of the sum, have a multiple of so many elements: whole lines, and
/// whole slices.
inline constexpr int64_t elementsOfSlice = 128;

/// The two factors of a term, if it is the product of two f32 loads.
std::optional<std::pair<LoadOp, LoadOp>> factorsOf(mlir::Value term);

/// The axis of what `load` reads that the sum is over.
unsigned axisOfSum(LoadOp load, ReduceOp reduce);

/// Is an axis that tiles run along made longer, to whole slices that end in zeros?
bool isMadeLonger(KernelOp kernel, mlir::Value extent);

/// An f32 constant.
mlir::Value createF32(mlir::OpBuilder &builder, mlir::Location loc, double value);

/// The left or right part of pair `pair`, an index: its number.
mlir::Value createPartOfPair(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value pair,
                             bool isLeft);

/// Part `which`, an index, of the f32 `scaled`. Numbers that are not `isBounded` by 2^127 may be
/// greater than bf16 holds: their first part is its greatest number.
mlir::Value createPart(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value scaled,
                       mlir::Value which, bool isBounded);

/// What sums of products in `compute` take on `processors`, on CUDA cores and by parts.
struct SignificandCost {
  KernelOp kernel;
  ComputeOp compute;
  int64_t processors;

  /// Do `sums` of known sizes save more than their factors' parts cost, and is there memory for
  /// these?
  bool pays(llvm::ArrayRef<ReduceOp> sums);
  /// Among how many blocks the pairs of parts of the only product of the statement are shared out.
  int64_t countShares(ReduceOp reduce);

private:
  double savedOf(ReduceOp reduce, mlir::Value term);
  bool areSizesKnown(llvm::ArrayRef<ReduceOp> sums);
};

/// A tensor's parts, and the scales that its rows have. A row is what one result is summed over.
struct StoredParts {
  mlir::Value parts;      ///< [part, axes of the tensor ...] in bf16
  mlir::Value reciprocal; ///< [axes of the tensor but the sum's ...], of rows' scales, in f32
  mlir::Value length;     ///< of the sum's axis, if that was made longer; or null
};

/// The parts of one kernel's tensors, for each axis that a sum is over.
class SignificandParts {
public:
  explicit SignificandParts(KernelOp kernel) : kernel(kernel) {}

  /// Stores, before `statement`, what its sums `sums` multiply and was not stored yet.
  void store(ComputeOp statement, llvm::ArrayRef<ReduceOp> sums);
  const StoredParts &of(LoadOp load, ReduceOp reduce) {
    return stored[{load.getTensor(), axisOfSum(load, reduce)}];
  }

private:
  using Factor = std::pair<mlir::Value, unsigned>;

  struct RowScales {
    mlir::Value scale, reciprocal;
  };

  RowScales storeScales(Factor factor);
  StoredParts storeParts(Factor factor, RowScales scales);
  mlir::Value lengthOf(mlir::Value extent);
  std::string nameOf(llvm::StringRef suffix);

  KernelOp kernel;
  ComputeOp compute; ///< the statement at hand
  llvm::MapVector<Factor, StoredParts> stored;
  llvm::MapVector<mlir::Value, mlir::Value> lengths; ///< what extents became
};

} // namespace tk

#endif // TK_PASSES_FUSION_SIGNIFICANDPARTS_H
