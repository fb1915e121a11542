//===- ValueCopies.h - computations of one named value ----------*- C++ -*-===//
//
// A name has one value (docs/reference/language.md). A rewrite may compute a name several times,
// but two computations that add up in different orders differ in the last bits. No operation may
// receive values that are derived from two of them: a comparison, a difference or a branch could
// tell.
//
//   %l   = tk.compute ["m", "j"] {tk.reduce [sum] ["k"] ..}
//   %top = tk.compute ["m"]      {tk.reduce [max] ["j"] {l[m, j]}}
//   %y   = tk.compute ["m", "j"] {l[m, j] >= top[m]}
//
// If %l is computed once under the maximum and once more beside the comparison, the comparison
// receives both. This file numbers the computations whose bits depend on their order and finds such
// operations after any rewrites.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_VALUECOPIES_H
#define TK_PASSES_ANALYSIS_VALUECOPIES_H

#include "dialects/tk/TkDialect.h"

#include "llvm/ADT/DenseSet.h"

namespace tk {

/// On a reduction or scan, or the last operation of one that is written out: the number of each
/// accumulator's computation, -1 where any order gives the same bits. Copies keep the numbers.
inline constexpr llvm::StringLiteral computationsAttrName = "tk.computations";

/// Do the bits of such a reduction depend on the order of its terms?
bool dependsOnOrder(ReduceKind kind, mlir::Type type);

/// The number of each accumulator's computation; none if `op` has no numbers.
llvm::ArrayRef<int64_t> getComputations(mlir::Operation *op);

/// Numbers the sums and products of floats in `kernel`, from `next` on.
void numberComputations(KernelOp kernel, int64_t &next);

/// Removes the numbers.
void forgetComputations(KernelOp kernel);

/// The numbers of one accumulator each, for a loop that carries all of `reductions`; null if none
/// has a number.
mlir::Attribute joinComputations(llvm::ArrayRef<ReduceOp> reductions);

/// Does `root` hold a computation with one of these numbers?
bool holdsComputation(mlir::Operation *root, const llvm::DenseSet<int64_t> &numbers);

/// Adds the numbers of `op` to `numbers`.
void addComputations(mlir::Operation *op, llvm::DenseSet<int64_t> &numbers);

/// The numbers of the computations that stand at several places in `kernel` such that one operation
/// receives values derived from two of them.
///
/// A row of a computation in `chosen` may be normalised by statistics of another one: an
/// exponential may be relative to their maximum, and what is reduced to a sum of the row may be
/// subtracted, multiply or divide (docs/reference/numerics.md).
llvm::SmallVector<int64_t> findMixedCopies(KernelOp kernel, const llvm::DenseSet<int64_t> &chosen);

/// Numbers the products of floats in `kernel` that have a name. Copies keep the numbers.
void numberProducts(KernelOp kernel);

/// Marks the named products that have to be rounded, and removes the numbers. A device's compiler
/// contracts a product that is added or subtracted into a multiply-add, whose product is exact. It
/// may not where an operation also receives what is derived from the rounded product:
///
///   %p = mulf %x, %w;  %top = tk.reduce [max] {%p};  %y = subf %p, %top
///
/// Sums count as values of their own: which of their terms are rounded is not said.
void roundMixedProducts(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_VALUECOPIES_H
