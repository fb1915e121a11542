//===- WarpGrid.cpp - warps and lanes over a product's outputs ------------===//
#include "passes/analysis/WarpGrid.h"

#include <algorithm>
#include <utility>

using tk::gpu::WarpGrid;

namespace tk {

WarpGrid chooseWarpGrid(int64_t m, int64_t n, int64_t minM, int64_t minN, int64_t numWarps,
                        bool rowsInWarp, int64_t unitM, int64_t unitN) {
  WarpGrid best{1, 1};
  auto cost = [&](WarpGrid grid) {
    int64_t used = grid.m * grid.n;
    int64_t sides = rowsInWarp ? n / grid.n * -1 : m / grid.m / unitM + n / grid.n / unitN;
    return std::pair(-used, sides);
  };
  for (int64_t warpsM = 1; warpsM <= numWarps && m / warpsM >= minM; warpsM *= 2)
    for (int64_t warpsN = 1; warpsM * warpsN <= numWarps && n / warpsN >= minN; warpsN *= 2)
      if (WarpGrid grid{warpsM, warpsN}; cost(grid) < cost(best))
        best = grid;
  return best;
}

FmaShape shapeFma(int64_t m, int64_t n, int64_t vectorM, int64_t vectorN, int64_t numWarps) {
  constexpr int64_t lanes = 32, lanesOfColumns = 8;
  vectorM = std::min(vectorM, m);
  vectorN = std::min(vectorN, n);
  FmaShape shape;
  shape.lanesN = std::min(n / vectorN, lanesOfColumns);
  shape.lanesM = std::min(m / vectorM, lanes / shape.lanesN);
  shape.lanesN = std::min(n / vectorN, lanes / shape.lanesM);
  shape.warps = chooseWarpGrid(m, n, vectorM * shape.lanesM, vectorN * shape.lanesN, numWarps,
                               false, shape.lanesM, shape.lanesN);
  return shape;
}

int64_t sideOfThread(int64_t m, int64_t n, int64_t numWarps) {
  int64_t vectorN = std::clamp<int64_t>(m * n / (32 * numWarps), 1, 4);
  FmaShape shape = shapeFma(m, n, 1, vectorN, numWarps);
  return std::max({m / shape.warps.m / shape.lanesM, n / shape.warps.n / shape.lanesN, int64_t(1)});
}

} // namespace tk
