//===- ChainMasks.h - masks of fused attention loops ------------*- C++ -*-===//
//
// The properties of a mask that reads tensors, for tk-bound-masks. BoundMasks.cpp derives ranges of
// keys from them, ListBlocks.cpp lists of blocks.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_RANGES_CHAINMASKS_H
#define TK_PASSES_TENSOR_RANGES_CHAINMASKS_H

#include "passes/analysis/ScalarExpr.h"

#include <optional>

namespace tk {

inline constexpr llvm::StringLiteral boundMasksName = "tk-bound-masks";

/// The condition that selects all scores of a fused attention loop with a running maximum, over one
/// index of keys, and the indices of the compute op that the condition uses.
struct ChainMask {
  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  mlir::Value holds;
  mlir::Value extent;                ///< of the keys, which begin at 0
  llvm::SmallVector<unsigned> batch; ///< positions of the indices of the keys' operands
  std::optional<unsigned> row;       ///< the position of the row index

  mlir::Value getTerm() { return reduce.getIndex(0); }
  mlir::Value getRow() { return row ? mlir::Value(compute.getIndex(*row)) : mlir::Value(); }
  llvm::StringRef nameOf(unsigned position);
};

/// Matches `reduce`. Returns nothing if it is no fused attention loop, or if its mask reads no
/// tensor.
std::optional<ChainMask> matchChainMask(KernelOp kernel, ComputeOp compute, ReduceOp reduce);

/// The bounds of a fused attention loop that tensors hold for each row, as a mask: the offsets of
/// packed sequences.
struct LoadedBounds {
  ChainMask mask;           ///< holds between the bounds
  mlir::Value lower, upper; ///< the loaded bounds; null if there is none
};

/// Turns bounds of `reduce` that are loaded at rows into a mask of its scores. The extremes of the
/// bounds over groups of `size` rows must be known. Returns nothing if there are no such bounds, or
/// if the elements do not vanish with the scores.
std::optional<LoadedBounds> liftBounds(KernelOp kernel, ComputeOp compute, ReduceOp reduce,
                                       int64_t size);

/// The scores of all maxima of `reduce`, with which all other elements vanish. Empty if other
/// elements do not vanish.
llvm::SmallVector<mlir::Value> findScores(ReduceOp reduce);

/// True if a condition already selects a score, with -inf elsewhere.
bool areMasked(llvm::ArrayRef<mlir::Value> scores);

/// Makes `scores` of `reduce` -inf if `holds` is false. `holds` is computed where the elements are.
void maskScores(ReduceOp reduce, llvm::ArrayRef<mlir::Value> scores, mlir::Value holds);

/// True if an element is 0 for scores of -inf: it is the softmax numerator of one of them, possibly
/// rounded and multiplied.
bool vanishes(mlir::Value term, llvm::ArrayRef<mlir::Value> scores);

/// Finds the row index, which does not index the operands of the keys, and the other indices of
/// `conditions`. False if there are several row indices, or too few scores.
bool findIndices(ChainMask &mask, mlir::ValueRange conditions);

/// True if everything that `values` are computed from can be computed in compute ops of its own,
/// for all sizes of the other indices.
bool canMove(ChainMask &mask, mlir::ValueRange values);

/// True if `value` may differ between values of `index` that have one quotient by `size`. A value
/// that is computed from quotients by multiples of `size` does not differ.
bool variesWithin(mlir::Value value, mlir::Value index, int64_t size, ComputeOp compute);

/// The value of a condition for a group of rows: true for at least one row, true for all rows.
struct Truth {
  mlir::Value some, every;
};

/// Conditions on the rows and keys of a fused attention loop, in compute ops over groups of `size`
/// rows. The value for a group follows from the least and the greatest value that comparisons use
/// of its rows. An element that is read at a quotient of the row, equal within the group, is one
/// value.
class GroupTruth {
public:
  GroupTruth(ChainMask &mask, int64_t size) : mask(mask), size(size) {}

  /// True if `value` may differ between rows of one group.
  bool varies(mlir::Value value) {
    return mask.row && variesWithin(value, mask.getRow(), size, mask.compute);
  }
  /// True if `condition` can be evaluated for a group of rows, and not only for one row and one
  /// key.
  bool isKnown(mlir::Value condition);

  /// Begins the body of a compute op over the mask's batch, and over the groups of rows if there
  /// are rows. Values that all keys share are computed there.
  void begin(mlir::OpBuilder &body, mlir::Location loc, mlir::ValueRange places);
  /// The value of `condition` at key `term`, computed at `builder`.
  Truth at(mlir::OpBuilder &builder, mlir::Value term, mlir::Value condition);

  struct Interval {
    mlir::Value least, greatest;
  };
  /// True if the least and the greatest value over a group can be computed.
  bool isBounded(mlir::Value value);
  /// The least and the greatest value over a group.
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

/// The number of groups of `size` rows of a mask. The last group may not be full.
mlir::Value createGroupCount(mlir::OpBuilder &builder, ChainMask &mask, int64_t size);

/// An index besides those of a mask's batch and groups.
struct FurtherIndex {
  llvm::StringRef name;
  mlir::Value extent;
};

/// A compute op in front of the mask's own, over its batch, its groups of `size` rows, if it has
/// rows, and possibly a further index. `createValues` gives an i32 for each of `names`.
ComputeOp createOverGroups(
    ChainMask &mask, int64_t size, std::optional<FurtherIndex> further,
    llvm::ArrayRef<llvm::StringRef> names,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::ValueRange)>
        createValues);

/// The indices, except for the further one, at which a row of the mask's own compute op reads the
/// results of such a compute op.
llvm::SmallVector<mlir::Value> createGroupIndices(mlir::OpBuilder &builder, ChainMask &mask,
                                                  int64_t size);

/// Lists the blocks of keys that groups of rows see, and makes the attention loop visit these
/// blocks. False if the mask reads no table of blocks.
bool listBlocks(ChainMask &mask);

} // namespace tk

#endif // TK_PASSES_TENSOR_RANGES_CHAINMASKS_H
