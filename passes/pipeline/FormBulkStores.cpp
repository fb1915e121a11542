//===- FormBulkStores.cpp - results leave by TMA stores -------------------===//
//
// An accumulator fragment of the matrix unit holds runs of a few bytes of each row. Stored
// directly, it writes parts of memory lines. This pass stores results of kernels with `wgmma`
// through shared memory by TMA.
//
// 1. The pass takes stores of accumulator fragments to a TMA box (BulkBox). It cuts the tile into
//    pieces with rows of 128 bytes, and the operations that lead to the tile likewise (TilePieces).
// 2. Each piece is written to one of two buffers in shared memory, by `stmatrix` for 16-bit
//    elements, and a TMA store reads it from there. A buffer is written again when the store before
//    the last one has read it. If all pieces have a buffer each, they share one barrier.
// 3. If each warpgroup has rows of its own, it writes, synchronises and stores by itself. While one
//    warpgroup stores, another may already multiply.
// 4. Loads that the first piece needs, such as a bias, move before the loop of products. Loads for
//    a later piece move before the piece in front of it is written. Accumulators and loads together
//    must not exceed 640 bytes of registers a thread.
// 5. Two stores that share computed values are cut together, piece by piece.
// 6. Reductions along the rows of tiles beside the stored one take in a piece at a time
//    (PieceReductions).
// 7. Columns that a mask leaves to the next tile have no pieces.
// 8. At the end of the kernel, the block waits until all TMA stores have read their buffers.
//
//   tkgpu.store %v, %c[%i, %j]  →  tkgpu.bulk_store_wait 0; tkgpu.barrier
//                                  for each piece p, with %s the buffer p mod 2:
//                                    from p = 2 on: tkgpu.bulk_store_wait 1; tkgpu.barrier
//                                    tkgpu.local_store (tkgpu.extract %v at [0, 64 p]), %s {matrix}
//                                    tkgpu.async_fence; tkgpu.barrier
//                                    tkgpu.bulk_store %s, %c_map[%i0, %j0 + 64 p]
//
// Other stores stay as they are.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/layout/BulkBox.h"
#include "passes/layout/KeptPlaces.h"
#include "passes/layout/MemoryAccess.h"
#include "passes/layout/PieceReductions.h"
#include "passes/layout/SharedTiles.h"
#include "passes/layout/TilePieces.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Loops.h"
#include "passes/pipeline/WarpSpecialization.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_FORMBULKSTORES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::form_bulk_stores;

namespace {

class BulkStoreForming {
public:
  BulkStoreForming(FuncOp function, LaunchArguments arguments)
      : function(function), arguments(arguments), builder(function.getContext()) {}

  unsigned run();

  /// A store that copies take, and its pieces.
  struct Result {
    StoreOp store;
    BulkBox box;
    int64_t axis = 0, length = 0; ///< along which pieces lie, and their length
    int64_t kept = 0;             ///< places along it that are stored
    SmallVector<int64_t> shape;   ///< of a piece
    LayoutAttr part;
    SharedType piece;
    IntegerAttr warpgroupAxis; ///< null if the warpgroups store together
  };

private:
  FailureOr<Result> analyse(StoreOp store);
  FailureOr<Result> analyseMasked(StoreOp store, std::optional<int64_t> kept);
  bool form(StoreOp store);
  void form(MutableArrayRef<Result> results);
  void loadAhead(ArrayRef<SmallVector<Operation *>> loads, ArrayRef<Operation *> firstSync);
  Value buffersFor(Location loc, SharedType piece);

  FuncOp function;
  LaunchArguments arguments;
  OpBuilder builder;
  AxisInfo info;
  DenseMap<Type, Value> buffers; ///< by the type of a piece
  SmallVector<Operation *> stores, formed;
  bool anyByWarpgroup = false;
};

} // namespace

/// Do four lanes in a row hold neighbours along `axis`, and the others rows below?
static bool isFragment(LayoutAttr layout, int64_t axis) {
  if (layout.getRank() != 2 || layout.getReplicatedLaneMask() || layout.getReplicatedWarpMask())
    return false;
  ArrayRef<LayoutBit> lanes = layout.getLaneBits();
  return lanes[0].axis == axis && lanes[1].axis == axis && lanes[2].axis == 1 - axis;
}

/// One pair of buffers serves all stores of pieces of one type.
Value BulkStoreForming::buffersFor(Location loc, SharedType piece) {
  Value &known = buffers[piece];
  if (!known) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(function.getBlock());
    known = AllocSharedOp::create(builder, loc, piece.withStages(kBuffers), nullptr);
  }
  return known;
}

