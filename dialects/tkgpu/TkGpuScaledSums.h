//===- TkGpuScaledSums.h - partial sums that are scaled and added -*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUSCALEDSUMS_H
#define TK_DIALECTS_TKGPU_TKGPUSCALEDSUMS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <optional>

namespace tk::gpu {

/// A contraction that starts at zero, whose result is scaled by a broadcast factor and then added
/// to a tile of sums. Nothing else reads the result.
///
///   %s = warpgroup_dot %a, %b, 0;  %s1 = warpgroup_wait %s
///   %p = mulf %s1, %factor;        %o1 = addf %o, %p
struct ScaledSum {
  WarpgroupDotOp dot;
  WarpgroupWaitOp wait;
  mlir::arith::MulFOp scaled;
  mlir::arith::AddFOp sum;
  BroadcastOp factor;
  mlir::Value acc; ///< what the scaled sum is added to

  /// The scaled sum that begins with `dot`, if there is one.
  static std::optional<ScaledSum> of(WarpgroupDotOp dot);

  /// True if threads scale and add the sum part by part: the contraction has the precision
  /// `blocked`, and the factor exists before it.
  bool isInParts();
};

/// The scaled sum, added part by part, that `op` scales or adds.
std::optional<ScaledSum> getScaledSumInParts(mlir::Operation *op);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPUSCALEDSUMS_H
