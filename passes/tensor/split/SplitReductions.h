//===- SplitReductions.h - the parts of a reduction -------------*- C++ -*-===//
//
// Shared by SplitReductions.cpp, which decides what is split, PlanParts.cpp and
// SquaredDistances.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_SPLIT_SPLITREDUCTIONS_H
#define TK_PASSES_TENSOR_SPLIT_SPLITREDUCTIONS_H

#include "dialects/tk/TkDialect.h"

#include "mlir/IR/IRMapping.h"

namespace tk {

/// How a reduction is split.
struct Split {
  int64_t length;        ///< most values of the divided index in a partial result
  bool isAcross = false; ///< of columns: neighbouring threads have neighbouring outputs
  unsigned position = 0; ///< of the divided index among the reduction's
  bool isAlong = false;  ///< loads run along the divided index
  int64_t parts = 0;     ///< partial results of one length, or 0: the length decides
  int64_t unit = 0;      ///< the length is a multiple of it, or 0: the accesses decide
};

/// True if the kernel's schedule block asks for parts of a reduction.
bool isAskedInParts(ReduceOp reduce, ComputeOp compute);

/// The split of each reduction of a compute op, if they should be split. A partial result is worth
/// `chunk` elements.
llvm::SmallVector<Split> howToSplit(ComputeOp compute, llvm::ArrayRef<ReduceOp> reduces,
                                    int64_t chunk);

/// True if a reduction by itself should be split into parallel parts on a GPU: it has too few
/// columns for all multiprocessors, or rows that no cluster holds.
bool wantsParts(ReduceOp reduce, ComputeOp compute);

/// True if another compute op has the rows whose columns `reduce` adds up, so that its blocks may
/// carry the sums if these are partial results (ColumnsBesideRows.cpp).
bool isBesideRows(ReduceOp reduce, ComputeOp compute);

/// Terms that are worth a partial result.
inline constexpr int64_t termsOfChunk = 4096;

/// Splits the reductions of a statement that another pass has made, as tk-split-reductions would;
/// how many.
unsigned splitInChunks(ComputeOp compute);

/// Cuts long scans of few rows in chunks (SplitScans.cpp); how many.
unsigned splitScans(KernelOp kernel);

/// The longest row whose elements, as `reduce` reads them, the blocks of a cluster hold together.
int64_t longestHeldRow(ReduceOp reduce);

/// The split of the one online reduction of `compute`, whose partial states have several numbers;
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

/// `values` of the compute op's indices, and `chunk`, in the order of the partial results. The
/// chunk comes last, or first if neighbouring threads have neighbouring outputs.
template <class T>
llvm::SmallVector<T> withChunk(llvm::SmallVector<T> values, T chunk, const Split &how) {
  values.insert(how.isAcross ? values.begin() : values.end(), chunk);
  return values;
}

/// Creates the compute op of partial results: that of `compute` with the number of the part as a
/// further index. `body` gets the part's number and a mapping of the compute op's own indices.
mlir::Operation *createPartial(ReduceOp reduce, ComputeOp compute, const Parts &parts,
                               llvm::ArrayRef<llvm::StringRef> suffixes,
                               llvm::function_ref<llvm::SmallVector<mlir::Value>(
                                   mlir::OpBuilder &, mlir::Value number, mlir::IRMapping &mapping)>
                                   body);

/// A reduction of partial results, in the place of `reduce`. Those of `earlier` statements are used
/// again.
mlir::Value splitPlain(ReduceOp reduce, ComputeOp compute, const Parts &parts,
                       llvm::SmallVectorImpl<ComputeOp> &earlier);

/// The name of the index that counts the parts.
std::string chunkNameOf(ReduceOp reduce, const Split &how);

/// A sum over one index of the squares of `term - point`, in which `point` is invariant.
struct SquaredDistance {
  mlir::Value term, point;
};
std::optional<SquaredDistance> matchSquaredDistance(ReduceOp reduce);
/// The same over any indices, where the point may still be read in the reduction's body.
std::optional<SquaredDistance> matchDistanceInTerm(ReduceOp reduce);

/// Such a sum, computed from the parts' sums and squares about their means.
struct SplitDistance {
  mlir::Value combined; ///< the value that replaces the reduction, created at it
  ComputeOp partial;    ///< the compute op of the parts
};
SplitDistance splitSquaredDistance(ReduceOp reduce, ComputeOp compute, const Parts &parts);

/// If `partial` computes no more than the sums of the same parts as `distances`, its readers read
/// those of `distances`.
bool replaceBySums(ComputeOp partial, ComputeOp distances);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_SPLITREDUCTIONS_H
