//===- CollapseRows.cpp - collapse rows of matrix products ----------------===//
//
// The rows of a matrix product are one index in its tiles. Two indices fill a tile badly if the
// inner one is short: rows of 28 pixels leave more than half of a tile of 64 rows empty.
// tk-collapse-axes makes them one index if all accesses use them together. A window sum uses its
// two indices apart, and the tensors that a product reads behind it then stay as they are.
//
// This pass runs when it is known which tensors are stored. A tensor whose compute op needs the
// indices apart keeps its axes. Its readers take one index, and divide it where they read.
//
// 1. Find the pairs of axes that must stay apart: what their compute op writes by two separate
//    indices, and what a load reads so.
// 2. Collapse pairs as tk-collapse-axes does, but do not join a load of a pair that stays apart.
// 3. Collapse a class only if it contains two row indices of a matrix product, the inner of which
//    is no multiple of a tile's rows.
//
// tk-tile reads a dense tensor at `i / W` and `i % W` as if its axes were one.
//
//   %z = tk.compute ["n", "c", "h", "w"] {t[n, c, h, w]}
//     =>
//   %z = tk.compute ["n", "c", "h.w"] {t[n, c, h.w / %W, h.w % %W]}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/tensor/normalize/AxisPairs.h"

namespace tk {
#define GEN_PASS_DEF_COLLAPSEROWS
#include "passes/Passes.h.inc"
} // namespace tk

namespace {
struct CollapseRowsPass : tk::impl::CollapseRowsBase<CollapseRowsPass> {
  void runOnOperation() override {
    numCollapsed += tk::collapsePairs(getOperation(), getArgument(), /*dividesIndices=*/true);
  }
};
} // namespace
