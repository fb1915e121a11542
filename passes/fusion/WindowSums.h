//===- WindowSums.h - sums over windows and channels ------------*- C++ -*-===//
//
// What tk-flatten-windows finds (WindowSums.cpp) and decides (WindowCost.cpp), apart from the
// rewriting of sums (FlattenWindows.cpp, which says what windows are).
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_FUSION_WINDOWSUMS_H
#define TK_PASSES_FUSION_WINDOWSUMS_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

/// An axis of the windows' tensor: it is read at `stride` * `place` + `dilation` * `tap` + a number
/// of the launch; with the taps in reverse order if they are turned.
struct WindowAxis {
  unsigned axis;
  mlir::BlockArgument place, tap;
  int64_t stride, dilation;
  bool isTurned;
};

/// A sum of the products of a tensor that is read by windows, and of weights.
struct WindowSum {
  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  LoadOp window, weights;
  mlir::Type element;                 ///< what both tensors hold: f32, or a float of 16 bits
  llvm::SmallVector<WindowAxis> axes; ///< in the order of the statement's indices
  /// Indices of the statement: of both factors, of the weights alone, of the windows alone.
  llvm::SmallVector<mlir::BlockArgument> batches, rows, pixels;
  /// Those of the weights that say how many taps there are: the fewer, the greater they are.
  llvm::SmallVector<mlir::BlockArgument> phases;
  /// Indices of the sum that are no taps.
  llvm::SmallVector<mlir::BlockArgument> channels;

  /// Is each number multiplied in three parts? With `tf32` it is multiplied as it is.
  bool isInParts() const {
    return element.isF32() && ReduceOp(reduce).getPrecision() == Precision::Default;
  }
  /// Parts that are stored of a number, and pairs of parts that are multiplied.
  int64_t countParts() const;
  int64_t countPairs() const;
  /// Can what follows the sum be computed with the product: is it over no pixel but by the sum?
  bool endsWithProduct() const;
  /// The axis that `index` is the place or the tap of; null if there is none.
  const WindowAxis *axisOf(mlir::BlockArgument index) const;
  mlir::Value extentOf(mlir::BlockArgument index) const;
  /// Counts the taps of axis `n` among the channels: windows are then stored along it, tap by tap.
  void unroll(unsigned n);
};

/// How a sum over windows becomes a product: which axes' taps are channels (a bit each), how many
/// channels a slice has, among how many blocks the steps are shared out, and what all of
/// it takes, in nanoseconds.
struct WindowPlan {
  unsigned unrolled = 0;
  int64_t slice = 0, shares = 1;
  double time = 0;
};

/// Reads `reduce`, in the block of `compute`, as a sum over windows.
std::optional<WindowSum> readWindowSum(KernelOp kernel, ComputeOp compute, ReduceOp reduce);

/// The plan that takes the least time on so many processors; nothing if sizes are not known.
std::optional<WindowPlan> planWindowSum(const WindowSum &sum, int64_t processors);

/// What the sum takes as it is written, in nanoseconds, on so many processors.
double timeAsWritten(const WindowSum &sum, int64_t processors);

/// Is each index of the sum in f32 so short that its terms are counted through where CUDA cores
/// multiply?
bool hasShortIndices(const WindowSum &sum);

} // namespace tk

#endif // TK_PASSES_FUSION_WINDOWSUMS_H
