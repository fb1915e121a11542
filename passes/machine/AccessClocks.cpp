//===- AccessClocks.cpp - what accesses take of the L1 cache --------------===//
#include "passes/machine/AccessClocks.h"

#include "passes/machine/Machine.h"
#include "passes/machine/OperationCost.h"
#include "passes/machine/TileFacts.h"

#include "dialects/tkgpu/TkGpuLayout.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <array>
#include <cmath>

using namespace mlir;

namespace tk {
namespace {

/// Where the threads of a block access memory, in bytes, by the bits of a layout. An index whose
/// places data decides has places that are as good as random.
class Places {
public:
  Places(const KnownValues &values, const TileAccess &access, int64_t rank) {
    for (auto [index, stride, attr] : llvm::zip(access.indices, access.strides, access.dims)) {
      ArrayRef<int64_t> along = cast<DenseI64ArrayAttr>(attr).asArrayRef();
      if (along.empty())
        continue;
      Index &to = indices.emplace_back();
      const double bytes = std::max(access.bytesOfElement, 1.0);
      to.distance = double(values.scalar(stride).value_or(1)) * bytes;
      to.steps.assign(size_t(rank), 0);
      SumOfLines sum;
      to.isKnown = sum.add(values, index, along);
      if (to.isKnown)
        for (auto [axis, line] : sum.lines)
          to.steps[size_t(axis)] = line.step;
      else
        for (int64_t axis : along)
          to.steps[size_t(axis)] = double(int64_t(1) << (8 * axis));
      hasQuotients |= llvm::any_of(to.steps, [](double step) { return step > 0 && step < 1; });
    }
  }

  /// The place of the thread, or the register, of that number.
  int64_t of(ArrayRef<gpu::LayoutBit> bits, int64_t number) const {
    double place = 0;
    for (const Index &index : indices) {
      double along = 0;
      for (auto [position, bit] : llvm::enumerate(bits))
        if (!bit.isReplication() && (number >> position & 1) != 0)
          along += double(bit.step) * index.steps[size_t(bit.axis)];
      if (!index.isKnown && along != 0)
        along = double(llvm::hash_value(int64_t(along)) % assumedExtent);
      place += std::floor(along) * index.distance;
    }
    return int64_t(place);
  }
  /// Whether neighbours have the same place now and then.
  bool hasQuotients = false;

private:
  struct Index {
    double distance = 0; ///< bytes
    SmallVector<double> steps;
    bool isKnown = true;
  };
  SmallVector<Index> indices;
};

/// Clocks that an access of a warp takes of the first-level cache: its banks of four bytes give a
/// word each, to four lanes of 16 bytes at a time, to eight of 8, to all of 4.
int64_t clocksOfWarp(ArrayRef<int64_t> places, int64_t bytesOfAccess) {
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
  return clocks;
}

/// The share of a thread's accesses whose places are different: it has equal ones once.
double differentShare(const Places &places, gpu::LayoutAttr layout) {
  if (!places.hasQuotients)
    return 1;
  const int64_t registers = layout.getNumRegisters();
  llvm::SmallDenseSet<int64_t> different;
  for (int64_t number = 0; number < registers; ++number)
    different.insert(places.of(layout.getRegisterBits(), number));
  return double(different.size()) / double(registers);
}

} // namespace

AccessCost costOfMemory(const KnownValues &values, const TileAccess &access,
                        RankedTensorType tile) {
  const double bytes = std::max(access.bytesOfElement, 1.0);
  gpu::LayoutAttr layout = gpu::getLayout(tile);
  if (!layout)
    return {countElements(tile) * bytes, 0};
  const Places places(values, access, layout.getRank());
  std::array<int64_t, lanesOfWarp> ofLanes;
  for (int64_t lane = 0; lane < lanesOfWarp; ++lane)
    ofLanes[size_t(lane)] = places.of(layout.getLaneBits(), lane);
  const double accesses =
      countThreadElements(tile) / double(access.vector) * differentShare(places, layout);
  const int64_t clocks = clocksOfWarp(ofLanes, int64_t(double(access.vector) * bytes));
  return {accesses / lanesOfWarp * double(clocks) * double(sharedRate), accesses};
}

/// Where an element of a tile lies in shared memory, in elements.
static int64_t placeOf(gpu::SharedType buffer, ArrayRef<int64_t> coordinates) {
  const auto strides = buffer.getStrides();
  const auto order = buffer.getAxisOrder();
  const int64_t panel = buffer.getPanel();
  int64_t place = 0;
  for (auto [axis, coordinate] : llvm::enumerate(coordinates)) {
    int64_t at = coordinate;
    if (int64_t(axis) == order[0]) {
      if (panel) {
        place += at / panel * buffer.getPanelStride();
        at %= panel;
      }
      if (buffer.getPhases() > 1 && order.size() > 1)
        at ^= coordinates[order[1]] / buffer.getPerPhase() % buffer.getPhases() * buffer.getChunk();
    }
    place += at * strides[axis];
  }
  return place;
}

AccessCost costOfShared(gpu::SharedType buffer, RankedTensorType tile, int64_t vector) {
  const double bytes = elementBytes(tile.getElementType());
  gpu::LayoutAttr layout = gpu::getLayout(tile);
  const double elements = countThreadElements(tile), accesses = elements / double(vector);
  if (!layout || size_t(layout.getRank()) != buffer.getShape().size())
    return {elements * bytes, accesses};
  std::array<int64_t, lanesOfWarp> places;
  for (int64_t lane = 0; lane < lanesOfWarp; ++lane) {
    SmallVector<int64_t> coordinates(size_t(layout.getRank()), 0);
    for (auto [position, bit] : llvm::enumerate(layout.getLaneBits()))
      if (!bit.isReplication() && (lane >> position & 1) != 0)
        coordinates[size_t(bit.axis)] += bit.step;
    places[size_t(lane)] = int64_t(double(placeOf(buffer, coordinates)) * bytes);
  }
  const int64_t clocks = clocksOfWarp(places, int64_t(double(vector) * bytes));
  return {accesses / lanesOfWarp * double(clocks) * double(sharedRate), accesses};
}

} // namespace tk
