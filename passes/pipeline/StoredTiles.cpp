//===- StoredTiles.cpp - tiles that are stored to a result ----------------===//
//
// Follows each store to a result back to the tile in f32 or f64 that it rounds, through other
// layouts and shared memory, by threads or by TMA.
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/StoredTiles.h"

#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// What fills the buffer that `reader` reads: the store to it before, in its block.
static LocalStoreOp filledBy(Operation *reader, Value buffer) {
  for (Operation *op = reader->getPrevNode(); op; op = op->getPrevNode())
    if (auto store = dyn_cast<LocalStoreOp>(op); store && store.getTarget() == buffer)
      return store;
  return {};
}

/// What `op` takes another layout of, directly or through shared memory; null if it is no such
/// operation. `reader` is then what reads it.
static Value otherLayoutOf(Operation *op, Operation *&reader) {
  reader = op;
  if (isa<ConvertLayoutOp, HoldOp>(op))
    return op->getOperand(0);
  auto load = dyn_cast<LocalLoadOp>(op);
  LocalStoreOp store = load && !load.getFrom() ? filledBy(load, load.getSource()) : LocalStoreOp();
  ArrayRef<int64_t> shape = load ? load.getSource().getType().getShape() : ArrayRef<int64_t>();
  if (!store || cast<RankedTensorType>(load.getType()).getShape() != shape ||
      cast<RankedTensorType>(store.getValue().getType()).getShape() != shape)
    return {};
  reader = store;
  return store.getValue();
}

/// Goes back from what is stored to the tile in f32 or f64.
static bool findTile(Operation *store, Value stored, StoredTile &found) {
  found.rounding = store, found.tile = stored;
  Operation *reader = nullptr;
  while (Operation *op = found.tile.getDefiningOp()) {
    Value before = otherLayoutOf(op, reader);
    if (!before)
      break;
    found.tile = before, found.rounding = reader;
  }
  if (auto rounded = found.tile.getDefiningOp<arith::TruncFOp>()) {
    found.rounding = rounded;
    found.tile = rounded.getIn();
  }
  auto type = dyn_cast<RankedTensorType>(found.tile.getType());
  return type && (type.getElementType().isF32() || type.getElementType().isF64()) &&
         getLayout(type);
}

static std::optional<StoredTile> readStore(StoreOp store) {
  StoredTile found;
  if (!findTile(store, store.getValue(), found))
    return std::nullopt;
  for (auto [index, dims] : llvm::zip_equal(store.getIndices(), store.getIndexDims())) {
    ArrayRef<int64_t> along = cast<DenseI64ArrayAttr>(dims).asArrayRef();
    if (along.size() > 1)
      return std::nullopt;
    found.indices.push_back(index);
    found.axes.push_back(along.empty() ? -1 : along.front());
  }
  return found;
}

/// A store by TMA, of what one store to shared memory puts there.
static std::optional<StoredTile> readBulkStore(BulkStoreOp bulk, TensorMapOp map, size_t rank) {
  LocalStoreOp local = filledBy(bulk, bulk.getSource());
  StoredTile found;
  found.areBegins = true;
  if (!local || !map.getPlaces().empty() || map.getBefore() != 0 ||
      bulk.getCoordinates().size() != rank || !findTile(local, local.getValue(), found))
    return std::nullopt;
  // Rows of the tile that are the next one's are not stored.
  auto type = cast<RankedTensorType>(found.tile.getType());
  ArrayRef<int64_t> shape = bulk.getSource().getType().getShape();
  if (type.getRank() != 2 || shape.size() != 2 || type.getDimSize(1) != shape[1] ||
      type.getDimSize(0) < shape[0] || shape[1] != map.getBox().back())
    return std::nullopt;
  const std::optional<uint64_t> ofWarpgroups = bulk.getWarpgroupAxis();
  bool hasRows = shape[0] == 1;
  for (auto [axis, at] : llvm::enumerate(bulk.getCoordinates())) {
    found.indices.push_back(at);
    const int64_t side = map.getBox()[axis];
    if (axis + 1 == rank) {
      found.axes.push_back(1);
    } else if (side > 1) {
      if (hasRows || (ofWarpgroups == axis ? shape[0] % side != 0 : shape[0] != side))
        return std::nullopt;
      hasRows = true;
      found.axes.push_back(0);
    } else {
      found.axes.push_back(-1);
    }
  }
  if (!hasRows)
    return std::nullopt;
  return found;
}

void tk::joinParts(StoredTile &stored) {
  if (auto part = stored.tile.getDefiningOp<ExtractOp>()) {
    stored.rounding = part, stored.tile = part.getSource();
    llvm::append_range(stored.offsets, part.getOffsets());
  }
}

std::optional<SmallVector<StoredTile>> tk::findTiles(FuncOp function, LaunchOp launch,
                                                     unsigned number) {
  const size_t rank = cast<RankedTensorType>(launch.getResult(number).getType()).getRank();
  Value buffer = function.getBlock()->getArgument(launch.getArgs().size() + number);
  SmallVector<StoredTile> found;
  bool areFound = true;
  function.walk([&](Operation *op) {
    std::optional<StoredTile> tile;
    if (auto store = dyn_cast<StoreOp>(op)) {
      if (store.getBuffer() != buffer)
        return;
      tile = readStore(store);
    } else if (auto bulk = dyn_cast<BulkStoreOp>(op)) {
      auto argument = dyn_cast<BlockArgument>(bulk.getMap());
      auto map = argument && argument.getOwner() == function.getBlock()
                     ? launch.getArgs()[argument.getArgNumber()].getDefiningOp<TensorMapOp>()
                     : TensorMapOp();
      if (map && map.getResultNumber() != std::optional<uint64_t>(number))
        return;
      if (map)
        tile = readBulkStore(bulk, map, rank);
    } else {
      return;
    }
    areFound &= tile.has_value();
    if (!tile)
      return;
    tile->store = op;
    found.push_back(*tile);
  });
  return areFound && !found.empty() ? std::optional(found) : std::nullopt;
}
