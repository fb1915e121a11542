//===- CollapseAxes.cpp - collapse neighbouring axes ----------------------===//
//
// Two neighbouring axes of a dense tensor are one axis in memory if all accesses use them together.
// Later passes plan each index by itself: an index fills tiles of its own, and only one index of a
// reduction can be split into chunks. One long index therefore gives better tiles than two short
// ones. This pass replaces such pairs by one index.
//
// 1. Number each pair of neighbouring axes of a tensor, and each pair of neighbouring indices of a
//    compute op or a reduction.
// 2. Join pairs into classes. A load joins a pair of its tensor's axes with the pair of indices
//    that it uses there. A result joins a pair of its axes with a pair of its compute op's indices.
//    An `inout` parameter is joined with the value that replaces it.
// 3. Reject a class if one of its pairs cannot be collapsed:
//    * a load reads the axes at anything but two neighbouring indices, in their order;
//    * an index does not run over the whole axis, or a reduction's index does not begin at 0;
//    * an index has another use, such as a comparison, or a tensor that has only this index;
//    * the parameter is strided.
// 4. Collapse each class that is left and contains two indices of one reduction. Also collapse the
//    last two axes of a load if a reduction runs over an axis before them. A column reduction then
//    has one long range of columns, and its blocks take several neighbouring columns each. In a
//    permutation, collapse an axis that is shorter than a square tile with the one before it.
//
// The pass leaves kernels with a schedule block alone, because the block names the indices.
//
//   %s = tk.reduce [sum] ["n", "h", "w"] to (%N, %H, %W) {x[n, h, w, c]}
//     =>
//   %NHW = %N * %H * %W
//   %s = tk.reduce [sum] ["n.h.w"] to (%NHW) {x[n.h.w, c]}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/tensor/normalize/AxisPairs.h"

namespace tk {
#define GEN_PASS_DEF_COLLAPSEAXES
#include "passes/Passes.h.inc"
} // namespace tk

namespace {
struct CollapseAxesPass : tk::impl::CollapseAxesBase<CollapseAxesPass> {
  void runOnOperation() override {
    numCollapsed += tk::collapsePairs(getOperation(), getArgument(), /*dividesIndices=*/false);
  }
};
} // namespace