static int64_t bytesOfThread(Value tile) {
  return getLayout(tile.getType()).getNumRegisters() * bytesOfElement(getElementTypeOrSelf(tile));
}

/// Moves `loads`, and what leads to them, to before `place`, which they follow in its block; not if
/// something with effects leads to them.
static void moveLoads(ArrayRef<Operation *> loads, Operation *place) {
  llvm::SetVector<Operation *> moved;
  auto collect = [&](auto &self, Operation *op) -> bool {
    if (!op || op->getBlock() != place->getBlock() || op->isBeforeInBlock(place) ||
        moved.contains(op))
      return true;
    if (!isa<gpu::LoadOp>(op) && !isMemoryEffectFree(op))
      return false;
    for (Value operand : op->getOperands())
      if (!self(self, operand.getDefiningOp()))
        return false;
    moved.insert(op);
    return true;
  };
  if (llvm::all_of(loads, [&](Operation *load) { return collect(collect, load); }))
    for (Operation *op : moved)
      op->moveBefore(place);
}

/// `loads` are those of each step, `firstSync` is where a step begins to wait and write.
void BulkStoreForming::loadAhead(ArrayRef<SmallVector<Operation *>> loads,
                                 ArrayRef<Operation *> firstSync) {
  scf::ForOp products;
  for (Operation *op = firstSync.front(); op && !products; op = op->getPrevNode())
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && !loop.getOps<WarpgroupDotOp>().empty())
      products = loop;
  if (!products)
    return;
  int64_t accumulators = 0;
  for (WarpgroupDotOp dot : products.getOps<WarpgroupDotOp>())
    accumulators += bytesOfThread(dot.getResult());
  for (auto [step, ofStep] : llvm::enumerate(loads)) {
    int64_t bytes = accumulators;
    for (Operation *load : ofStep)
      bytes += isa<RankedTensorType>(load->getResult(0).getType())
                   ? bytesOfThread(load->getResult(0))
                   : bytesOfElement(load->getResult(0).getType());
    if (bytes <= kRegisterBytes)
      moveLoads(ofStep, step == 0 ? products : firstSync[step - 1]);
  }
}

/// A mask that keeps the first columns alone is none of the box: others have no pieces.
FailureOr<BulkStoreForming::Result> BulkStoreForming::analyse(StoreOp store) {
  const std::optional<KeptPlaces> kept = findKeptPlaces(store, 1);
  if (!kept)
    return analyseMasked(store, std::nullopt);
  const SmallVector<Value> masks(store.getMasks());
  const ArrayAttr maskDims = store.getMaskDims();
  dropMask(store, kept->mask);
  FailureOr<Result> result = analyseMasked(store, kept->count);
  store.getMasksMutable().assign(masks);
  store.setMaskDimsAttr(maskDims);
  return result;
}

/// The same for a store of which the first `kept` columns are stored.
FailureOr<BulkStoreForming::Result> BulkStoreForming::analyseMasked(StoreOp store,
                                                                    std::optional<int64_t> kept) {
  auto tile = dyn_cast<RankedTensorType>(store.getValue().getType());
  std::string why;
  FailureOr<BulkBox> box = analyseBulkBox(store, info, why);
  auto declined = [&](const Twine &reason) {
    decline(store, "tk-form-bulk-stores", reason);
    return failure();
  };
  if (!tile || failed(box))
    return declined(why.empty() ? "one element is stored" : why);
  if (!arguments.isKnown(*box))
    return declined("the host does not know the box of the result");
  Result result;
  result.store = store;
  result.axis = box->shared.getAxisOrder().front();
  if (kept && *kept % box->shared.getRowLength() != 0)
    box->cutRows(swizzleBytes / 2);
  result.length = box->shared.getRowLength();
  if (kept && (result.axis != 1 || *kept % result.length != 0))
    return declined("pieces of its rows do not divide the columns that are stored");
  result.kept = kept.value_or(tile.getDimSize(result.axis));
  LayoutAttr layout = getLayout(tile);
  result.shape.assign(tile.getShape().begin(), tile.getShape().end());
  result.shape[result.axis] = result.length;
  result.part = isFragment(layout, result.axis) ? partLayout(layout, result.shape) : LayoutAttr();
  if (!result.part)
    return declined("four lanes do not hold neighbours along the result's rows");
  std::optional<unsigned> rowsAxis = box->rowsAxis();
  // Whole groups of eight rows, which the matrices that are written have.
  const int64_t across = 1 - result.axis, rows = result.shape[across];
  const int64_t groups = function.getNumWarps() / warpsOfWarpgroup;
  if (rowsAxis && areRowsByWarpgroup(result.part, across, rows) && rows % (8 * groups) == 0) {
    result.warpgroupAxis = builder.getI64IntegerAttr(*rowsAxis);
    box->box[*rowsAxis] /= groups;
  }
  // What is stored at once is before the tensor as a whole, or not at all.
  if (box->beforeAxis && (box->beforeAxis == box->box.size() - 1 ||
                          llvm::any_of(box->coordinates[*box->beforeAxis], [&](Value summand) {
                            return info.divisibilityOf(summand) % box->box[*box->beforeAxis] != 0;
                          })))
    return declined("a box may begin before the tensor, and end inside it");
  SmallVector<int64_t> stored(result.shape);
  if (result.warpgroupAxis)
    stored[across] = function.getRowsThatRun(rows);
  result.piece = SharedType::get(builder.getContext(), stored, tile.getElementType(),
                                 box->shared.getOrder(), /*padding=*/0, box->shared.getChunk(),
                                 box->shared.getPerPhase(), box->shared.getPhases());
  result.box = std::move(*box);
  return result;
}

