//===- ChainMasks.h - masks of fused attention loops ------------*- C++ -*-===//
//
// The properties of a mask that reads tensors, for tk-bound-masks. BoundMasks.cpp derives ranges of
// keys from them, ListBlocks.cpp lists of blocks.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_FUSION_CHAINMASKS_H
#define TK_PASSES_FUSION_CHAINMASKS_H

#include "passes/analysis/ScalarExpr.h"

#include <optional>

namespace tk {

inline constexpr llvm::StringLiteral boundMasksName = "tk-bound-masks";

/// The condition that selects all scores of a chain carried under a maximum, over one index of
/// terms, and the indices of its statement that it is over.
struct ChainMask {
  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  mlir::Value holds;
  mlir::Value extent;                ///< of the terms, which begin at 0
  llvm::SmallVector<unsigned> batch; ///< positions of indices that what the terms multiply is over
  std::optional<unsigned> row;       ///< the position of the other one

  mlir::Value getTerm() { return reduce.getIndex(0); }
  mlir::Value getRow() { return row ? mlir::Value(compute.getIndex(*row)) : mlir::Value(); }
  llvm::StringRef nameOf(unsigned position);
};

/// Reads `reduce`; nothing if it is no chain, or its mask reads no tensor.
std::optional<ChainMask> matchChainMask(KernelOp kernel, ComputeOp compute, ReduceOp reduce);

/// Where the range of a chain begins and ends for each row by what tensors hold, as a mask: offsets
/// of packed sequences.
struct LoadedBounds {
  ChainMask mask;           ///< holds between the bounds
  mlir::Value lower, upper; ///< what bounds that are loaded make of it; null if none is
};

/// Makes bounds of `reduce` that are loaded at rows, and whose extremes are known of groups of
/// `size`, a mask of its scores; nothing if there are none, or if its terms do not vanish with the
/// scores.
std::optional<LoadedBounds> liftBounds(KernelOp kernel, ComputeOp compute, ReduceOp reduce,
                                       int64_t size);

/// The scores of all maxima of `reduce`, with which all other terms vanish; none if others do not.
llvm::SmallVector<mlir::Value> findScores(ReduceOp reduce);

/// Is some score selected by a condition already, and -inf elsewhere?
bool areMasked(llvm::ArrayRef<mlir::Value> scores);

/// Has `scores` of `reduce` be -inf where `holds`, which is computed where its terms are, is false.
void maskScores(ReduceOp reduce, llvm::ArrayRef<mlir::Value> scores, mlir::Value holds);

/// Is a term 0 where the scores are -inf: a weight of one of them, also rounded and in products?
bool vanishes(mlir::Value term, llvm::ArrayRef<mlir::Value> scores);

/// Finds the index of rows, which what the terms multiply is not over, and the others that
/// `conditions` are over. False if there are several of rows, or too few scores.
bool findIndices(ChainMask &mask, mlir::ValueRange conditions);

/// May all that `values` are computed from be computed in statements of their own, whatever the
/// sizes of the other indices?
bool canMove(ChainMask &mask, mlir::ValueRange values);

/// May `value` differ between values of `index` that have one quotient by `size`? What is computed
/// from quotients by its multiples does not.
bool variesWithin(mlir::Value value, mlir::Value index, int64_t size, ComputeOp compute);

/// What a condition is for a group of rows: true for at least one, true for all.
struct Truth {
  mlir::Value some, every;
};

/// Conditions of a chain's rows and terms, in statements over groups of `size` rows. What they are
/// for a group follows from the least and the greatest value of what comparisons take of its rows;
/// what is read at quotients of the row that all of the group have is one value.
class GroupTruth {
public:
  GroupTruth(ChainMask &mask, int64_t size) : mask(mask), size(size) {}

  /// May `value` differ between rows of one group?
  bool varies(mlir::Value value) {
    return mask.row && variesWithin(value, mask.getRow(), size, mask.compute);
  }
  /// Is anything known of `condition` but for what it is for one row and one term?
  bool isKnown(mlir::Value condition);

  /// Begins the body of a statement over the mask's batch, and the groups of rows where there are
  /// rows. What all terms share is computed there.
  void begin(mlir::OpBuilder &body, mlir::Location loc, mlir::ValueRange places);
  /// What `condition` is at `term`, computed at `builder`.
  Truth at(mlir::OpBuilder &builder, mlir::Value term, mlir::Value condition);

  struct Interval {
    mlir::Value least, greatest;
  };
  /// Can the least and the greatest value over a group be told?
  bool isBounded(mlir::Value value);
  /// These two values.
  Interval bound(mlir::OpBuilder &builder, mlir::Value value);

private:
  bool hasParts(mlir::Value value);
  void padLoads(mlir::Value value);
  mlir::Value copy(mlir::OpBuilder &builder, mlir::Value value);
  Truth judge(mlir::OpBuilder &builder, mlir::Value condition);
  mlir::Value reduceRows(mlir::Value value, ReduceKind kind);

  ChainMask &mask;
  int64_t size;
  mlir::Operation *shared = nullptr;
  mlir::Value firstRow, endOfRows;
  mlir::IRMapping ofGroup, ofTerm;
  llvm::DenseMap<mlir::Value, Interval> rows;
};

/// How many groups of `size` the rows of a mask are, the last one perhaps not full.
mlir::Value createGroupCount(mlir::OpBuilder &builder, ChainMask &mask, int64_t size);

/// An index beside those of a mask's batch and groups.
struct FurtherIndex {
  llvm::StringRef name;
  mlir::Value extent;
};

/// A statement before the mask's own over its batch, its groups of `size` rows, if it has rows, and
/// perhaps a further index. `createValues` gives an i32 for each of `names`.
ComputeOp createOverGroups(
    ChainMask &mask, int64_t size, std::optional<FurtherIndex> further,
    llvm::ArrayRef<llvm::StringRef> names,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::ValueRange)>
        createValues);

/// Where in results of such a statement a row of the mask's own looks, but for the further index.
llvm::SmallVector<mlir::Value> createGroupIndices(mlir::OpBuilder &builder, ChainMask &mask,
                                                  int64_t size);

/// Lists the blocks of terms that groups of rows see, and has the chain go through these; false if
/// the mask reads no table of blocks.
bool listBlocks(ChainMask &mask);

} // namespace tk

#endif // TK_PASSES_FUSION_CHAINMASKS_H
