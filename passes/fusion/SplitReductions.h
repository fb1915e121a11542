//===- SplitReductions.h - the parts of a reduction -------------*- C++ -*-===//
//
// Shared by SplitReductions.cpp, which decides what is split, PlanParts.cpp and
// SquaredDistances.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_FUSION_SPLITREDUCTIONS_H
#define TK_PASSES_FUSION_SPLITREDUCTIONS_H

#include "dialects/tk/TkDialect.h"

#include "mlir/IR/IRMapping.h"

namespace tk {

/// How a reduction is split.
struct Split {
  int64_t length;        ///< of how many values of the divided index a partial result is, at most
  bool isAcross = false; ///< of columns: neighbouring threads have neighbouring outputs
  unsigned position = 0; ///< of the divided index among the reduction's
  bool isAlong = false;  ///< loads run along the divided index
  int64_t parts = 0;     ///< how many partial results of one length, or 0: as that makes them
  int64_t unit = 0;      ///< of which that length is a multiple, or 0: as accesses want it
};

/// Does the kernel's schedule block want a reduction in parts?
bool isAskedInParts(ReduceOp reduce, ComputeOp compute);

/// How each of a statement's reductions is split, if it should be; `chunk` terms are worth a
/// partial result.
llvm::SmallVector<Split> howToSplit(ComputeOp compute, llvm::ArrayRef<ReduceOp> reduces,
                                    int64_t chunk);

/// On a GPU, does a reduction by itself want parts that are computed side by side: of columns too
/// few for all multiprocessors, or of rows that no cluster holds?
bool wantsParts(ReduceOp reduce, ComputeOp compute);

/// The longest row whose elements, as `reduce` reads them, the blocks of a cluster hold together.
int64_t longestHeldRow(ReduceOp reduce);

/// How the one carried reduction of `compute` is split, whose parts have states of several numbers;
/// nothing if it should stay whole.
std::optional<Split> splitCarried(ReduceOp reduce, ComputeOp compute);

/// The parts of one of a reduction's indices, in values of the kernel.
struct Parts {
  mlir::Value lower, upper, length, count;
  Split how;

  /// The bounds of part `number`.
  std::pair<mlir::Value, mlir::Value> boundsOf(mlir::Value number, mlir::OpBuilder &builder,
                                               mlir::Location loc) const;
};

/// `values`, those of the statement's indices, and `chunk` in the order of the partial results: the
/// chunk last, but first where neighbouring threads have neighbouring outputs.
template <class T>
llvm::SmallVector<T> withChunk(llvm::SmallVector<T> values, T chunk, const Split &how) {
  values.insert(how.isAcross ? values.begin() : values.end(), chunk);
  return values;
}

/// A statement of partial results: that of `compute` with the number of the part as one more index.
/// `body` gets the part's number and a mapping of the statement's own indices.
mlir::Operation *createPartial(ReduceOp reduce, ComputeOp compute, const Parts &parts,
                               llvm::ArrayRef<llvm::StringRef> suffixes,
                               llvm::function_ref<llvm::SmallVector<mlir::Value>(
                                   mlir::OpBuilder &, mlir::Value number, mlir::IRMapping &mapping)>
                                   body);

/// The name of the index that counts the parts.
std::string chunkNameOf(ReduceOp reduce, const Split &how);

/// A sum over one index of the squares of `term - point`, where `point` is the same for all.
struct SquaredDistance {
  mlir::Value term, point;
};
std::optional<SquaredDistance> matchSquaredDistance(ReduceOp reduce);
/// The same over any indices, where the point may still be read in the reduction's body.
std::optional<SquaredDistance> matchDistanceInTerm(ReduceOp reduce);

/// Such a sum computed from the parts' sums and squares about their means.
struct SplitDistance {
  mlir::Value combined; ///< what takes the reduction's place, made at it
  ComputeOp partial;    ///< the statement of the parts
};
SplitDistance splitSquaredDistance(ReduceOp reduce, ComputeOp compute, const Parts &parts);

/// If `partial` computes no more than the sums of the same parts as `distances`, its readers read
/// those.
bool replaceBySums(ComputeOp partial, ComputeOp distances);

} // namespace tk

#endif // TK_PASSES_FUSION_SPLITREDUCTIONS_H
