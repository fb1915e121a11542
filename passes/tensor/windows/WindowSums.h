//===- WindowSums.h - matching convolutions ---------------------*- C++ -*-===//
//
// The matches (WindowSums.cpp) and the decisions (WindowCost.cpp) of tk-flatten-windows.
// FlattenWindows.cpp rewrites the sums and defines windows.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_WINDOWS_WINDOWSUMS_H
#define TK_PASSES_TENSOR_WINDOWS_WINDOWSUMS_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

/// An axis of the input. It is read at `stride` * `place` + `dilation` * `tap` + a number of the
/// launch. `isTurned` states that the taps are in reverse order.
struct WindowAxis {
  unsigned axis;
  mlir::BlockArgument place, tap;
  int64_t stride, dilation;
  bool isTurned;
};

/// A convolution: a sum of the products of a tensor that is read by windows, and of weights.
struct WindowSum {
  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  LoadOp window, weights;
  mlir::Type element;                 ///< of both tensors: f32, or a 16-bit float
  llvm::SmallVector<WindowAxis> axes; ///< in the order of the compute op's indices
  /// Indices of the compute op: of both operands, of the weights alone, of the input alone.
  llvm::SmallVector<mlir::BlockArgument> batches, rows, pixels;
  /// Indices of the weights that decide the number of taps: the greater they are, the fewer taps
  /// there are.
  llvm::SmallVector<mlir::BlockArgument> phases;
  /// Indices of the sum that are no taps.
  llvm::SmallVector<mlir::BlockArgument> channels;

  /// True if each number is multiplied in three bf16 parts. With `tf32` it is multiplied as it is.
  bool isInParts() const {
    return element.isF32() && ReduceOp(reduce).getPrecision() == Precision::Default;
  }
  /// The stored parts of a number, and the multiplied pairs of parts.
  int64_t countParts() const;
  int64_t countPairs() const;
  /// True if the operations after the sum can be computed with the contraction: a pixel enters them
  /// only through the sum.
  bool endsWithProduct() const;
  /// True if the sum, rounded to the result's type at most, is the statement's only result.
  bool isResult() const;
  /// The axis of which `index` is the place or the tap; null if there is none.
  const WindowAxis *axisOf(mlir::BlockArgument index) const;
  mlir::Value extentOf(mlir::BlockArgument index) const;
  /// Makes the taps of axis `n` channels: windows are then stored along it, tap by tap.
  void unroll(unsigned n);
  /// About how large `index` is: with phases a tap's range is that of a phase in the middle, or of
  /// the first one.
  double sizeOf(mlir::BlockArgument index, bool isFirstPhase = false) const;
};

/// The plan of a flattened convolution: the axes whose taps are channels (a bit each), the channels
/// of a slice, the number of blocks that divide the steps among themselves, the time in
/// nanoseconds, the groups of the batch whose rows and channels one product has, and whether the
/// phases are rows of one product, which has the taps of phase 0 for all of them.
struct WindowPlan {
  unsigned unrolled = 0;
  int64_t slice = 0, shares = 1;
  double time = 0;
  int64_t groups = 1;
  bool arePhasesRows = false;
};

/// Matches `reduce`, in the block of `compute`, as a convolution.
std::optional<WindowSum> readWindowSum(KernelOp kernel, ComputeOp compute, ReduceOp reduce);

/// True if warpgroups can multiply both factors, of 16 bits, from where TMA loads bring them: the
/// windows have vectors of channels, and their places are all indices but those of the weights'
/// rows.
bool isCopiedAsItLies(const WindowSum &sum);

/// Does a load give 0 outside of its tensor, if it may be read there?
bool isZeroOutside(LoadOp load);

/// The number of shares of a sum that is copied as it lies: different blocks compute them if that
/// takes less time (ShareChannels.cpp).
int64_t planChannelShares(const WindowSum &sum, int64_t processors);
/// Cuts the channels of the sum in so many shares.
void shareChannels(const WindowSum &sum, int64_t shares);

/// How many groups of a batch, of `size` rows or columns each, may be one: each number divides the
/// batches.
llvm::SmallVector<int64_t> groupsOf(const WindowSum &sum, double size);

/// The plan of the least time on `processors` multiprocessors; nothing if sizes are unknown.
std::optional<WindowPlan> planWindowSum(const WindowSum &sum, int64_t processors);

/// The time of the sum as it is written, in nanoseconds, on `processors` multiprocessors.
double timeAsWritten(const WindowSum &sum, int64_t processors);

/// Is each index of the sum in f32 so short that its terms are counted through where CUDA cores
/// multiply?
bool hasShortIndices(const WindowSum &sum);

} // namespace tk

#endif // TK_PASSES_TENSOR_WINDOWS_WINDOWSUMS_H
