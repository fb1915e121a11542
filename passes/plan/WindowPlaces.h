//===- WindowPlaces.h - windows that bulk copies count through --*- C++ -*-===//
//
// A sum over windows reads a tensor at `step * place + distance` along some axes. With the indices
// of the places counted through as one, a tile of rows is what one bulk copy brings: the hardware
// walks through the places of a box, reads each at the distance that the copy names, and fills in
// zeros outside the tensor (tkgpu.tensor_map with places). Its boxes have corners of few bits,
// relative to the tensor's own corners.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PLAN_WINDOWPLACES_H
#define TK_PASSES_PLAN_WINDOWPLACES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// The distance between neighbouring places at most.
inline constexpr int64_t mostStepOfPlaces = 8;

/// How far corners and distances of windows may lie from a tensor of so many axes; 0 if it has no
/// windows that are copied.
int64_t mostCornerOfPlaces(unsigned rank);
int64_t mostDistanceOfPlaces(unsigned rank);

/// The least and the greatest value that a sum of sizes has at any launch.
struct SizeRange {
  int64_t least = 0, most = 0;
};
/// The range of `value`, an index at the level of `kernel`; nothing if it has no bounds.
std::optional<SizeRange> rangeOfSize(KernelOp kernel, mlir::Value value);

/// How the index of an axis follows a place: so many steps of it, and from `least` to `most` beside
/// them.
struct WindowReach {
  int64_t step = 0;
  SizeRange distances;
};
/// Reads `index` as a multiple of `place`, of other indices whose ranges are known, and of sizes.
std::optional<WindowReach> reachOfWindow(KernelOp kernel, mlir::Value index,
                                         mlir::BlockArgument place);

/// About how large a number of the launch is; NaN if that is not known. A dimension lies between
/// the power of two that bounds it and half of that: it is taken to be `share` of the bound. An
/// index of a compute op is at `place` of its range, from 0 to 1.
double estimateSize(KernelOp kernel, mlir::Value value, double share = 0.75, double place = 0.5);

/// Do boxes of `count` places, so many steps apart from `lower` on, have corners that the hardware
/// takes, at any launch? The axis has `extent` elements; both are values of the kernel.
bool areCornersInRange(KernelOp kernel, mlir::Value count, mlir::Value extent, int64_t step,
                       int64_t lower, unsigned rank);

/// Does a bulk copy take what `load`, in a sum of a compute op, reads for a run of the indices
/// `counted`, which are counted through in this order? All are indices of one of the two.
bool areWindowsCopied(KernelOp kernel, LoadOp load, llvm::ArrayRef<mlir::Value> counted);

} // namespace tk

#endif // TK_PASSES_PLAN_WINDOWPLACES_H