/// Do pieces of both results share buffers and steps?
static bool areAlike(BulkStoreForming::Result &a, BulkStoreForming::Result &b) {
  return a.store.getValue().getType() == b.store.getValue().getType() && a.piece == b.piece &&
         a.warpgroupAxis == b.warpgroupAxis && a.axis == b.axis && a.kept == b.kept;
}

/// Is anything that one thread computes element by element needed for both results, besides what
/// is loaded and what the products gave?
static bool shareComputation(StoreOp first, StoreOp second) {
  auto collect = [](StoreOp store) {
    llvm::SetVector<Operation *> computed;
    SmallVector<Value> values = {store.getValue()};
    while (!values.empty()) {
      Operation *op = values.pop_back_val().getDefiningOp();
      if (op && op->getBlock() == store->getBlock() && op->hasTrait<OpTrait::Elementwise>() &&
          !op->hasTrait<OpTrait::ConstantLike>() && computed.insert(op))
        llvm::append_range(values, op->getOperands());
    }
    return computed;
  };
  llvm::SetVector<Operation *> ofFirst = collect(first);
  return llvm::any_of(collect(second), [&](Operation *op) {
    return ofFirst.contains(op) && !isa<arith::ExtFOp>(op);
  });
}

/// The store behind `store` in its block whose pieces may be stored with its own: nothing between
/// them but what is computed and loaded.
static StoreOp storeBehind(StoreOp store) {
  for (Operation *op = store->getNextNode(); op; op = op->getNextNode()) {
    if (auto next = dyn_cast<StoreOp>(op))
      return next;
    if (!isa<gpu::LoadOp>(op) && !isMemoryEffectFree(op))
      break;
  }
  return nullptr;
}

bool BulkStoreForming::form(StoreOp store) {
  FailureOr<Result> analysed = analyse(store);
  if (failed(analysed))
    return false;
  SmallVector<Result, 1> results;
  results.push_back(std::move(*analysed));
  if (StoreOp next = storeBehind(store); next && shareComputation(store, next))
    if (FailureOr<Result> other = analyse(next); succeeded(other) && areAlike(results[0], *other)) {
      store->moveBefore(next);
      results.push_back(std::move(*other));
    }
  form(results);
  return true;
}

