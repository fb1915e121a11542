//===- BulkBox.cpp - accesses to boxes of a tensor ------------------------===//
//
// An access is to a box if
// 1. each of its indices is a scalar, or a scalar plus 0, 1, ... along one axis of the tile, each
//    axis of the tile taken once;
// 2. the innermost axis of the tensor has stride 1 and is one of them, all other strides are
//    multiples of 16 bytes, and so are the base address and where the box begins along that axis
//    (an H200 raises an illegal instruction for a coordinate in between);
// 3. its masks compare such an index with what bounds the axis, so that elements that are masked
//    off lie outside the tensor that the map describes, and they read as zero;
// 4. the box's sides are at most 256, its rows of at least 32 bytes.
//
// Rows may also be counted through: where several indices are digits of one count, the axes are one
// of the box if they are contiguous in memory. Else the rows are places of windows
// (CountedBox.cpp).
//
// Along an axis a few neighbours may read one stored element: a word of packed numbers at `k / 8`.
// The box has the words alone.
//
// Rows may also be gathered: where indices are the same for aligned groups of rows, as what a table
// says of pages is, and one counts the rows of a group, each group is a box of its own. Where a
// mask ends the rows within a group, each group has an end of its own.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/BulkBox.h"
#include "passes/machine/limits/Layouts.h"

#include "passes/analysis/SizeFacts.h"
#include "passes/layout/MemoryAccess.h"
#include "passes/layout/RepeatedRuns.h"
#include "passes/layout/RunIndices.h"
#include "passes/layout/SharedTiles.h"
#include "passes/layout/TileElements.h"
#include "passes/machine/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::bulk_box;

void BulkBox::cutRows(int64_t bytes) {
  shared = panelledTile(shared.getShape(), shared.getElementType(), shared.getAxisOrder().front(),
                        bytes);
  box.back() = shared.getRowLength();
}

namespace {

class BulkAnalysis {
public:
  BulkAnalysis(const MemoryAccess &access, BufferType buffer, AxisInfo &info, std::string &why,
               bool isLoad, bool mayRepeat)
      : access(access), stored(isLoad ? buffer.getValueType() : buffer.getElementType()),
        info(info), why(why), isLoad(isLoad), mayRepeat(mayRepeat) {}

  FailureOr<BulkBox> run();

private:
  LogicalResult decline(const Twine &reason) {
    why = reason.str();
    return failure();
  }
  LogicalResult readIndices();
  /// Stored elements along an axis of the tile.
  int64_t storedSize(int64_t axis) const {
    return access.tile.getDimSize(axis) / repeats.lookup_or(axis, 1);
  }
  bool readGathered();
  bool readCounted();
  bool isOfGroups(Value mask, int64_t axis);
  int64_t axisAt(Value place);
  bool endsRows(arith::CmpIOp compare, int64_t axis);
  bool endsGroups(arith::CmpIOp compare, int64_t axis, Value end);
  std::optional<int64_t> readPart(unsigned d, int64_t axis, SmallVectorImpl<Value> &starts);
  LogicalResult checkStrides();
  LogicalResult readMasks();
  LogicalResult chooseTile();

  MemoryAccess access;
  Type stored;
  AxisInfo &info;
  std::string &why;
  bool isLoad, mayRepeat;
  BulkBox source;
  SmallVector<int64_t> tensorAxis; ///< by axis of the tile; -1: none yet
  /// By axis of the tile, how many neighbours each stored element stands for; none: one.
  DenseMap<int64_t, int64_t> repeats;
  DenseMap<int64_t, PartOfRun>
      groups; ///< by axis of the tile: of which the places are still missing
};

} // namespace

/// Two axes of a tensor may lie along one axis of the tile: the outer one counts groups of rows,
/// the inner one the rows of a group. The box's rows then follow each other as the tile's do.
/// Returns the box's side along axis `d` of the tensor if its index is one of these.
std::optional<int64_t> BulkAnalysis::readPart(unsigned d, int64_t axis,
                                              SmallVectorImpl<Value> &starts) {
  std::optional<PartOfRun> part = partOfRun(access.indices[d], starts);
  int64_t length = access.tile.getDimSize(axis);
  if (!part || length % part->size != 0 || d + 1 == access.indices.size())
    return std::nullopt;
  auto group = groups.find(axis);
  if (!part->isPlace) {
    if (tensorAxis[axis] >= 0)
      return std::nullopt;
    tensorAxis[axis] = d;
    groups[axis] = *part;
    return length / part->size;
  }
  if (group == groups.end() || group->second.size != part->size ||
      !sameRun(group->second.run, part->run))
    return std::nullopt;
  groups.erase(group);
  return part->size;
}

