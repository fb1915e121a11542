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
//===----------------------------------------------------------------------===//
#include "passes/memory/BulkBox.h"

#include "passes/memory/MemoryAccess.h"
#include "passes/tiling/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

static constexpr int64_t kBoxSide = 256;
static constexpr int64_t kSwizzleBytes = 128; ///< of a panel's row at most
static constexpr int64_t kChunkBytes = 16;
static constexpr size_t kMapRank = 5;

/// The scalar that a tile of one value repeats.
static Value splatSource(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  return broadcast && !isa<RankedTensorType>(broadcast.getSource().getType())
             ? broadcast.getSource()
             : Value();
}

/// Whether `index` is 0, 1, ... plus scalars, which are appended to `starts`.
static bool isRun(Value index, SmallVectorImpl<Value> &starts) {
  if (index.getDefiningOp<IotaOp>())
    return true;
  auto add = index.getDefiningOp<arith::AddIOp>();
  if (!add)
    return false;
  for (auto [run, base] :
       {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
    if (Value start = splatSource(base)) {
      starts.push_back(start);
      return isRun(run, starts);
    }
  return false;
}

namespace {
/// An index that counts the groups of `size` that a run 0, 1, ... falls into, or the places in
/// them.
struct PartOfRun {
  Value run;
  int64_t size;
  bool isPlace;
};
} // namespace

/// Reads `index` as such, plus scalars, which are appended to `starts`.
static std::optional<PartOfRun> partOfRun(Value index, SmallVectorImpl<Value> &starts) {
  if (auto add = index.getDefiningOp<arith::AddIOp>())
    for (auto [part, base] :
         {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
      if (Value start = splatSource(base)) {
        starts.push_back(start);
        return partOfRun(part, starts);
      }
  Operation *op = index.getDefiningOp();
  if (!isa_and_nonnull<FloorDivOp, FloorModOp>(op) || !op->getOperand(0).getDefiningOp<IotaOp>())
    return std::nullopt;
  Value divisor = op->getOperand(1);
  if (Value scalar = splatSource(divisor))
    divisor = scalar;
  std::optional<int64_t> size = constantIndex(divisor);
  if (!size || *size < 1)
    return std::nullopt;
  return PartOfRun{op->getOperand(0), *size, isa<FloorModOp>(op)};
}

/// Whether both run from the same value.
static bool sameRun(Value a, Value b) {
  SmallVector<Value> ofA, ofB;
  return a == b || (isRun(a, ofA) && isRun(b, ofB) && ofA == ofB);
}

/// A tile with rows of at most `most` bytes along `axis`, permuted as the hardware does.
static SharedType panelledTile(ArrayRef<int64_t> shape, Type stored, int64_t axis,
                               int64_t most = kSwizzleBytes) {
  int64_t bytes = bytesOfElement(stored), rowBytes = shape[axis] * bytes;
  int64_t panelBytes = std::min(rowBytes, most);
  int64_t panel = panelBytes < rowBytes ? panelBytes / bytes : 0;
  return SharedType::get(stored.getContext(), shape, stored, {axis, 1 - axis},
                         /*padding=*/0, kChunkBytes / bytes, kSwizzleBytes / panelBytes,
                         panelBytes / kChunkBytes, panel, /*interleave=*/1);
}

void BulkBox::cutRows(int64_t bytes) {
  shared = panelledTile(shared.getShape(), shared.getElementType(), shared.getAxisOrder().front(),
                        bytes);
  box.back() = shared.getRowLength();
}

namespace {

class BulkAnalysis {
public:
  BulkAnalysis(const MemoryAccess &access, BufferType buffer, AxisInfo &info, std::string &why)
      : access(access), stored(buffer.getElementType()), info(info), why(why) {}

  FailureOr<BulkBox> run();

private:
  LogicalResult decline(const Twine &reason) {
    why = reason.str();
    return failure();
  }
  LogicalResult readIndices();
  std::optional<int64_t> readPart(unsigned d, int64_t axis, SmallVectorImpl<Value> &starts);
  LogicalResult checkStrides();
  LogicalResult readMasks();
  LogicalResult chooseTile();

  MemoryAccess access;
  Type stored;
  AxisInfo &info;
  std::string &why;
  BulkBox source;
  SmallVector<int64_t> tensorAxis; ///< by axis of the tile; -1: none yet
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
      if (axes.size() != 1 || !isRun(index, starts))
        return decline("an index is not a run of consecutive numbers");
      if (tensorAxis[axes[0]] >= 0)
        return decline("two indices run along one axis of the tile");
      tensorAxis[axes[0]] = d;
    }
    source.coordinates.push_back(starts);
    source.box.push_back(axes.empty() ? 1 : access.tile.getDimSize(axes[0]));
  }
  if (llvm::is_contained(tensorAxis, -1))
    return decline("no index runs along an axis of the tile");
  if (!groups.empty())
    return decline("an index counts groups of rows, and none their places");
  return success();
}

LogicalResult BulkAnalysis::checkStrides() {
  int64_t bytes = access.elementBytes();
  if (access.baseAlignment < kChunkBytes)
    return decline("buffers are not aligned to 16 bytes");
  if (constantIndex(access.strides.back()) != 1 ||
      access.indexAxes(access.strides.size() - 1).empty())
    return decline("the tile does not run along memory");
  for (Value stride : ValueRange(access.strides).drop_back())
    if (info.divisibilityOf(stride) * bytes % kChunkBytes != 0)
      return decline("a stride is not known to be a multiple of 16 bytes");
  for (Value start : source.coordinates.back())
    if (info.divisibilityOf(start) * bytes % kChunkBytes != 0)
      return decline("a row is not known to be entered at a multiple of 16 bytes");
  return success();
}

LogicalResult BulkAnalysis::readMasks() {
  source.limits.assign(access.indices.size(), {});
  for (auto [m, mask] : llvm::enumerate(access.masks)) {
    if (matchPattern(mask, m_One()))
      continue;
    auto compare = mask.getDefiningOp<arith::CmpIOp>();
    ArrayRef<int64_t> axes = access.maskAxes(m);
    if (!compare || axes.size() != 1)
      return decline("a mask is not a bound of one index");
    int64_t d = tensorAxis[axes[0]];
    if (!sameRun(compare.getLhs(), access.indices[d]))
      return decline("a mask is not a bound of one of the indices");
    // The hardware takes no coordinate below 0 for an element of the tensor.
    if (compare.getPredicate() == arith::CmpIPredicate::sge && constantIndex(compare.getRhs()) == 0)
      continue;
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
  if (tile.getRank() != 2 || access.indices.size() > kMapRank)
    return decline("the hardware takes boxes of two sides of tensors of up to five axes");
  if (stored != tile.getElementType() || !stored.isIntOrFloat() ||
      stored.getIntOrFloatBitWidth() < 8)
    return decline("elements are not copied as they are stored");
  int64_t axis = access.indexAxes(access.indices.size() - 1)[0];
  int64_t rowBytes = tile.getDimSize(axis) * bytesOfElement(stored);
  if (rowBytes < 2 * kChunkBytes)
    return decline("the tile's rows are shorter than 32 bytes");
  source.shared = panelledTile(tile.getShape(), stored, axis);
  source.box.back() = source.shared.getRowLength();
  if (llvm::any_of(source.box, [](int64_t side) { return side > kBoxSide; }))
    return decline("a side of the tile is longer than 256");
  return success();
}

FailureOr<BulkBox> BulkAnalysis::run() {
  if (failed(readIndices()) || failed(checkStrides()) || failed(readMasks()) ||
      failed(chooseTile()))
    return failure();
  source.strides.assign(access.strides.begin(), access.strides.end());
  return source;
}

static FailureOr<BulkBox> analyse(const MemoryAccess &access, Value buffer, AxisInfo &info,
                                  std::string &why) {
  FailureOr<BulkBox> box =
      BulkAnalysis(access, cast<BufferType>(buffer.getType()), info, why).run();
  if (succeeded(box))
    box->buffer = buffer;
  return box;
}

FailureOr<BulkBox> tk::analyseBulkBox(gpu::LoadOp load, AxisInfo &info, std::string &why) {
  Value other = load.getOther();
  bool isZero = !other || load.getMasks().empty() || matchPattern(other, m_AnyZeroFloat()) ||
                matchPattern(other, m_Zero());
  if (!isa<RankedTensorType>(load.getType()) || !isZero) {
    why = "it is a scalar, or elements that are masked off are not zero";
    return failure();
  }
  return analyse(MemoryAccess::of(load), load.getBuffer(), info, why);
}

FailureOr<BulkBox> tk::analyseBulkBox(gpu::StoreOp store, AxisInfo &info, std::string &why) {
  if (!isa<RankedTensorType>(store.getValue().getType())) {
    why = "it is a scalar";
    return failure();
  }
  return analyse(MemoryAccess::of(store), store.getBuffer(), info, why);
}

std::optional<unsigned> BulkBox::rowsAxis() const {
  SharedType type = shared;
  int64_t rows = type.getShape()[type.getAxisOrder()[1]];
  for (unsigned axis = 0; axis + 1 < box.size(); ++axis)
    if (box[axis] == rows)
      return axis;
  return std::nullopt;
}

int64_t BulkBox::rowsOfGroup() const {
  int64_t parts = shared.getInterleave();
  return parts > 1 ? 2 * parts : 1;
}

SmallVector<Value> tk::buildCoordinates(OpBuilder &builder, Location loc, const BulkBox &box) {
  SmallVector<Value> coordinates;
  int64_t group = box.rowsOfGroup();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  for (auto [axis, summands] : llvm::enumerate(box.coordinates)) {
    Value sum;
    for (Value summand : summands)
      sum = sum ? arith::AddIOp::create(builder, loc, sum, summand).getResult() : summand;
    if (sum && group > 1 && axis == *box.rowsAxis())
      sum = arith::DivSIOp::create(builder, loc, sum, constant(group));
    coordinates.push_back(sum ? sum : constant(0));
  }
  if (group > 1)
    coordinates.insert(std::prev(coordinates.end()), constant(0));
  return coordinates;
}
