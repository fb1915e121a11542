//===- RecomputeElements.cpp - results of masked weights, one by one ------===//
//
// A tile multiplies all its rows with the same values. A row whose mask leaves out a value that is
// NaN or infinite gets 0 times it, which is NaN. Where tk-guard-masked-values does not remove such
// results, this pass has a thread compute them again, each by itself and term by term.
//
// 1. A kernel with masks that differ between rows of a tile has a tkgpu.element for each result.
// 2. The pass finds the tiles that are stored to the result, in f32 before they are rounded, and
//    the place of their elements in the tensor.
// 3. It puts a tkgpu.repair in front of the rounding. Tiles whose elements are finite only test
//    that.
// 4. An element first takes weights that are the same for all terms, so that no score is computed.
//    If that is not finite, the row sees such a value, and the result is what it then has. Else the
//    element is computed as the program says.
//
//   tkgpu.element "f" result 0 { ... yield %x }    %p = tkgpu.repair %o { (%row, %column)
//   func f { %b = truncf %o; store %b, %i, %e }  →   %y = element of %i + %row, %e + %column
//                                                    yield %y }
//                                                  %b = truncf %p; store %b, %i, %e
//
// A thread whose row sums have left their range (tk-keep-references) repairs nothing: its sums may
// be infinite, and the block computes them again.
//
// The values are those of the program, but the sums are added in another order than a tile's.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Notes.h"
#include "passes/layout/BulkBox.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/limits/MaskedDots.h"
#include "passes/pipeline/ElementScan.h"
#include "passes/pipeline/GuardPasses.h"
#include "passes/pipeline/MaskedProduct.h"

#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tk {
#define GEN_PASS_DEF_RECOMPUTEELEMENTS
#include "passes/pipeline/GuardPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

/// A tile that is stored to a result, and where its elements are in the result.
struct StoredTile {
  Operation *rounding = nullptr; ///< takes the tile, or stores it
  Value tile;                    ///< of f32
  Value reference;               ///< of f32 like the tile, or null: the numerators are under it
  SmallVector<Value> indices;    ///< by axis of the result: a scalar, or a tile of one axis
  SmallVector<int64_t> axes;     ///< by axis of the result: along which the tile has it; or -1
  bool areBegins = false;        ///< the indices are those of the first element that is stored
  SmallVector<int64_t> offsets;  ///< by axis of the tile: where that begins in it; empty: 0
};

} // namespace

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

/// Goes back from what is stored to the tile in f32.
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
  return type && type.getElementType().isF32() && getLayout(type);
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
  // Parts of a tile that are stored one after the other.
  if (auto part = found.tile.getDefiningOp<ExtractOp>()) {
    found.rounding = part, found.tile = part.getSource();
    llvm::append_range(found.offsets, part.getOffsets());
  }
  return found;
}

/// The element of `tile`, of one axis, at `place`: as scalars, where `builder` stands in `point`.
/// Null if it cannot be had.
static Value elementAt(OpBuilder &builder, Operation *point, Value tile, Value place) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  IRMapping own;
  if (!type)
    return computeAt(&builder, point, tile, own);
  Operation *op = tile.getDefiningOp();
  if (isa_and_nonnull<IotaOp>(op) && type.getElementType().isIndex())
    return place;
  if (auto spread = dyn_cast_or_null<BroadcastOp>(op))
    return isa<RankedTensorType>(spread.getSource().getType())
               ? Value()
               : computeAt(&builder, point, spread.getSource(), own);
  if (auto convert = dyn_cast_or_null<ConvertLayoutOp>(op))
    return elementAt(builder, point, convert.getSource(), place);
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op)) {
    auto numbers = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!numbers || !numbers.isSplat())
      return {};
    return arith::ConstantOp::create(builder, tile.getLoc(),
                                     cast<TypedAttr>(numbers.getSplatValue<Attribute>()));
  }
  if (!op || op->getNumRegions() > 0 || op->getNumResults() != 1 ||
      !op->hasTrait<OpTrait::Elementwise>())
    return {};
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Value one = elementAt(builder, point, operand, place);
    if (!one)
      return {};
    operands.push_back(one);
  }
  return builder
      .create(op->getLoc(), op->getName().getIdentifier(), operands, {type.getElementType()},
              op->getAttrs())
      ->getResult(0);
}

/// Leaves out what the body of `op` does not need: numbers that a loop carries and nothing reads,
/// and the strides of places that are 0.
static void dropUnused(RepairOp op) {
  op.walk([](gpu::LoadOp load) {
    OpBuilder builder(load);
    for (auto [at, stride] : llvm::zip_equal(load.getIndices(), load.getStridesMutable()))
      if (matchPattern(at, m_Zero()))
        stride.set(arith::ConstantIndexOp::create(builder, load.getLoc(), 0));
  });
  RewritePatternSet patterns(op.getContext());
  scf::ForOp::getCanonicalizationPatterns(patterns, op.getContext());
  (void)applyPatternsGreedily(op.getBody(), std::move(patterns));
  IRRewriter rewriter(op.getContext());
  DominanceInfo dominance(op);
  eliminateCommonSubExpressions(rewriter, dominance, op);
}

