//===- Footprint.cpp - where the elements of an access lie ----------------===//
#include "passes/machine/Footprint.h"

#include "passes/machine/Machine.h"

#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace tk {

/// The number that all elements of a tile are, if that is known.
static std::optional<int64_t> numberOf(const KnownValues &values, Value tile) {
  DenseIntElementsAttr elements;
  if (matchPattern(tile, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<APInt>().getSExtValue();
  Value source = gpu::splatSource(tile);
  return source ? values.scalar(source) : std::nullopt;
}

/// The distance of neighbours of a line: of an irregular one, what it is on the average.
static std::optional<double> stepOf(Known line) {
  if (line.step != Known::irregular)
    return double(line.step);
  if (line.span == 0 || line.count < 2)
    return std::nullopt;
  return double(line.span) / double(line.count - 1);
}

bool SumOfLines::add(const KnownValues &values, Value index, ArrayRef<int64_t> along,
                     int64_t factor) {
  const Known known = values.get(index);
  if (known.isScalar()) {
    base += factor * known.base;
    return true;
  }
  if (known.isLine() && along.size() == 1)
    if (std::optional<double> step = stepOf(known)) {
      base += factor * known.base;
      Line &line = lines.try_emplace(along[0], Line{0, known.count}).first->second;
      line.step += double(factor) * *step;
      return true;
    }
  if (std::optional<int64_t> number = numberOf(values, index)) {
    base += factor * *number;
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
  return isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) &&
         add(values, op->getOperand(0), along, factor) &&
         add(values, op->getOperand(1), along, isa<arith::SubIOp>(op) ? -factor : factor);
}

namespace {
/// The lines of an access's indices, in elements of the tensor.
class Lines {
public:
  Lines(const KnownValues &values, const TileAccess &access)
      : values(values), access(access), counts(access.shape.size(), 0),
        uses(access.shape.size(), 0) {
    for (Attribute attr : access.dims)
      for (int64_t axis : cast<DenseI64ArrayAttr>(attr).asArrayRef())
        ++uses[axis];
    for (auto [index, stride, attr] : llvm::zip(access.indices, access.strides, access.dims))
      add(index, values.scalar(stride).value_or(1), cast<DenseI64ArrayAttr>(attr).asArrayRef());
    for (auto [axis, line] : diagonals) {
      isExact &= line.second == uses[axis];
      addLine(axis, line.first, 1);
    }
  }
  Footprint footprint();

private:
  void add(Value index, int64_t distance, ArrayRef<int64_t> along);
  void addLine(int64_t axis, double step, int64_t distance);
  bool joinRows(Footprint &places, int64_t distance, int64_t count);

  const KnownValues &values;
  const TileAccess &access;
  SmallVector<int64_t> counts;                   ///< elements that count, by axis of the tile
  SmallVector<int64_t> uses;                     ///< indices that run over an axis
  SmallVector<std::pair<int64_t, int64_t>> axes; ///< distance, count
  /// By axis that several indices run over: the distance of neighbours, and how many of them say
  /// so.
  llvm::SmallMapVector<int64_t, std::pair<double, int64_t>, 2> diagonals;
  int64_t base = 0;
  bool isExact = true; ///< each line has as many places as elements, all equally far apart
  double elements = 1;
};

/// Elements of a line that are different, and their distance.
void Lines::addLine(int64_t axis, double step, int64_t distance) {
  int64_t &count = counts[axis];
  const double size = std::abs(step);
  if (step < 0) // backwards: the same places as those from the last one on
    base += std::llround(step * double(count - 1)) * distance;
  // Quotients, of which several are equal.
  if (size > 0 && size < 1 && uses[axis] == 1)
    count = std::min<int64_t>(count, std::llround(size * double(count - 1)) + 1);
  const int64_t between = size > 0 ? std::max<int64_t>(std::llround(size), 1) : 0;
  axes.emplace_back(distance * between, count);
}

void Lines::add(Value index, int64_t distance, ArrayRef<int64_t> along) {
  const Known known = values.get(index);
  for (int64_t axis : along) {
    int64_t count = known.isLine() && along.size() == 1 ? known.count : access.shape[axis];
    counts[axis] = counts[axis] == 0 ? count : std::min(counts[axis], count);
  }
  if (SumOfLines sum; !along.empty() && sum.add(values, index, along)) {
    base += sum.base * distance;
    for (auto [axis, line] : sum.lines) {
      counts[axis] = std::min(counts[axis], line.count);
      // Of several indices over one axis, as along a diagonal, the distances add up.
      if (uses[axis] > 1 && line.step == std::round(line.step)) {
        diagonals[axis].first += line.step * double(distance);
        ++diagonals[axis].second;
        continue;
      }
      isExact &= uses[axis] == 1;
      addLine(axis, line.step, distance);
    }
    return;
  }
  // Data says where: each place is one of its own, which other accesses do not share.
  const bool isKnown = known.isScalar() || known.isLine();
  base += (isKnown ? known.base : int64_t(values.key(index) >> 8)) * distance;
  isExact &= along.empty();
  if (along.size() == 1 && known.isLine())
    axes.emplace_back(distance, counts[along[0]]);
  else if (!along.empty() && distance == 1)
    axes.emplace_back(1, access.vector);
}

/// Rows of windows that overlap: places that several of them have count once.
bool Lines::joinRows(Footprint &places, int64_t distance, int64_t count) {
  if (!isExact || places.axes.empty())
    return false;
  auto &[step, rows] = places.axes.back();
  const int64_t steps = distance / step;
  if (distance % step != 0 || steps >= rows)
    return false;
  const int64_t different = steps * (count - 1) + rows;
  elements *= std::min(
      double(different) / (double(rows) * double(count) * std::max(access.share, 1e-9)), 1.0);
  rows = different;
  return true;
}

Footprint Lines::footprint() {
  Footprint places;
  places.base = base;
  elements = access.share;
  for (int64_t count : counts)
    elements *= double(std::max<int64_t>(count, 1));
  const double sector = double(sectorBytes) / access.bytesOfElement; // elements
  double touched = 1;                                                // of a run
  llvm::sort(axes);
  for (auto [distance, count] : axes) {
    if (distance == 0 || count <= 1)
      continue;
    if (places.axes.empty() && double(distance) <= std::max(places.run + sector / 2, sector)) {
      places.run += double(distance) * double(count - 1);
      touched *= double(count);
    } else if (!joinRows(places, distance, count)) {
      places.axes.emplace_back(distance, count);
    }
  }
  // A run of more accesses than places has some of them several times, but for those that a mask
  // leaves out.
  const double accessed = touched * std::max(access.share, 1e-9);
  const bool repeats = isExact && touched > places.run;
  const double ofRun =
      repeats ? std::max(accessed, std::min(touched, places.run)) : std::min(touched, places.run);
  const double waste = std::max(places.run, elements > 1 ? sector : 1.0) / ofRun;
  places.bytes = elements * access.bytesOfElement * std::min(waste, sector);
  return places;
}
} // namespace

Footprint footprintOf(const KnownValues &values, const TileAccess &access) {
  return Lines(values, access).footprint();
}

} // namespace tk
