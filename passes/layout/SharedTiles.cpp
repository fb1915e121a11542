//===- SharedTiles.cpp - how tiles lie in shared memory -------------------===//
//
// Shared memory has 32 banks of 4 bytes. A 16-byte access of a warp goes in four steps of eight
// lanes, ldmatrix likewise reads eight rows of 16 bytes at a time: eight chunks of 16 bytes are
// free of conflicts if they differ modulo 128 bytes. Fragments of f64 are read element by element,
// in two steps of sixteen lanes: four rows of four neighbours, chunks of 32 bytes.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/SharedTiles.h"

#include "passes/layout/MemoryAccess.h"
#include "passes/machine/Machine.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

int64_t tk::contiguousAxisOf(LayoutAttr layout) {
  for (int64_t axis = layout.getRank() - 1; axis >= 0; --axis)
    if (layout.getVectorWidth(axis) > 1)
      return axis;
  return laneAxisOf(layout);
}

int64_t tk::laneAxisOf(LayoutAttr layout) {
  LayoutBit lane = layout.getLaneBits().front();
  return lane.isReplication() ? layout.getRank() - 1 : lane.axis;
}

SharedType tk::panelledTile(ArrayRef<int64_t> shape, Type stored, int64_t axis, int64_t most) {
  int64_t bytes = bytesOfElement(stored), rowBytes = shape[axis] * bytes;
  int64_t panelBytes = std::min(rowBytes, most);
  int64_t panel = panelBytes < rowBytes ? panelBytes / bytes : 0;
  return SharedType::get(stored.getContext(), shape, stored, {axis, 1 - axis},
                         /*padding=*/0, vectorBytes / bytes, swizzleBytes / panelBytes,
                         panelBytes / vectorBytes, panel, /*interleave=*/1, /*ones=*/0,
                         /*pitch=*/0);
}

/// `axis` first, then the others from the last to the first.
static SmallVector<int64_t> orderFrom(int64_t axis, int64_t rank) {
  SmallVector<int64_t> order = {axis};
  for (int64_t other = rank - 1; other >= 0; --other)
    if (other != axis)
      order.push_back(other);
  return order;
}

SharedType tk::swizzledTile(RankedTensorType tile, Type stored, int64_t axis) {
  int64_t bytes = bytesOfElement(tile.getElementType());
  int64_t rowBytes = tile.getDimSize(axis) * bytes;
  int64_t chunkBytes = bytes == 8 ? 32 : 16;
  int64_t chunk = std::max<int64_t>(chunkBytes / bytes, 1), phases = 1, perPhase = 1;
  if (tile.getRank() > 1 && rowBytes >= 2 * chunkBytes) {
    phases = std::min<int64_t>(rowBytes / chunkBytes, 128 / chunkBytes);
    perPhase = std::max<int64_t>(128 / rowBytes, 1);
  }
  return SharedType::get(tile.getContext(), tile.getShape(), stored,
                         orderFrom(axis, tile.getRank()), /*padding=*/0, chunk, perPhase, phases);
}

SharedType tk::scratchTile(RankedTensorType tile, LayoutAttr from, LayoutAttr to) {
  int64_t bytes = bytesOfElement(tile.getElementType()), rank = tile.getRank();
  int64_t axis = contiguousAxisOf(from);
  if (to.getVectorWidth(contiguousAxisOf(to)) > from.getVectorWidth(axis))
    axis = contiguousAxisOf(to);
  // A reader or writer that runs across the rows wants neighbouring rows in neighbouring banks.
  int64_t width = std::min(std::max(from.getVectorWidth(axis), to.getVectorWidth(axis)),
                           std::max<int64_t>(16 / bytes, 1));
  bool runsAcross = contiguousAxisOf(from) != axis || contiguousAxisOf(to) != axis;
  int64_t padding = runsAcross ? std::max<int64_t>(4 / bytes, 1) : width;
  return SharedType::get(tile.getContext(), tile.getShape(), tile.getElementType(),
                         orderFrom(axis, rank), rank > 1 ? padding : 0, 1, 1, 1);
}

int64_t tk::sharedVector(SharedType shared, LayoutAttr layout) {
  int64_t bytes = bytesOfElement(shared.getElementType()), axis = shared.getAxisOrder().front();
  int64_t width = std::min(layout.getVectorWidth(axis), std::max<int64_t>(16 / bytes, 1));
  if (int64_t padding = shared.getPadding())
    width = std::min(width, padding & -padding);
  if (shared.getPhases() > 1)
    width = std::min(width, shared.getChunk());
  return width;
}
