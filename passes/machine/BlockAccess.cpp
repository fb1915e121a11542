//===- BlockAccess.cpp - what one block does: global memory ---------------===//
#include "passes/machine/BlockWalk.h"
#include "passes/machine/OperationCost.h"
#include "passes/machine/TileFacts.h"

#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

#include <array>
#include <cmath>

using namespace mlir;

namespace tk {
namespace {
/// The number that all elements of a tile are, if that is known.
std::optional<int64_t> numberOf(const KnownValues &values, Value tile) {
  DenseIntElementsAttr elements;
  if (matchPattern(tile, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<APInt>().getSExtValue();
  Value source = gpu::splatSource(tile);
  return source ? values.scalar(source) : std::nullopt;
}

/// An index over several axes of a tile as a sum of lines, each along one of them.
struct SumOfLines {
  int64_t base = 0;
  llvm::SmallDenseMap<int64_t, std::pair<int64_t, int64_t>> lines; ///< axis: step, count

  /// Adds `factor` times `index`, whose axes are `along` of the tile; false if it is no such sum.
  bool add(const KnownValues &values, Value index, ArrayRef<int64_t> along, int64_t factor = 1) {
    Known known = values.get(index);
    if (known.isScalar()) {
      base += factor * known.base;
      return true;
    }
    if (known.isLine() && along.size() == 1 && known.step >= 0) {
      base += factor * known.base;
      auto [line, isNew] = lines.try_emplace(along[0], 0, known.count);
      line->second.first += factor * known.step;
      return true;
    }
    Operation *op = index.getDefiningOp();
    if (auto broadcast = dyn_cast_or_null<gpu::BroadcastOp>(op)) {
      SmallVector<int64_t> from;
      for (int64_t axis : broadcast.getDims())
        from.push_back(along[axis]);
      return add(values, broadcast.getSource(), from, factor);
    }
    if (isa_and_nonnull<arith::MulIOp>(op))
      for (unsigned n : {0U, 1U})
        if (std::optional<int64_t> number = numberOf(values, op->getOperand(n)))
          return add(values, op->getOperand(1 - n), along, factor * *number);
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
      return false;
    return add(values, op->getOperand(0), along, factor) &&
           add(values, op->getOperand(1), along, isa<arith::SubIOp>(op) ? -factor : factor);
  }
};
} // namespace

/// The places of an access. Indices are lines along axes of the tile; an axis that no index runs
/// over is one element, which all share.
static Footprint footprintOf(const KnownValues &values, ValueRange indices, ValueRange strides,
                             ArrayAttr dims, ArrayRef<int64_t> shape, double share, int64_t vector,
                             double bytesOfElement) {
  SmallVector<int64_t> counts(shape.size(), 0);
  SmallVector<std::pair<int64_t, int64_t>> axes; // distance, count
  Footprint places;
  for (auto [index, stride, attr] : llvm::zip(indices, strides, dims)) {
    ArrayRef<int64_t> along = cast<DenseI64ArrayAttr>(attr).asArrayRef();
    Known known = values.get(index);
    for (int64_t axis : along) {
      int64_t count = known.isLine() && along.size() == 1 ? known.count : shape[axis];
      counts[axis] = counts[axis] == 0 ? count : std::min(counts[axis], count);
    }
    const int64_t distance = values.scalar(stride).value_or(1);
    if (SumOfLines sum; along.size() > 1 && sum.add(values, index, along)) {
      places.base += sum.base * distance;
      for (auto [axis, line] : sum.lines) {
        counts[axis] = std::min(counts[axis], line.second);
        axes.emplace_back(distance * line.first, counts[axis]);
      }
      continue;
    }
    // Data says where: each place is one of its own, which other accesses do not share.
    int64_t base =
        known.isScalar() || known.isLine() ? known.base : int64_t(values.key(index) >> 8);
    const bool isLine = along.size() == 1 && known.isLine();
    int64_t step = known.step == Known::irregular ? 1 : known.step;
    if (isLine && step < 0) { // backwards: the same places as those from the last one on
      base += step * (counts[along[0]] - 1);
      step = -step;
    }
    places.base += base * distance;
    if (isLine)
      axes.emplace_back(distance * step, counts[along[0]]);
    else if (!along.empty() && distance == 1)
      axes.emplace_back(1, vector);
  }
  double elements = share;
  for (int64_t count : counts)
    elements *= double(std::max<int64_t>(count, 1));
  const double sector = double(sectorBytes) / bytesOfElement; // elements
  double touched = 1;                                         // of a run
  llvm::sort(axes);
  for (auto [distance, count] : axes) {
    if (distance == 0 || count <= 1)
      continue;
    if (places.axes.empty() && double(distance) <= std::max(places.run, sector)) {
      places.run += double(distance) * double(count - 1);
      touched *= double(count);
    } else {
      places.axes.emplace_back(distance, count);
    }
  }
  const double waste =
      std::max(places.run, elements > 1 ? sector : 1.0) / std::min(touched, places.run);
  places.bytes = elements * bytesOfElement * std::min(waste, sector);
  return places;
}

/// Where the lanes of a warp access memory, in bytes from its first lane on. An axis whose places
/// data decides has places that are as good as random.
static std::array<int64_t, lanesOfWarp> placesOfLanes(const KnownValues &values, ValueRange indices,
                                                      ValueRange strides, ArrayAttr dims,
                                                      gpu::LayoutAttr layout,
                                                      int64_t bytesOfElement) {
  std::array<int64_t, lanesOfWarp> places = {};
  for (auto [index, stride, attr] : llvm::zip(indices, strides, dims)) {
    ArrayRef<int64_t> along = cast<DenseI64ArrayAttr>(attr).asArrayRef();
    const Known known = values.get(index);
    const int64_t distance = values.scalar(stride).value_or(1) * bytesOfElement;
    const bool isLine = known.isLine() && along.size() == 1 && known.step != Known::irregular;
    for (int64_t lane = 0; lane < lanesOfWarp; ++lane) {
      int64_t place = 0;
      for (auto [position, bit] : llvm::enumerate(layout.getLaneBits()))
        if (!bit.isReplication() && llvm::is_contained(along, int64_t(bit.axis)))
          place += (lane >> position & 1) * bit.step * (int64_t(1) << (8 * bit.axis));
      if (isLine)
        place = (place >> (8 * along[0])) * known.step;
      else if (place != 0)
        place = int64_t(llvm::hash_value(place) % assumedExtent);
      places[size_t(lane)] += place * distance;
    }
  }
  return places;
}

/// Clocks that an access of a warp takes of the first-level cache: its banks of four bytes give a
/// word each, to four lanes of 16 bytes at a time, to eight of 8, to all of 4.
static double clocksOfWarp(ArrayRef<int64_t> places, int64_t bytesOfAccess) {
  constexpr int64_t banks = 32, bytesOfWord = 4;
  const int64_t words = llvm::divideCeil(bytesOfAccess, bytesOfWord);
  const int64_t together = std::max<int64_t>(lanesOfWarp / words, 1);
  int64_t clocks = 0;
  for (int64_t first = 0; first < lanesOfWarp; first += together) {
    std::array<llvm::SmallDenseSet<int64_t, 4>, banks> ofBanks;
    size_t most = 0;
    for (int64_t place : places.slice(size_t(first), size_t(together)))
      for (int64_t word = 0; word < words; ++word) {
        const int64_t number = place / bytesOfWord + word;
        auto &ofBank = ofBanks[size_t(number & (banks - 1))];
        ofBank.insert(number);
        most = std::max<size_t>(most, ofBank.size());
      }
    clocks += int64_t(most);
  }
  return double(clocks);
}

/// Bytes of the first-level cache's rate, which is the shared memory's, that the accesses of a
/// block's threads take.
static double bytesOfCache(const KnownValues &values, ValueRange indices, ValueRange strides,
                           ArrayAttr dims, RankedTensorType tile, int64_t vector,
                           int64_t bytesOfElement) {
  gpu::LayoutAttr layout = gpu::getLayout(tile);
  if (!layout)
    return countElements(tile) * double(bytesOfElement);
  const double instructions = countThreadElements(tile) / double(vector * lanesOfWarp);
  const auto places = placesOfLanes(values, indices, strides, dims, layout, bytesOfElement);
  return instructions * clocksOfWarp(places, vector * bytesOfElement) * double(sharedRate);
}

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
  if (auto attr = op->getAttrOfType<IntegerAttr>("vector"))
    vector = attr.getInt();
  else if (auto copy = dyn_cast<gpu::CopyPrivateOp>(op))
    vector = copy.getTarget().getType().getVector();
  double share = 1;
  for (Value mask : masks) {
    Known known = values.get(mask);
    share *= known.isScalar() ? double(known.base != 0) : known.share;
  }
  Footprint places =
      footprintOf(values, indices, strides, dims, tile ? tile.getShape() : ArrayRef<int64_t>(),
                  share, vector, elementBytes(element));
  Traffic &traffic = counts.traffic[argument->second.tensor];
  if (places.bytes == 0)
    return;
  if (tile)
    counts.work.sharedBytes += bytesOfCache(values, indices, strides, dims, tile, vector,
                                            std::max<int64_t>(int64_t(elementBytes(element)), 1)) *
                               share * times;
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
