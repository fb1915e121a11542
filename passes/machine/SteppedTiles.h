//===- SteppedTiles.h - tiles that lie closer than their size --*- C++ -*-===//
#ifndef TK_PASSES_MACHINE_STEPPEDTILES_H
#define TK_PASSES_MACHINE_STEPPEDTILES_H

#include "passes/machine/WarpgroupTiles.h"

namespace tk {

/// Tiles for wgmma that leave their last columns to the next tile: layouts have the next power of
/// two of columns. Rates lie between those of `warpgroupTiles`.
inline constexpr WarpgroupTile steppedTiles[] = {
    {128, 224, 8, 0.99}, {128, 192, 8, 0.98}, {128, 160, 8, 0.97}, {128, 96, 8, 0.83}};

/// One of them is chosen if its time is less than this part of that of the best of
/// `warpgroupTiles`. Assumed: rates of tiles are known to some percent.
inline constexpr double leastGainOfStep = 0.95;

} // namespace tk

#endif // TK_PASSES_MACHINE_STEPPEDTILES_H
