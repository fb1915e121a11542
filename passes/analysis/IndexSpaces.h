//===- IndexSpaces.h - extents, and how statements' indices meet -*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_INDEXSPACES_H
#define TK_PASSES_ANALYSIS_INDEXSPACES_H

#include "dialects/tk/TkDialect.h"
#include "passes/analysis/ScalarExpr.h"

namespace tk {

/// The longest row that a block holds in registers, in elements.
inline constexpr int64_t longestWholeRow = 32768;

/// The longest one over two axes that the blocks of a cluster of 4 hold, of elements of 16 bits.
inline constexpr int64_t longestSpreadPlane = 65536;

/// On a reduction whose number of terms is known at run time alone: how many there are on average.
inline constexpr llvm::StringLiteral typicalTermsAttrName = "tk.typical_terms";

/// An inclusive upper bound of an extent from constants and facts, -1 where none is known.
int64_t getUpperBound(mlir::Value extent);

/// True if `value` is known outside `compute`, or can be computed there.
bool isKernelLevel(mlir::Value value, ComputeOp compute);

/// True if both extents are the same number in every launch.
bool isSameExtent(mlir::Value a, mlir::Value b);

/// The `n`-th bounds of `reduce` are `0 .. extent`.
bool rangesOver(ReduceOp reduce, unsigned n, mlir::Value extent);

/// Do all loads in `scope` that use `outer` or `inner` use them bare, `inner` as the last index and
/// `outer` before it?
bool runsInOrder(mlir::Operation *scope, mlir::Value outer, mlir::Value inner);

/// Does `reduce` take one tensor of 16 bits or fewer over two axes, in the order of memory?
bool takesPackedPlane(ReduceOp reduce);

/// The reductions around `op` inside its statement, innermost first.
llvm::SmallVector<ReduceOp> getEnclosingReductions(mlir::Operation *op);

/// Ways to see the indices of `small` as some of those of `large` with equal extents: entry `i` is
/// the position in `large` of index `i`. At most 16, those that keep the order of indices first.
llvm::SmallVector<llvm::SmallVector<unsigned>> getEmbeddings(ComputeOp small, ComputeOp large);

/// A contraction both of whose factors have an index of their own among the statement's (or an
/// enclosing reduction's): each operand element is used many times, so that computing it twice is
/// dear.
bool isMatrixProduct(ReduceOp reduce);

/// Would the sum of `term` over the indices of `reduce` be one?
bool isMatrixProductIn(ReduceOp reduce, mlir::Value term);

/// True if what `compute` reduces are matrix products, one at least, and nothing that is carried or
/// needs reductions in its terms.
bool computesPlainProducts(ComputeOp compute);

/// True if `op` is, or holds, a matrix product or a reduction in a reduction.
bool isHeavy(mlir::Operation *op);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_INDEXSPACES_H