LogicalResult BulkAnalysis::readIndices() {
  tensorAxis.assign(access.tile.getRank(), -1);
  for (auto [d, index] : llvm::enumerate(access.indices)) {
    ArrayRef<int64_t> axes = access.indexAxes(d);
    SmallVector<Value> starts;
    if (axes.empty()) {
      starts.push_back(index);
    } else {
      if (std::optional<int64_t> side =
              axes.size() == 1 ? readPart(d, axes[0], starts) : std::nullopt) {
        source.coordinates.push_back(starts);
        source.box.push_back(*side);
        continue;
      }
      starts.clear();
      std::optional<int64_t> times;
      if (mayRepeat)
        times = repeatsOfRun(index, access.tile.getDimSize(axes[0]), info, starts);
      repeats[axes[0]] = times.value_or(1);
      if (axes.size() != 1 || (!times && !isRun(index, starts, /*fromConstants=*/true)))
        return decline("an index is not a run of consecutive numbers");
      if (tensorAxis[axes[0]] >= 0)
        return decline("two indices run along one axis of the tile");
      tensorAxis[axes[0]] = d;
    }
    source.coordinates.push_back(starts);
    source.box.push_back(axes.empty() ? 1 : storedSize(axes[0]));
  }
  if (llvm::is_contained(tensorAxis, -1))
    return decline("no index runs along an axis of the tile");
  if (!groups.empty())
    return decline("an index counts groups of rows, and none their places");
  return success();
}

/// Reads the indices of rows that are gathered: of aligned groups of them each index that follows
/// the rows is the same, but for one, which counts them.
bool BulkAnalysis::readGathered() {
  groups.clear();
  repeats.clear();
  source = BulkBox();
  size_t rank = access.indices.size();
  if (access.tile.getRank() != 2 || rank < 2 || access.indexAxes(rank - 1).size() != 1)
    return false;
  SmallVector<Value> columns;
  int64_t columnAxis = access.indexAxes(rank - 1)[0], axis = 1 - columnAxis;
  if (!isRun(access.indices.back(), columns))
    return false;
  int64_t group = std::min(access.tile.getDimSize(axis), mostExtentOfBox), counting = -1;
  source.coordinates.assign(rank, {});
  source.box.assign(rank, 1);
  source.gathered.assign(rank, {});
  for (unsigned d = 0; d + 1 < rank; ++d) {
    Value index = access.indices[d];
    if (access.indexAxes(d).empty()) {
      source.coordinates[d].push_back(index);
      continue;
    }
    if (access.indexAxes(d) != ArrayRef(axis) || !TileElements::areScalars(index))
      return false;
    const AxisFacts facts = info.of(index).axes[0];
    bool isCounting = facts.contiguity > facts.constancy;
    if (isCounting && counting >= 0)
      return false;
    counting = isCounting ? d : counting;
    group = std::min(group, isCounting ? facts.contiguity : facts.constancy);
    source.gathered[d] = index;
  }
  // A number that counts all rows may end them anywhere.
  auto isEnd = [&](arith::CmpIOp compare) {
    return compare.getPredicate() == arith::CmpIPredicate::slt && splatSource(compare.getRhs()) &&
           TileElements::areScalars(compare.getLhs()) &&
           info.of(compare.getLhs()).axes[0].contiguity >= group;
  };
  for (auto [m, mask] : llvm::enumerate(access.masks)) {
    auto compare = mask.getDefiningOp<arith::CmpIOp>();
    if (compare && access.maskAxes(m) == ArrayRef(axis) && TileElements::areScalars(mask) &&
        !llvm::is_contained(source.gathered, compare.getLhs()) && !isEnd(compare))
      group = std::min(group, info.of(mask).axes[0].constancy);
  }
  if (counting < 0 || group < kLeastGroup || access.tile.getDimSize(axis) % group != 0)
    return false;
  tensorAxis.assign(2, -1);
  tensorAxis[axis] = counting;
  tensorAxis[columnAxis] = rank - 1;
  source.coordinates.back() = columns;
  source.box.back() = access.tile.getDimSize(columnAxis);
  source.box[counting] = group;
  source.gatheredRows = group;
  return true;
}

