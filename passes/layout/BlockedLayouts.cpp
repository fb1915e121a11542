//===- BlockedLayouts.cpp - layouts of consecutive threads ----------------===//
//
// Builds the layouts that LayoutChoice.cpp asks for: vectors of neighbours a thread, consecutive
// threads along one axis, and what is left over to other axes; or a warp's elements side by side.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/LayoutChoice.h"
#include "passes/machine/limits/Layouts.h"

#include "passes/machine/Machine.h"

#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::blocked_layouts;

/// The same threads' layout of a row in which each warp has its elements side by side, if they are
/// no more than are used at once: rows of memory are then read and written by longer pieces.
/// LayerNorm on an H200, of 16384 x 4096: 65.0 and 64.7 us, of 8192 x 8192: 65.7 and 64.7.
LayoutAttr LayoutChoice::sideBySide(LayoutAttr layout) const {
  SmallVector<LayoutBit> registers(layout.getRegisterBits()), warps(layout.getWarpBits());
  if (layout.getNumRegisters() > mostUncut || warps.size() > mostWarpBits)
    return layout;
  int32_t lanes = 0;
  for (LayoutBit bit : layout.getLaneBits())
    lanes = std::max(lanes, bit.step);
  SmallVector<LayoutBit *> bits;
  for (SmallVector<LayoutBit> *of : {&registers, &warps})
    for (LayoutBit &bit : *of)
      if (!bit.isReplication() && bit.step > lanes)
        bits.push_back(&bit);
  auto steps = llvm::map_to_vector(bits, [](LayoutBit *bit) { return bit->step; });
  llvm::sort(steps);
  for (auto [bit, step] : llvm::zip_equal(bits, steps))
    bit->step = step;
  return LayoutAttr::get(context, layout.getRank(), registers, layout.getLaneBits(), warps);
}

LayoutAttr LayoutChoice::defaultLayout(ArrayRef<int64_t> shape) const {
  return blocked(shape, shape.size() - 1, 1, false);
}

/// Consecutive threads along `axis` in vectors of `width`, but no wider than leaves work for every
/// thread. With `rowsInWarp` the warps go to the other axes first, so that few share a row. All
/// else that a thread has are neighbours along `joined`, if that is an axis: it scans them by
/// itself, or reads once what they share. Threads go along `reduced`, if that is another, last:
/// those that have results of their own need not meet.
LayoutAttr LayoutChoice::blocked(ArrayRef<int64_t> shape, int64_t axis, int64_t width,
                                 bool rowsInWarp, int64_t joined, int64_t reduced) const {
  int64_t numWarps = dotContext.numWarps;
  unsigned rank = shape.size();
  BlockedShape blocked{SmallVector<int64_t>(rank, 1), {}, numWarps};
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  int64_t perThread = std::max<int64_t>(elements / (32 * numWarps), 1);
  blocked.perThread[axis] = std::min({width, perThread, shape[axis]});
  if (!coalesce) {
    llvm::append_range(blocked.order, llvm::seq<unsigned>(0, rank));
    return blockedLayout(context, shape, blocked);
  }
  if (joined >= 0)
    blocked.perThread[joined] = std::min(perThread / blocked.perThread[axis], shape[joined]);
  blocked.order.push_back(axis);
  for (int64_t other = rank - 1; other >= 0; --other)
    if (other != axis && other != reduced)
      blocked.order.push_back(other);
  if (reduced >= 0)
    blocked.order.push_back(reduced);
  if (rowsInWarp) {
    // Warps in order along the other axes, which the lanes may have begun.
    int64_t lanesOnAxis = std::min<int64_t>(shape[axis] / blocked.perThread[axis], 32);
    int64_t left = numWarps, lanesLeft = 32 / lanesOnAxis;
    blocked.warps.assign(rank, 1);
    for (unsigned other : ArrayRef(blocked.order).drop_front()) {
      int64_t lanes = std::min(lanesLeft, shape[other]);
      lanesLeft /= lanes;
      blocked.warps[other] = std::min(left, shape[other] / lanes);
      left /= blocked.warps[other];
    }
    blocked.warps[axis] = left;
  }
  return blockedLayout(context, shape, blocked);
}

/// States that are scanned along one axis and reduced along another: a thread has all steps of
/// neighbouring states. It scans alone, and computes once for its states what depends on the step.
/// Consecutive threads have the other states, before the next column's.
LayoutAttr LayoutChoice::fromStates(unsigned component) const {
  ArrayRef<int64_t> shape = components.shapeOf(component);
  const int64_t rank = shape.size(), scanned = scannedAxis(component, -1);
  const int64_t reduced = scanned < 0 ? -1 : reducedAxis(component, scanned);
  if (hasDots || !coalesce || reduced < 0)
    return {};
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  const int64_t perThread = elements / (32 * dotContext.numWarps);
  if (perThread < shape[scanned])
    return {};
  BlockedShape blocked{SmallVector<int64_t>(rank, 1), {}, dotContext.numWarps};
  blocked.perThread[scanned] = shape[scanned];
  blocked.perThread[reduced] = std::min(perThread / shape[scanned], shape[reduced]);
  blocked.order.push_back(reduced);
  for (int64_t other = rank; other-- > 0;)
    if (other != reduced && other != scanned)
      blocked.order.push_back(other);
  blocked.order.push_back(scanned);
  return blockedLayout(context, shape, blocked);
}