/// Does a thread doubt its row sums before `op`, so that its block computes the tile again? Null if
/// it never does.
static Value doubtBefore(Operation *op) {
  for (; op; op = op->getPrevNode())
    if (auto doubt = dyn_cast<DoubtOp>(op))
      return doubt.getResult();
  return {};
}

/// The references that rows of `stored` are under, as a tile of its type: what is stored to the
/// result with them in its block. Null if threads do not have those of their elements.
static Value referenceOf(OpBuilder &builder, StoredTile &stored, Value buffer) {
  auto type = cast<RankedTensorType>(stored.tile.getType());
  Value found;
  for (auto store : stored.rounding->getBlock()->getOps<StoreOp>()) {
    if (store.getBuffer() != buffer)
      continue;
    if (found)
      return {};
    found = store.getValue();
  }
  while (auto convert = found ? found.getDefiningOp<ConvertLayoutOp>() : ConvertLayoutOp())
    found = convert.getSource();
  auto rows = found ? dyn_cast<RankedTensorType>(found.getType()) : RankedTensorType();
  if (!rows || rows.getRank() != 1 || type.getRank() != 2 || !rows.getElementType().isF32() ||
      !DominanceInfo().properlyDominates(found, stored.rounding))
    return {};
  std::optional<int64_t> axis;
  for (int64_t a = 0; a < 2; ++a)
    if (rows.getDimSize(0) == type.getDimSize(a) &&
        rows.getEncoding() == sliceLayout(getLayout(type), 1 - a)) {
      if (axis)
        return {};
      axis = a;
    }
  if (!axis)
    return {};
  return BroadcastOp::create(builder, stored.tile.getLoc(), type, found,
                             builder.getDenseI64ArrayAttr({*axis}));
}

/// Creates what `value` of a tkgpu.element follows from, for the arguments that `mapping` holds.
static Value copyScalar(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  for (Value operand : value.getDefiningOp()->getOperands())
    (void)copyScalar(builder, operand, mapping);
  builder.clone(*value.getDefiningOp(), mapping);
  return mapping.lookup(value);
}

/// Is the place that `mapping` has for `element` one of the result? Null if that is not known.
static Value isInside(OpBuilder &builder, ElementOp element, IRMapping mapping) {
  Location loc = element.getLoc();
  Value all;
  for (auto [argument, number] :
       llvm::zip_equal(element.getBody().getArguments(), element.getArguments())) {
    if (number >= 0)
      continue;
    // The body bounds each index: what lies behind the last one counts as the last one.
    auto least = argument.hasOneUse() ? dyn_cast<arith::MaxSIOp>(*argument.user_begin())
                                      : arith::MaxSIOp();
    auto bounded = least && least->hasOneUse() ? dyn_cast<arith::MinSIOp>(*least->user_begin())
                                               : arith::MinSIOp();
    if (!bounded)
      return {};
    Value index = copyScalar(builder, bounded, mapping);
    Value own = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, index,
                                      mapping.lookup(argument));
    all = all ? arith::AndIOp::create(builder, loc, all, own).getResult() : own;
  }
  return all;
}

/// Adds what computes the element in the body of `op`. In place, what an index behind the
/// last one counts as is another thread's, which may have stored it: it is not read. False if such
/// elements are not known.
static bool addBody(OpBuilder &builder, FuncOp function, ElementOp element, RepairOp op,
                    const IRMapping &mapping) {
  Location loc = op.getLoc();
  Value reference = op.getReference() ? op.getBody().getArguments().back() : Value();
  if (!getPlan(function).inPlace) {
    ElementEndOp::create(builder, loc, addElement(builder, element, mapping, reference), Value());
    return true;
  }
  Value own = isInside(builder, element, mapping);
  if (!own)
    return false;
  auto branch = scf::IfOp::create(builder, loc, builder.getF32Type(), own, /*withElseRegion=*/true);
  ElementEndOp::create(builder, loc, branch.getResult(0), Value());
  builder.setInsertionPointToStart(branch.elseBlock());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  scf::YieldOp::create(builder, loc, zero);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, addElement(builder, element, mapping, reference));
  return true;
}

