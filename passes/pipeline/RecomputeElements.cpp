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
// 5. Sums of softmax numerators that another launch joins are under a reference, which the tile
//    stores to another result: an element is multiplied by exp(own reference - the tile's).
//
// A thread whose row sums have left their range (tk-keep-references) repairs nothing: its sums may
// be infinite, and the block computes them again.
//
// In place, a thread reads of what is replaced only the element that it stores, before it does. The
// pass declines if a result replaces more than the element that it is computed from.
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
#include "passes/pipeline/StoredTiles.h"

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
      const int64_t offset =
          isAlong && !stored.offsets.empty() ? stored.offsets[stored.axes[axis]] : 0;
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
      references =
          function.getBlock()->getArgument(launch.getArgs().size() + *element.getReferenceNumber());
    SmallVector<RepairOp> repairs;
    for (StoredTile &tile : tiles.value_or(SmallVector<StoredTile>())) {
      // With each sum by itself, results of 128 columns spill less.
      if (references)
        joinParts(tile);
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
