//===- SignificandParts.h - the parts of a bf16x3 decomposition -*- C++ -*-===//
//
// The decisions (SignificandCost.cpp) and the stored parts (SignificandParts.cpp) of
// tk-split-significands. SplitSignificands.cpp rewrites the sums and defines the parts.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_SPLIT_SIGNIFICANDPARTS_H
#define TK_PASSES_TENSOR_SPLIT_SIGNIFICANDPARTS_H

#include "dialects/tk/TkDialect.h"
#include "passes/analysis/PartPairs.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace tk {

/// The number of elements of which rows of parts, and the range of the sum, have a multiple: whole
/// lines and whole slices.
inline constexpr int64_t elementsOfSlice = 128;

/// The two factors of a term, if it is the product in f32 of two loads: of f32, or extended from
/// 16 bits of two types.
std::optional<std::pair<LoadOp, LoadOp>> factorsOf(mlir::Value term);

/// How many parts the numbers of `type` have: bf16 is one itself, and f16 has 11 bits.
int64_t partsOf(mlir::Type type);

/// How many pairs of parts are multiplied of two numbers that have so many parts.
int64_t countPairsOf(int64_t leftParts, int64_t rightParts);

/// The axes of a loaded tensor along which a sum runs: that of its innermost index, which slices
/// are cut along, and the set of the others, a bit each.
struct SumAxes {
  unsigned inner;
  unsigned others;

  bool has(unsigned axis) const { return axis == inner || ((others >> axis) & 1) != 0; }
};

/// The axes of what `load` reads along which `reduce` runs.
SumAxes axesOfSum(LoadOp load, ReduceOp reduce);

/// `values`, one for each axis of a tensor, without those of the axes that the sum is over.
template <typename Range> auto withoutSum(const Range &values, SumAxes sum) {
  auto all = llvm::to_vector(values);
  decltype(all) rest;
  for (auto [axis, value] : llvm::enumerate(all))
    if (!sum.has(axis))
      rest.push_back(value);
  return rest;
}

/// True if an axis along tiles is padded to whole slices that end in zeros.
bool isMadeLonger(KernelOp kernel, mlir::Value extent);

/// An f32 constant.
mlir::Value createF32(mlir::OpBuilder &builder, mlir::Location loc, double value);

/// The number of the left or right part of pair `pair`, an index.
mlir::Value createPartOfPair(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value pair,
                             bool isLeft, int64_t leftParts = 3, int64_t rightParts = 3);

/// Part `which`, an index, of the f32 `scaled`. A number that is not `isBounded` by 2^127 may
/// exceed bf16; its first part is then the greatest bf16 number.
mlir::Value createPart(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value scaled,
                       mlir::Value which, bool isBounded);

/// The time of contractions in `compute` on `processors` multiprocessors, on CUDA cores and by
/// bf16x3 decomposition.
struct SignificandCost {
  KernelOp kernel;
  ComputeOp compute;
  int64_t processors;

  /// True if `sums` of known sizes save more time than the parts of their operands cost, and the
  /// parts fit the memory.
  bool pays(llvm::ArrayRef<ReduceOp> sums);
  /// The number of blocks that divide the pairs of parts of the compute op's only contraction among
  /// themselves.
  int64_t countShares(ReduceOp reduce);
  /// True if the product of `left` and `right` in f32 saves more than the parts of its operands
  /// cost, and the `bytesStored` of those that are computed.
  bool paysStored(ReduceOp reduce, mlir::Value left, mlir::Value right, double bytesStored);
  /// Is the plain product `reduce` of f32 and 16 bits faster if the narrow factor is stored in f32?
  bool paysWidened(ReduceOp reduce);

private:
  double savedOf(ReduceOp reduce, mlir::Value term);
  bool areSizesKnown(llvm::ArrayRef<ReduceOp> sums);
};

/// Stores the computed f32 operands of contractions in `compute` by compute ops of their own, if
/// the contraction by parts then takes less time (ComputedOperands.cpp). Those among `known` are
/// taken where they are equal; adds what it stores to them.
void storeComputedOperands(KernelOp kernel, ComputeOp compute, int64_t processors,
                           llvm::SmallVectorImpl<ComputeOp> &known);

/// A tensor's parts, and the scales of its rows. A row has the elements of one result's sum, along
/// all indices of it.
struct StoredParts {
  mlir::Value parts;      ///< [part, axes of the tensor ...] in bf16
  mlir::Value reciprocal; ///< [axes of the tensor but the sum's ...], of rows' scales, in f32
  mlir::Value length;     ///< of the axis of the innermost index, if it was padded; or null
};

/// The parts of one kernel's tensors, for each set of axes along which a sum runs.
class SignificandParts {
public:
  explicit SignificandParts(KernelOp kernel) : kernel(kernel) {}

  /// Stores, in front of `statement`, the operands of its contractions `sums` that are not stored
  /// yet.
  void store(ComputeOp statement, llvm::ArrayRef<ReduceOp> sums);
  /// Stores all of what `load` of 16 bits reads in f32; a load of that in its place.
  LoadOp storeWide(LoadOp load);
  const StoredParts &of(LoadOp load, ReduceOp reduce) { return stored[keyOf(load, reduce)]; }

private:
  struct Factor {
    mlir::Value tensor;
    SumAxes sum;
  };
  using Key = std::pair<mlir::Value, std::pair<unsigned, unsigned>>;

  struct RowScales {
    mlir::Value scale, reciprocal;
  };

  static Key keyOf(LoadOp load, ReduceOp reduce) {
    const SumAxes sum = axesOfSum(load, reduce);
    return {load.getTensor(), {sum.inner, sum.others}};
  }
  RowScales storeScales(Factor factor);
  StoredParts storeParts(Factor factor, RowScales scales);
  mlir::Value lengthOf(mlir::Value extent);
  std::string nameOf(llvm::StringRef suffix);

  KernelOp kernel;
  ComputeOp compute; ///< the present compute op
  llvm::MapVector<Key, StoredParts> stored;
  llvm::MapVector<mlir::Value, mlir::Value> lengths; ///< from extents to their padded lengths
};

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_SIGNIFICANDPARTS_H