/// Puts a tkgpu.repair in front of what takes the tile. Null if the place of its elements, or the
/// references of its rows, are not known.
static RepairOp repair(FuncOp function, ElementOp element, StoredTile &stored, Value references) {
  Location loc = stored.tile.getLoc();
  OpBuilder builder(stored.rounding);
  auto type = cast<RankedTensorType>(stored.tile.getType());
  Value reference = references ? referenceOf(builder, stored, references) : Value();
  // A row's maximum is that of the element, but for the order of the sums of its scores.
  if (references && !reference && getPlan(function).rowMaximum == RowMaximum::Deferred)
    return {};
  auto op =
      RepairOp::create(builder, loc, type, stored.tile, doubtBefore(stored.rounding), reference);
  Block *body = builder.createBlock(&op.getBody());
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    body->addArgument(builder.getIndexType(), loc);
  if (reference)
    body->addArgument(builder.getF32Type(), loc);
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  for (auto [argument, number] :
       llvm::zip_equal(element.getBody().getArguments(), element.getArguments())) {
    Value at;
    if (number >= 0) {
      at = function.getBlock()->getArgument(number);
    } else {
      const unsigned axis = -1 - number;
      const bool isAlong = stored.axes[axis] >= 0;
      Value place = isAlong ? body->getArgument(stored.axes[axis]) : Value();
      at = elementAt(builder, op, stored.indices[axis], place);
      if (at && isAlong && stored.areBegins)
        at = arith::AddIOp::create(builder, loc, at, place);
      const int64_t offset = isAlong && !stored.offsets.empty() ? stored.offsets[stored.axes[axis]] : 0;
      if (at && offset != 0)
        at = arith::SubIOp::create(builder, loc, at,
                                   arith::ConstantIndexOp::create(builder, loc, offset));
    }
    if (!at || at.getType() != argument.getType()) {
      op.erase();
      return {};
    }
    mapping.map(argument, at);
  }
  if (!addBody(builder, function, element, op, mapping)) {
    op.erase();
    return {};
  }
  dropUnused(op);
  return op;
}

/// The tiles that `function` stores to result `number` of its launch; nothing if some are not
/// found.
static std::optional<SmallVector<StoredTile>> findTiles(FuncOp function, LaunchOp launch,
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
    if (tile)
      found.push_back(*tile);
  });
  return areFound && !found.empty() ? std::optional(found) : std::nullopt;
}

static bool hasWarpgroupProducts(FuncOp function) {
  return function.walk([](WarpgroupDotOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

namespace {

struct RecomputeElements : tk::impl::RecomputeElementsBase<RecomputeElements> {
  void runOnOperation() override {
    for (auto element : getOperation().getOps<ElementOp>())
      if (auto [function, tiles] = find(element); tiles)
        for (const StoredTile &stored : *tiles)
          sums[function] += registersOfTile(stored.tile.getType());
    for (auto element : llvm::make_early_inc_range(getOperation().getOps<ElementOp>())) {
      recompute(element);
      element.erase();
    }
  }

  std::pair<FuncOp, std::optional<SmallVector<StoredTile>>> find(ElementOp element) {
    auto function = SymbolTable::lookupNearestSymbolFrom<FuncOp>(
        getOperation(), StringAttr::get(&getContext(), element.getFunction()));
    auto arguments = function ? LaunchArguments::of(function) : std::nullopt;
    if (!arguments)
      return {};
    return {function, findTiles(function, arguments->getLaunch(), element.getResultNumber())};
  }

  /// Would the code for single elements spill what threads hold beside it? Threads that feed
  /// mma.sync from registers have fewer than those whose operands stay in shared memory.
  bool needsRegisters(FuncOp function) {
    return !hasWarpgroupProducts(function) &&
           sums[function] > limits::masked_dots::kMostSumsOfElements;
  }

  void recompute(ElementOp element) {
    auto [function, tiles] = find(element);
    if (!function)
      return;
    LaunchOp launch = LaunchArguments::of(function)->getLaunch();
    bool areRepaired = tiles.has_value();
    if (needsRegisters(function)) {
      note(launch, "tk-recompute-elements", Verdict::Declined,
           "registers would not suffice beside its sums");
      return;
    }
    Value references;
    if (element.getReferenceNumber())
      references = function.getBlock()->getArgument(launch.getArgs().size() +
                                                    *element.getReferenceNumber());
    SmallVector<RepairOp> repairs;
    for (StoredTile &tile : tiles.value_or(SmallVector<StoredTile>())) {
      // Parts of one tile, or stores of it, share what computes its elements.
      auto known = llvm::find_if(repairs, [&](RepairOp op) {
        return op.getSource() == tile.tile && op->getBlock() == tile.rounding->getBlock() &&
               op->isBeforeInBlock(tile.rounding);
      });
      RepairOp op = known != repairs.end() ? *known : repair(function, element, tile, references);
      areRepaired &= op != nullptr;
      if (!op)
        continue;
      tile.rounding->replaceUsesOfWith(tile.tile, op.getResult());
      if (known != repairs.end())
        continue;
      repairs.push_back(op);
      ++numTiles;
    }
    note(launch, "tk-recompute-elements", areRepaired ? Verdict::Derived : Verdict::Declined,
         areRepaired ? "a result that is not finite is computed again, term by term"
         : tiles     ? "the place of a stored element, or its row's reference, is not known"
                     : "what is stored is no tile of f32 that is rounded");
  }

  llvm::DenseMap<Operation *, int64_t> sums; ///< of a thread, by function
};

} // namespace
