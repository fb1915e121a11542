//===- RepairedTile.cpp - elements of a tile, computed again --------------===//
//
// Builds the tkgpu.repair of a tile that is stored to a result, for tk-recompute-elements.
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/RepairedTile.h"

#include "passes/pipeline/ElementScan.h"
#include "passes/pipeline/MaskedProduct.h"

#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

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
  if (!rows || rows.getRank() != 1 || type.getRank() != 2 ||
      rows.getElementType() != type.getElementType() ||
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
    auto least =
        argument.hasOneUse() ? dyn_cast<arith::MaxSIOp>(*argument.user_begin()) : arith::MaxSIOp();
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

/// The place of element's axis `axis` where `op` repairs `stored`, from the places in the tile that
/// its body has. Null if it is not known.
static Value placeAlong(OpBuilder &builder, RepairOp op, const StoredTile &stored, unsigned axis) {
  Location loc = op.getLoc();
  const bool isAlong = stored.axes[axis] >= 0;
  Value place = isAlong ? op.getBody().getArgument(stored.axes[axis]) : Value();
  Value at = elementAt(builder, op, stored.indices[axis], place);
  if (at && isAlong && stored.areBegins)
    at = arith::AddIOp::create(builder, loc, at, place);
  const int64_t offset = isAlong && !stored.offsets.empty() ? stored.offsets[stored.axes[axis]] : 0;
  if (at && offset != 0)
    at = arith::SubIOp::create(builder, loc, at,
                               arith::ConstantIndexOp::create(builder, loc, offset));
  return at;
}

/// Stores `element` where `stored` has it, rounded as the tile is.
static bool putElement(OpBuilder &builder, RepairOp op, const StoredTile &stored, Value element) {
  Location loc = op.getLoc();
  auto store = cast<StoreOp>(stored.store);
  Value offset;
  for (auto [axis, stride] : llvm::enumerate(store.getStrides())) {
    Value at = placeAlong(builder, op, stored, axis);
    if (!at)
      return false;
    Value far = arith::MulIOp::create(builder, loc, at, stride);
    offset = offset ? arith::AddIOp::create(builder, loc, offset, far).getResult() : far;
  }
  if (!offset)
    offset = arith::ConstantIndexOp::create(builder, loc, 0);
  const Type type = store.getBuffer().getType().getElementType();
  if (type != element.getType())
    element = arith::TruncFOp::create(builder, loc, type, element);
  PutElementOp::create(builder, loc, element, store.getBuffer(), offset);
  return true;
}

/// Adds what computes the element in the body of `op`. In place, what an index behind the
/// last one counts as is another thread's, which may have stored it: it is not read. Nor is it
/// stored again. False if such elements are not known.
static bool addBody(OpBuilder &builder, FuncOp function, ElementOp element, RepairOp op,
                    const StoredTile &stored, const IRMapping &mapping) {
  Location loc = op.getLoc();
  Block &body = op.getBody().front();
  Value reference = op.getReference() ? body.getArguments().back() : Value();
  if (!op.getStored() && (!getPlan(function).inPlace || element.getReadsTile())) {
    ElementEndOp::create(builder, loc, addElement(builder, element, mapping, reference), Value());
    return true;
  }
  Value own = isInside(builder, element, mapping);
  if (!own)
    return false;
  const Type type = getElementTypeOrSelf(op.getSource().getType());
  auto zero = [&] {
    return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type)).getResult();
  };
  if (op.getStored()) {
    ElementEndOp::create(builder, loc, zero(), Value());
    builder.setInsertionPoint(body.getTerminator());
    auto branch = scf::IfOp::create(builder, loc, TypeRange(), own, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
    return putElement(builder, op, stored, addElement(builder, element, mapping, reference));
  }
  auto branch = scf::IfOp::create(builder, loc, type, own, /*withElseRegion=*/true);
  ElementEndOp::create(builder, loc, branch.getResult(0), Value());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, zero());
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, addElement(builder, element, mapping, reference));
  return true;
}

/// Where `stored.tile` is known, and no thread has stored anything of its block's tiles. Null if
/// there is no such place.
static Operation *placeBeforeStores(StoredTile &stored) {
  Operation *place = stored.rounding;
  for (Operation *op = place; op; op = op->getPrevNode())
    op->walk([&](Operation *inner) {
      if (isa<StoreOp, BulkStoreOp>(inner))
        place = op;
    });
  const bool isKnown = stored.tile.getParentBlock() == place->getBlock() &&
                       DominanceInfo().properlyDominates(stored.tile, place);
  return isKnown ? place : nullptr;
}

/// May `stored` be repaired behind its store? Threads that store by TMA may not have done so then.
static bool mayFollowStore(const StoredTile &stored) {
  Value tile = stored.tile;
  return isa<StoreOp>(stored.store) && tile.getParentBlock() == stored.store->getBlock() &&
         !doubtBefore(stored.rounding);
}

/// Gives `op` its body. False if the place of its elements is not known.
static bool fill(RepairOp op, FuncOp function, ElementOp element, const StoredTile &stored) {
  Location loc = op.getLoc();
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(stored.tile.getType());
  Block *body = builder.createBlock(&op.getBody());
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    body->addArgument(builder.getIndexType(), loc);
  if (op.getReference())
    body->addArgument(type.getElementType(), loc);
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  for (auto [argument, number] :
       llvm::zip_equal(element.getBody().getArguments(), element.getArguments())) {
    Value at = number >= 0 ? function.getBlock()->getArgument(number)
                           : placeAlong(builder, op, stored, -1 - number);
    if (!at || at.getType() != argument.getType())
      return false;
    mapping.map(argument, at);
  }
  return addBody(builder, function, element, op, stored, mapping);
}

RepairOp tk::addRepair(FuncOp function, ElementOp element, StoredTile &stored, Value references,
                       bool whenStored) {
  Operation *reader = element.getReadsTile() ? placeBeforeStores(stored) : stored.rounding;
  if (!reader)
    return {};
  const bool isBehind = whenStored && !element.getReadsTile() && mayFollowStore(stored);
  OpBuilder builder(reader);
  if (isBehind)
    builder.setInsertionPointAfter(stored.store);
  Value reference = references ? referenceOf(builder, stored, references) : Value();
  // A row's maximum is that of the element, but for the order of the sums of its scores.
  if (references && !reference && getPlan(function).rowMaximum == RowMaximum::Deferred)
    return {};
  auto op = RepairOp::create(builder, stored.tile.getLoc(), stored.tile.getType(), stored.tile,
                             doubtBefore(reader), reference, element.getReadsTile(), isBehind);
  if (fill(op, function, element, stored)) {
    dropUnused(op);
    return op;
  }
  op.erase();
  return isBehind ? addRepair(function, element, stored, references, /*whenStored=*/false)
                  : RepairOp();
}
