//===- WarpGrid.h - warps and lanes over a product's outputs ----*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_WARPGRID_H
#define TK_PASSES_ANALYSIS_WARPGRID_H

#include "dialects/tkgpu/TkGpuLayout.h"

namespace tk {

/// The grid of at most `numWarps` warps with parts of at least minM x minN whose sides, in
/// multiples of unitM and unitN, add up to the least: that is what a warp (thread) reads for each
/// k. Fewer warps than there are leave the rest as replicas. `rowsInWarp`: no row is in two warps.
gpu::WarpGrid chooseWarpGrid(int64_t m, int64_t n, int64_t minM, int64_t minN, int64_t numWarps,
                             bool rowsInWarp, int64_t unitM = 1, int64_t unitN = 1);

/// How many rows and columns of an FMA product's outputs lanes lie along, and warps; see
/// DotPlan.cpp.
struct FmaShape {
  int64_t lanesM, lanesN;
  gpu::WarpGrid warps;
};
FmaShape shapeFma(int64_t m, int64_t n, int64_t vectorM, int64_t vectorN, int64_t numWarps);

/// How many rows, or columns if those are more, a thread has of an FMA product's m x n outputs
/// beside others of so many warps, if memory has neighbours along the columns.
int64_t sideOfThread(int64_t m, int64_t n, int64_t numWarps);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_WARPGRID_H
