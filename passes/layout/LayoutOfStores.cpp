//===- LayoutOfStores.cpp - layouts of shared terms and of stores ---------===//
#include "passes/layout/LayoutChoice.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "passes/analysis/TileLoops.h"
#include "passes/layout/RepeatedRuns.h"
#include "passes/layout/SlidingLoads.h"
#include "passes/machine/Machine.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// What loops carry of terms that are computed from narrower tiles: each thread has all rows of its
/// places along the axis that is reduced behind the loop, as many neighbours as one access of those
/// that the terms are computed from has.
LayoutAttr LayoutChoice::fromSharedTerms(unsigned component) const {
  ArrayRef<int64_t> shape = components.shapeOf(component);
  const int64_t axis = int64_t(shape.size()) - 1;
  if (hasDots || !coalesce || shape.size() != 2 || !reducesAlong(component, axis))
    return {};
  bool isCarried = false, isShared = false;
  int64_t width = 1;
  for (Value value : components.members(component)) {
    isCarried |= isa<OpResult>(value) && isa<scf::ForOp>(value.getDefiningOp());
    auto broadcast = value.getDefiningOp<BroadcastOp>();
    if (!broadcast || broadcast.getDims() != ArrayRef<int64_t>(axis) ||
        !isTile(broadcast.getSource()) || isCheapTile(broadcast.getSource()))
      continue;
    isShared = true;
    for (Value member : components.members(components.classOf(broadcast.getSource())))
      if (auto load = member.getDefiningOp<gpu::LoadOp>())
        width = std::max(width, analyseVectors(MemoryAccess::of(load), info, vectorBytes).width);
  }
  int64_t perThread = shape[0] * shape[1] / (32 * dotContext.numWarps);
  if (!isCarried || !isShared || perThread < shape[0])
    return {};
  return blocked(shape, axis, std::min(width, perThread / shape[0]), false, 0);
}

LayoutAttr LayoutChoice::layoutForAccess(const MemoryAccess &access) const {
  VectorAccess vectors = analyseVectors(access, info, vectorBytes);
  ArrayRef<int64_t> shape = access.tile.getShape();
  int64_t width = !coalesce ? 1 : hasDots ? vectors.width : std::max(vectors.width, vectors.run);
  return blocked(shape, vectors.axis < 0 ? shape.size() - 1 : vectors.axis, width, false);
}

/// Neighbours along `axis` that the lanes of a warp, each with one register, have among them.
static int64_t neighboursOfLanes(LayoutAttr layout, int64_t axis) {
  int64_t run = 1;
  auto isNext = [&](LayoutBit bit) { return bit.axis == axis && bit.step == run; };
  while (llvm::any_of(layout.getLaneBits(), isNext))
    run *= 2;
  return run;
}

LayoutAttr LayoutChoice::storeLayout(StoreOp store, LayoutAttr own) const {
  MemoryAccess access = MemoryAccess::of(store);
  if (!own)
    return layoutForAccess(access);
  int64_t axis = analyseVectors(access, info, vectorBytes).axis;
  LayoutBit firstLane = own.getLaneBits().front();
  bool isCoalesced = axis < 0 || firstLane.isReplication() || firstLane.axis == axis;
  // What a product's shared memory holds is worth more than fewer requests of whole sectors.
  if (hasDots && axis >= 0)
    isCoalesced |= neighboursOfLanes(own, axis) * access.elementBytes() >= sectorBytes;
  return isCoalesced || !coalesce ? own : layoutForAccess(access);
}