/// Reads rows of which several indices are digits of a count.
bool BulkAnalysis::readCounted() {
  groups.clear();
  repeats.clear();
  BulkBox counted;
  if (!readCountedBox(access, isLoad, counted, why))
    return false;
  source = std::move(counted);
  return true;
}

LogicalResult BulkAnalysis::checkStrides() {
  int64_t bytes = access.elementBytes();
  if (access.baseAlignment < vectorBytes)
    return decline("buffers are not aligned to 16 bytes");
  if (constantIndex(access.strides.back()) != 1 ||
      access.indexAxes(access.strides.size() - 1).empty())
    return decline("the tile does not run along memory");
  for (Value stride : ValueRange(access.strides).drop_back())
    if (info.divisibilityOf(stride) * bytes % vectorBytes != 0)
      return decline("a stride is not known to be a multiple of 16 bytes");
  for (Value start : source.coordinates.back())
    if (info.divisibilityOf(start) * bytes % vectorBytes != 0)
      return decline("a row is not known to be entered at a multiple of 16 bytes");
  return success();
}

/// Is `mask`, along `axis` of the tile, the same for all rows that are gathered together?
bool BulkAnalysis::isOfGroups(Value mask, int64_t axis) {
  return source.gatheredRows &&
         !llvm::is_contained(access.indexAxes(access.indices.size() - 1), axis) &&
         TileElements::areScalars(mask) && info.of(mask).axes[0].constancy >= source.gatheredRows;
}

/// Does the comparison end the rows of a load that run from a number of their own, as those of a
/// part of a range do?
bool BulkAnalysis::endsRows(arith::CmpIOp compare, int64_t axis) {
  SmallVector<Value> starts, base;
  Value end = splatSource(compare.getRhs());
  if (source.gatheredRows)
    return endsGroups(compare, axis, end);
  if (!isLoad || source.end || !end || compare.getPredicate() != arith::CmpIPredicate::slt ||
      !isRun(access.indices[tensorAxis[axis]], starts) || !isRun(compare.getLhs(), base) ||
      llvm::is_contained(access.indexAxes(access.indices.size() - 1), axis))
    return false;
  source.end = end;
  source.endBase = base;
  return true;
}

/// The same of rows that are gathered, whose numbers in the end's terms are consecutive in a group.
bool BulkAnalysis::endsGroups(arith::CmpIOp compare, int64_t axis, Value end) {
  Value index = compare.getLhs();
  if (!isLoad || source.end || !end || compare.getPredicate() != arith::CmpIPredicate::slt ||
      access.indices.size() >= mostAxesOfTensorMap ||
      llvm::is_contained(access.indexAxes(access.indices.size() - 1), axis) ||
      !TileElements::areScalars(index) || info.of(index).axes[0].contiguity < source.gatheredRows)
    return false;
  source.end = end;
  source.endIndex = index;
  return true;
}

/// The axis of the tensor at which the tile lies at the scalar `place`, or -1.
int64_t BulkAnalysis::axisAt(Value place) {
  for (auto [d, index] : llvm::enumerate(access.indices))
    if (access.indexAxes(d).empty() && index == place)
      return d;
  return -1;
}

LogicalResult BulkAnalysis::readMasks() {
  source.limits.assign(access.indices.size(), {});
  for (auto [m, mask] : llvm::enumerate(access.masks)) {
    if (matchPattern(mask, m_One()))
      continue;
    auto compare = mask.getDefiningOp<arith::CmpIOp>();
    ArrayRef<int64_t> axes = access.maskAxes(m);
    if (!compare || axes.size() > 1)
      return decline("a mask is not a bound of one index");
    int64_t d = axes.empty() ? axisAt(compare.getLhs()) : tensorAxis[axes[0]];
    if (d < 0)
      return decline("a mask for the whole tile is not a bound of where it lies");
    auto bounded = llvm::find(source.gathered, compare.getLhs());
    if (axes.empty()) {
    } else if (bounded != source.gathered.end())
      d = bounded - source.gathered.begin();
    else if (isOfGroups(mask, axes[0])) {
      source.groupMasks.push_back(mask);
      continue;
    } else if (!sameRun(compare.getLhs(), access.indices[d])) {
      if (endsRows(compare, axes[0]))
        continue;
      return decline("a mask is not a bound of one of the indices");
    }
    // The hardware takes no coordinate below 0 for an element of the tensor. A store must not begin
    // at one.
    if (compare.getPredicate() == arith::CmpIPredicate::sge &&
        constantIndex(compare.getRhs()) == 0) {
      if (!isLoad && source.beforeAxis && source.beforeAxis != d)
        return decline("two indices may begin below 0");
      if (!isLoad)
        source.beforeAxis = d;
      continue;
    }
    Value limit = splatSource(compare.getRhs());
    if (!limit && constantIndex(compare.getRhs()))
      limit = compare.getRhs();
    if (compare.getPredicate() != arith::CmpIPredicate::slt || !limit)
      return decline("a mask is not an upper bound that is the same for all");
    if (source.limits[d] && source.limits[d] != limit)
      return decline("an index has two upper bounds");
    source.limits[d] = limit;
  }
  return success();
}