void BulkStoreForming::form(MutableArrayRef<Result> results) {
  const Result &alike = results.front();
  StoreOp last = results.back().store;
  Location loc = last.getLoc();
  const int64_t axis = alike.axis, length = alike.length;
  const SmallVector<int64_t> &shape = alike.shape;
  const bool byWarpgroup = bool(alike.warpgroupAxis);
  anyByWarpgroup |= byWarpgroup;
  Value pair = buffersFor(loc, alike.piece);
  SmallVector<Value> maps, tiles;
  for (Result &result : results)
    maps.push_back(arguments.addTensorMap(result.box));
  builder.setInsertionPoint(last);
  SmallVector<SmallVector<Value>> first;
  for (Result &result : results)
    first.push_back(buildCoordinates(builder, loc, result.box));
  PieceReductions reductions(last, axis);
  tiles = reductions.tiles();
  for (Result &result : results)
    tiles.push_back(result.store.getValue());
  SmallVector<Operation *> users(stores);
  llvm::append_range(users, reductions.get());
  TilePieces pieces(tiles, users);
  auto tile = cast<RankedTensorType>(last.getValue().getType());
  const bool matrix = bytesOfElement(tile.getElementType()) == 2;
  const int64_t numResults = results.size();
  const int64_t numPieces = alike.kept / length * numResults;
  // Where each piece has a buffer of its own, all of them are written under one fence, as are
  // those of several results.
  const int64_t together = numPieces <= kBuffers ? numPieces : numResults;
  SmallVector<SmallVector<Operation *>> loads;
  SmallVector<Operation *> firstSync;
  for (int64_t from = 0; from < numPieces; from += together) {
    SmallVector<Value> values, stages, steps;
    Operation *before = last->getPrevNode();
    for (int64_t p = from; p < from + together; ++p) {
      SmallVector<int64_t> offsets(2, 0);
      offsets[axis] = p / numResults * length;
      Value slot = arith::ConstantIndexOp::create(builder, loc, p % kBuffers);
      stages.push_back(StageOp::create(builder, loc, alike.piece, pair, slot));
      steps.push_back(arith::ConstantIndexOp::create(builder, loc, offsets[axis]));
      if (p % numResults == 0)
        pieces.clear();
      Value value = results[p % numResults].store.getValue();
      values.push_back(pieces.build(builder, value, offsets, shape));
      if (p % numResults == numResults - 1)
        reductions.add(builder, pieces, offsets, shape);
    }
    Operation *computed = last->getPrevNode();
    // The first piece may get the buffer that an earlier store's last one had; then all are free.
    if (from == 0 || from >= kBuffers) {
      BulkStoreWaitOp::create(builder, loc, from == 0 ? 0 : kBuffers - together, byWarpgroup);
      BarrierOp::create(builder, loc, /*cluster=*/false, byWarpgroup);
    }
    for (auto [value, stage] : llvm::zip_equal(values, stages))
      LocalStoreOp::create(builder, loc, value, stage, matrix, /*transposed=*/false,
                           matrix ? 1 : sharedVector(alike.piece, alike.part));
    firstSync.push_back(computed->getNextNode());
    SmallVector<Operation *> &ofStep = loads.emplace_back();
    for (Operation *op = before->getNextNode(); op != firstSync.back(); op = op->getNextNode())
      if (isa<gpu::LoadOp>(op))
        ofStep.push_back(op);
    AsyncFenceOp::create(builder, loc);
    BarrierOp::create(builder, loc, /*cluster=*/false, byWarpgroup);
    for (auto [i, stage] : llvm::enumerate(stages)) {
      SmallVector<Value> coordinates(first[i % numResults]);
      coordinates.back() = builder.createOrFold<arith::AddIOp>(loc, coordinates.back(), steps[i]);
      const std::optional<unsigned> before = results[i % numResults].box.beforeAxis;
      BulkStoreOp::create(builder, loc, stage, maps[i % numResults], coordinates,
                          alike.warpgroupAxis,
                          before ? builder.getI64IntegerAttr(*before) : IntegerAttr());
    }
  }
  loadAhead(loads, firstSync);
  for (StoreOp replaced : reductions.replacedStores())
    llvm::erase(stores, replaced);
  reductions.finish();
  for (Result &result : results)
    formed.push_back(result.store);
}

unsigned BulkStoreForming::run() {
  function.walk([&](StoreOp store) { stores.push_back(store); });
  // A store that pieces of its value replace is no longer among them.
  for (size_t i = 0; i < stores.size(); ++i)
    if (!llvm::is_contained(formed, stores[i]))
      form(cast<StoreOp>(stores[i]));
  if (!formed.empty()) {
    builder.setInsertionPoint(function.getBlock()->getTerminator());
    BulkStoreWaitOp::create(builder, function.getLoc(), 0, anyByWarpgroup);
  }
  for (Operation *store : formed)
    store->erase();
  return formed.size();
}

namespace {

struct FormBulkStores : tk::impl::FormBulkStoresBase<FormBulkStores> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      WalkResult products = function.walk([](WarpgroupDotOp) { return WalkResult::interrupt(); });
      std::optional<LaunchArguments> arguments = LaunchArguments::of(function);
      if (products.wasInterrupted() && arguments)
        numFormed += BulkStoreForming(function, *arguments).run();
    }
  }
};

} // namespace
