//===- CarriedTiles.h - tiles of blocks that carry columns ------*- C++ -*-===//
#ifndef TK_PASSES_PLAN_CARRIEDTILES_H
#define TK_PASSES_PLAN_CARRIEDTILES_H

#include "passes/plan/StatementShape.h"

namespace tk {

/// How the owner's blocks go through tiles, and how many there are.
struct CarriedTiles {
  gpu::ScheduleAttr schedule;
  int64_t mostBlocks; ///< along the index that they go through; clusters count as one
};

/// The schedule of an owner that carries `count` numbers of each element, or of each column, of a
/// tile, along its index `counted`; nothing if it has no room for them.
std::optional<CarriedTiles> planCarriedTiles(StatementShape &shape, int64_t count,
                                             unsigned counted);

/// True if blocks, or clusters, may carry sums of columns beside whole rows of `width` elements, a
/// multiple of `divisor`.
bool mayCarryColumns(gpu::TargetAttr target, int64_t width, int64_t divisor);

/// How many partial results of each column there are then, about.
int64_t blocksThatCarry(gpu::TargetAttr target, int64_t width);

} // namespace tk

#endif // TK_PASSES_PLAN_CARRIEDTILES_H