LogicalResult BulkAnalysis::chooseTile() {
  RankedTensorType tile = access.tile;
  if (tile.getRank() != 2 || access.indices.size() > mostAxesOfTensorMap)
    return decline("the hardware takes boxes of two sides of tensors of up to five axes");
  if (stored != tile.getElementType() || !stored.isIntOrFloat() ||
      stored.getIntOrFloatBitWidth() < 8)
    return decline("elements are not copied as they are stored");
  int64_t axis = access.indexAxes(access.indices.size() - 1)[0];
  int64_t rowBytes = storedSize(axis) * bytesOfElement(stored);
  if (rowBytes < 2 * vectorBytes)
    return decline("the tile's rows are shorter than 32 bytes");
  source.shared = panelledTile({storedSize(0), storedSize(1)}, stored, axis, swizzleBytes);
  source.box.back() = source.shared.getRowLength();
  if (llvm::any_of(source.box, [](int64_t side) { return side > mostExtentOfBox; }))
    return decline("a side of the tile is longer than 256");
  return success();
}

FailureOr<BulkBox> BulkAnalysis::run() {
  bool isRead = (succeeded(readIndices()) && succeeded(readMasks())) || readCounted();
  if (!isRead && isLoad)
    isRead = readGathered() && succeeded(readMasks());
  if (!isRead || failed(checkStrides()) || failed(chooseTile()))
    return failure();
  if (source.strides.empty())
    source.strides.assign(access.strides.begin(), access.strides.end());
  return source;
}

static FailureOr<BulkBox> analyse(const MemoryAccess &access, Value buffer, AxisInfo &info,
                                  std::string &why, bool isLoad, bool mayRepeat) {
  FailureOr<BulkBox> box =
      BulkAnalysis(access, cast<BufferType>(buffer.getType()), info, why, isLoad, mayRepeat).run();
  if (succeeded(box))
    box->buffer = buffer;
  return box;
}

static FailureOr<BulkBox> analyseLoad(gpu::LoadOp load, AxisInfo &info, std::string &why,
                                      bool mayRepeat) {
  Value other = load.getOther();
  bool isZero = !other || load.getMasks().empty() || matchPattern(other, m_AnyZeroFloat()) ||
                matchPattern(other, m_Zero());
  if (!isa<RankedTensorType>(load.getType()) || !isZero) {
    why = "it is a scalar, or elements that are masked off are not zero";
    return failure();
  }
  return analyse(MemoryAccess::of(load), load.getBuffer(), info, why, /*isLoad=*/true, mayRepeat);
}

FailureOr<BulkBox> tk::analyseBulkBox(gpu::LoadOp load, AxisInfo &info, std::string &why) {
  return analyseLoad(load, info, why, /*mayRepeat=*/false);
}

FailureOr<BulkBox> tk::analyseRepeatedBox(gpu::LoadOp load, AxisInfo &info, std::string &why) {
  return analyseLoad(load, info, why, /*mayRepeat=*/true);
}

FailureOr<BulkBox> tk::analyseBulkBox(gpu::StoreOp store, AxisInfo &info, std::string &why) {
  if (!isa<RankedTensorType>(store.getValue().getType())) {
    why = "it is a scalar";
    return failure();
  }
  return analyse(MemoryAccess::of(store), store.getBuffer(), info, why, /*isLoad=*/false,
                 /*mayRepeat=*/false);
}
