//===- CountedTerms.h - sums over pixels, counted through -------*- C++ -*-===//
//
// A convolution's gradient by its weights sums over pixels. The windows' tensor is read at
// `pixel + tap`, where taps are indices of the result. With one index that counts all pixels, a
// slice of the sum is a run of rows in both operands, which TMA loads bring.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_WINDOWS_COUNTEDTERMS_H
#define TK_PASSES_TENSOR_WINDOWS_COUNTEDTERMS_H

#include "passes/tensor/windows/WindowSums.h"

namespace tk {

/// A sum over pixels of two operands. The operand that is read by windows gives the columns of the
/// product, the other one its rows.
struct CountedSum {
  WindowSum sum;
  llvm::SmallVector<mlir::BlockArgument> pixels; ///< indices of the sum, in the order of counting
  mlir::BlockArgument row;                       ///< the result's index of rows
  mlir::BlockArgument column; ///< the result's index of columns; null if taps alone are columns
  mlir::BlockArgument batch;  ///< the index of both operands, if there is one
  bool isStored = false;      ///< windows are stored anew, as [pixels, columns of all parts]
  bool isRowStored = false;   ///< rows are stored anew, as [pixels, rows of all parts]

  /// The window along which `pixel` moves; null if there is none.
  const WindowAxis *windowOf(mlir::BlockArgument pixel) const { return sum.axisOf(pixel); }
};

/// A bit for each window whose taps are columns of the product, the blocks that divide the pixels
/// of a tile among themselves, the time in nanoseconds, and the groups of a batch whose rows and
/// columns one product has.
struct TermPlan {
  unsigned unrolled = 0;
  int64_t shares = 1;
  double time = 0;
  int64_t groups = 1;
};

/// Terms of a slice of 16-bit operands, and of operands in parts.
inline constexpr int64_t termsOfCountedSlice = 64, termsOfPartsSlice = 32;

/// Matches a sum of which TMA loads bring runs of pixels, from where they lie or from where they
/// are stored.
std::optional<CountedSum> readCountedSum(const WindowSum &sum);

/// True if the windows that are not `unrolled` reach no farther than TMA loads do.
bool areWindowsInReach(const CountedSum &counted, unsigned unrolled);

/// The plan of the least time on `processors` multiprocessors; nothing if sizes are unknown.
std::optional<TermPlan> planCountedSum(const CountedSum &counted, int64_t processors);

/// Rewrites the sum to a product whose terms are counted by one index (CountTerms.cpp).
void countTerms(const CountedSum &counted, const TermPlan &plan);

} // namespace tk

#endif // TK_PASSES_TENSOR_WINDOWS_COUNTEDTERMS_H
