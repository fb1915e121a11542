//===- DotPlan.h - how a product is computed --------------------*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_DOTPLAN_H
#define TK_PASSES_LAYOUT_DOTPLAN_H

#include "dialects/tkgpu/TkGpuLayout.h"

namespace tk {

/// The machine and what is known of the function around a product.
struct DotContext {
  bool hasByteFloats = false; ///< products of 8-bit floats
  int64_t numWarps = 4;
  /// The product takes part in a computation along its rows (a softmax between two products):
  /// all warps along m, so that a row stays within a warp.
  bool rowsInWarp = false;
};

/// How the operands of a product lie in memory: is A contiguous along m, B along n? What is
/// contiguous along k is read so.
struct OperandRuns {
  bool alongM = false, alongN = true;
};

/// Layouts of a product's accumulator and operands. An operand's is null where a thread would hold
/// more of it than a layout has registers.
struct DotPlan {
  bool matrixUnit = false; ///< mma.sync, else FMA
  gpu::LayoutAttr accumulator, a, b;
};
DotPlan planDot(gpu::DotOp dot, const DotContext &context, OperandRuns runs);

/// The operands' layouts that a product needs whose accumulator has been given `accumulator` by
/// `planDot` for a product of the same shape and types.
DotPlan planOperands(gpu::DotOp dot, const DotContext &context, gpu::LayoutAttr accumulator);

} // namespace tk

#endif // TK_PASSES_LAYOUT_DOTPLAN_H
