//===- BlockAccess.cpp - what one block does: global memory ---------------===//
#include "passes/machine/BlockWalk.h"
#include "passes/machine/OperationCost.h"
#include "passes/machine/TileFacts.h"

#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

#include <array>
#include <cmath>

using namespace mlir;

namespace tk {
/// Accesses that a block's first-level cache still has: this many, and so many bytes back.
static constexpr size_t mostRecent = 64;
static constexpr double mostKeptBytes = 128 * 1024;

/// The part of an access that none of the accesses to the tensor before it has brought: neighbours
/// of a stencil, and the odd elements beside the even ones, lie in the same sectors.
double BlockWalk::newShare(unsigned tensor, Footprint access) {
  double most = 0;
  std::vector<Footprint> &before = recent[tensor];
  for (const Footprint &other : before) {
    if (other.axes.size() != access.axes.size() || readSoFar - other.readBefore > mostKeptBytes)
      continue;
    double common = 1, rest = std::abs(double(access.base - other.base));
    for (auto [distance, count] : llvm::reverse(access.axes)) {
      const double steps = std::round(rest / double(distance));
      common *= std::max(1 - steps / double(count), 0.0);
      rest = std::abs(rest - steps * double(distance));
    }
    common *= std::max(1 - rest / access.run, 0.0) * std::min(other.bytes / access.bytes, 1.0);
    most = std::max(most, common);
  }
  if (before.size() >= mostRecent)
    before.erase(before.begin());
  access.readBefore = readSoFar;
  before.push_back(std::move(access));
  return 1 - most;
}

void BlockWalk::remember(Operation *op, unsigned tensor, ValueRange coordinates) {
  llvm::hash_code hash = llvm::hash_value(0);
  for (Value coordinate : coordinates)
    hash = llvm::hash_combine(hash, values.key(coordinate));
  AccessedPlaces &seen = (*recorded)[op];
  seen.tensor = tensor;
  seen.places.insert(uint64_t(hash));
}

/// Instructions of a thread for an access to memory, beside those that compute the indices.
static double instructionsOfAccess(Operation *op, ValueRange masks) {
  if (isa<gpu::CopyAsyncOp, gpu::CopyPrivateOp>(op))
    return cost::access;
  auto load = dyn_cast<gpu::LoadOp>(op);
  const gpu::CacheAttr cache = load ? gpu::getCache(load) : gpu::CacheAttr();
  const bool isCommon = cache && cache.getCommon() && !masks.empty();
  return cost::access + (masks.empty() ? 0 : cost::maskOfAccess) +
         (isCommon ? cost::choiceOfAddress : 0);
}

void BlockWalk::access(Operation *op, Value memory, ValueRange indices, ValueRange strides,
                       ArrayAttr dims, ValueRange masks, RankedTensorType tile, Type element,
                       bool writes, double times) {
  auto argument = arguments.tensors.find(memory);
  if (argument == arguments.tensors.end())
    return;
  if (recorded) {
    if (!writes)
      remember(op, argument->second.tensor, indices);
    return;
  }
  int64_t vector = 1;
  if (auto load = dyn_cast<gpu::LoadOp>(op))
    vector = load.getRun() > 1 ? load.getRun() : load.getVector();
  else if (auto attr = op->getAttrOfType<IntegerAttr>("vector"))
    vector = attr.getInt();
  else if (auto copy = dyn_cast<gpu::CopyPrivateOp>(op))
    vector = copy.getTarget().getType().getVector();
  double share = 1;
  for (Value mask : masks) {
    Known known = values.get(mask);
    share *= known.isScalar() ? double(known.base != 0) : known.share;
  }
  const TileAccess accessed{indices,
                            strides,
                            dims,
                            tile ? tile.getShape() : ArrayRef<int64_t>(),
                            share,
                            vector,
                            elementBytes(element)};
  Footprint places = footprintOf(values, accessed);
  Traffic &traffic = counts.traffic[argument->second.tensor];
  if (places.bytes == 0)
    return;
  if (tile) {
    const AccessCost cost = costOfMemory(values, accessed, tile);
    counts.work.sharedBytes += cost.bytes * share * times;
    counts.work.instructions += cost.accesses * instructionsOfAccess(op, masks) * times;
  }
  if (writes) {
    traffic.writtenBytes += places.bytes * times;
  } else {
    const double bytes = places.bytes * newShare(argument->second.tensor, places);
    traffic.readBytes += bytes * times;
    readSoFar += bytes; // a loop multiplies it by its iterations
  }
}

/// The share of a box of `length` from `begin` on that lies inside an axis.
static double insideOf(std::optional<int64_t> begin, int64_t length, int64_t extent) {
  if (!begin || length <= 0)
    return 1;
  int64_t end = std::min(*begin + length, extent), from = std::max<int64_t>(*begin, 0);
  return double(std::max<int64_t>(end - from, 0)) / double(length);
}

void BlockWalk::accessBox(Operation *op, Value map, ValueRange coordinates, gpu::SharedType tile,
                          double share, bool writes, double times) {
  auto found = arguments.tensors.find(map);
  if (found == arguments.tensors.end())
    return;
  if (recorded) {
    if (!writes)
      remember(op, found->second.tensor, coordinates);
    return;
  }
  const TensorArgument &argument = found->second;
  const size_t rank = argument.box.size();
  double elements = 1;
  for (int64_t extent : tile.getShape())
    elements *= double(extent);
  const int64_t row = tile.getShape()[tile.getAxisOrder()[0]];
  double others = elements / double(row); // rows of the tile
  double rowsOfBox = 1;
  for (size_t d = 0; d + 1 < rank; ++d)
    rowsOfBox *= double(argument.box[d]);
  if (op->hasAttr("first_row")) {
    elements *= rowsOfBox / others;
    others = rowsOfBox;
  }
  // Several boxes make a tile: its rows run along the axis before the last one.
  if (tile.getInterleave() == 1)
    for (size_t d = 0; d < rank; ++d) {
      int64_t length = argument.box[d];
      if (d + 2 == rank)
        length = int64_t(others / (rowsOfBox / double(length)));
      if (d + 1 == rank)
        length = row;
      if (!argument.hasPlaces || d == 0 || d + 1 == rank)
        elements *= insideOf(values.scalar(coordinates[d]), length, argument.extents[d]);
    }
  const double bytes = elements * elementBytes(tile.getElementType()) * share * times;
  Traffic &traffic = counts.traffic[argument.tensor];
  (writes ? traffic.writtenBytes : traffic.readBytes) += bytes;
  counts.work.sharedBytes += bytes;
}

bool BlockWalk::visitMemory(Operation *op, double times) {
  auto elementOf = [](Value buffer) {
    return cast<gpu::BufferType>(buffer.getType()).getValueType();
  };
  if (auto load = dyn_cast<gpu::LoadOp>(op)) {
    access(op, load.getBuffer(), load.getIndices(), load.getStrides(), load.getIndexDims(),
           load.getMasks(), dyn_cast<RankedTensorType>(load.getType()), elementOf(load.getBuffer()),
           false, times);
  } else if (auto store = dyn_cast<gpu::StoreOp>(op)) {
    access(op, store.getBuffer(), store.getIndices(), store.getStrides(), store.getIndexDims(),
           store.getMasks(), dyn_cast<RankedTensorType>(store.getValue().getType()),
           elementOf(store.getBuffer()), true, times);
  } else if (auto copy = dyn_cast<gpu::CopyAsyncOp>(op)) {
    auto tile = RankedTensorType::get(copy.getTarget().getType().getShape(),
                                      copy.getTarget().getType().getElementType());
    access(op, copy.getBuffer(), copy.getIndices(), copy.getStrides(), copy.getIndexDims(),
           copy.getMasks(), tile, elementOf(copy.getBuffer()), false, times);
    if (!recorded)
      counts.work.sharedBytes += countElements(tile) * elementBytes(tile.getElementType()) * times;
  } else if (auto copy = dyn_cast<gpu::CopyPrivateOp>(op)) {
    access(op, copy.getBuffer(), copy.getIndices(), copy.getStrides(), copy.getIndexDims(),
           copy.getMasks(), copy.getCopiedType(), elementOf(copy.getBuffer()), false, times);
  } else if (auto copy = dyn_cast<gpu::BulkCopyOp>(op)) {
    const double share = copy.getMulticast() ? 1.0 / double(function.getCluster()) : 1;
    // Two maps of one tensor differ in where they end.
    Value map = copy.getMap();
    while (auto either = map.getDefiningOp<arith::SelectOp>())
      map = either.getFalseValue();
    accessBox(op, map, copy.getCoordinates(), copy.getTarget().getType(), share, false, times);
  } else if (auto store = dyn_cast<gpu::BulkStoreOp>(op)) {
    accessBox(op, store.getMap(), store.getCoordinates(), store.getSource().getType(), 1, true,
              times);
  } else {
    return false;
  }
  return true;
}

} // namespace tk
