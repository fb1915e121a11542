//===- GatherLayouts.cpp - the layout of what loads gather at -------------===//
//
// A gather `x[col[t], c]` wants its indices, and the masks that say whether they are inside, in the
// slice of its own layout: each thread then has all that its elements need. Where the indices are
// loaded with neighbours in neighbouring threads instead, they and each mask go through shared
// memory, with a barrier each.
//
// Of few indices a thread, each thread loads those that it needs, although other threads load them
// as well: a warp that loads one address takes as long as one that loads a line.
//
// Numbers of a product's factor that are looked up in a table have a place for each element. Those
// are computed where the element is.
//
// Before: each of 32 lanes loads one of 32 numbers, which a block exchanges for 8 a thread
// After:  each lane loads its 8 numbers
//
//===----------------------------------------------------------------------===//
#include "passes/layout/LayoutChoice.h"
#include "passes/machine/limits/Layouts.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::gather_layouts;

/// Calls `visit` for each load that is at an index or under a mask of the class, with the axes of
/// the loaded tile that these are along.
void LayoutChoice::forGathers(
    unsigned component, llvm::function_ref<void(gpu::LoadOp, ArrayRef<int64_t>)> visit) const {
  for (Value value : components.members(component))
    for (OpOperand &use : value.getUses()) {
      auto load = dyn_cast<gpu::LoadOp>(use.getOwner());
      if (!load || !isTile(load.getResult()))
        continue;
      auto visitIn = [&](OperandRange operands, ArrayAttr dims) {
        if (operands.empty())
          return;
        const unsigned begin = operands.getBeginOperandIndex(), number = use.getOperandNumber();
        if (number >= begin && number < begin + operands.size())
          visit(load, cast<DenseI64ArrayAttr>(dims[number - begin]).asArrayRef());
      };
      visitIn(load.getIndices(), load.getIndexDims());
      visitIn(load.getMasks(), load.getMaskDims());
    }
}

/// Do loads of tiles of as many axes gather at what the class has? Beside products only lookups do,
/// each of whose elements is at a place of its own.
bool LayoutChoice::isPlaceOfGather(unsigned component) const {
  const size_t rank = components.shapeOf(component).size();
  bool found = false;
  forGathers(component, [&](gpu::LoadOp load, ArrayRef<int64_t> axes) {
    found |= cast<RankedTensorType>(load.getResult().getType()).getRank() == int64_t(rank) &&
             components.classOf(load.getResult()) != component &&
             (!hasDots || (rank > 1 && axes.size() == rank));
  });
  return found;
}

/// The slice that a gather of the class needs of its indices and masks, if its threads have few
/// elements of it: loading those again takes less than an exchange through shared memory and its
/// barriers, of the indices and of each mask. Null if the class is reduced or scanned, too.
LayoutAttr LayoutChoice::fromGathers(unsigned component) const {
  ArrayRef<int64_t> shape = components.shapeOf(component);
  if (!coalesce || (hasDots && !isPlaceOfGather(component)))
    return {};
  for (auto [axis, size] : llvm::enumerate(shape))
    if (reducesAlong(component, axis))
      return {};
  LayoutAttr found;
  forGathers(component, [&](gpu::LoadOp load, ArrayRef<int64_t> axes) {
    if (found || components.classOf(load.getResult()) == component ||
        !isTileChosen(load.getResult()))
      return;
    LayoutAttr slice = broadcastSourceLayout(layoutOf(load.getResult()), axes, shape);
    int64_t elements = 1;
    for (int64_t size : shape)
      elements *= size;
    const int64_t own = std::max<int64_t>(elements / (32 * dotContext.numWarps), 1);
    if (hasDots ? axes.size() == shape.size() && shape.size() > 1
                : int64_t(slice.getNumRegisters()) <= std::max(own, mostLoadedAgain))
      found = slice;
  });
  return found;
}
