//===- UniteLoads.cpp - one load for what is read in bounds and chosen -----===//
//
// Rows that end before their tensor does are reduced up to their end, and computed from as a whole,
// with a constant behind the end: the row would be loaded twice, once all of it.
//   1. A selection between a load, perhaps extended, and a constant is looked for, and a load of
//      the same elements before what reads the selection, masked by what is selected.
//   2. Two masks are the same where both compare the same places, one with the minimum of the
//      other's bound and a second one: that of the whole load's own mask, or one that no place of
//      the tile reaches.
//   3. The selection is then one between the masked load and the constant. Where the whole load's
//      mask is false its elements are of no use: nothing but stores under that mask see them.
//
// Before: %a = load ...                                    %b = load ... masks(%i < min(%n, %C))
//         %y = select (%i < %n), (extf %a), -inf           reduce <max> (select .., (extf %b), ..)
// After:  %y = select (%i < min(%n, %C)), (extf %b), -inf
//
//===----------------------------------------------------------------------===//
#include "passes/tiling/UniteLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tk;

namespace {

/// A mask `place < bound`.
struct Below {
  Value place, bound;
};

} // namespace

static Value withoutBroadcast(Value value) {
  auto broadcast = value.getDefiningOp<gpu::BroadcastOp>();
  return broadcast ? broadcast.getSource() : value;
}

static std::optional<Below> matchBelow(Value mask) {
  auto compare = mask.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt)
    return std::nullopt;
  return Below{compare.getLhs(), withoutBroadcast(compare.getRhs())};
}

/// Is every place of a tile below `bound`?
static bool isBeyond(Value bound, Value place) {
  auto iota = withoutBroadcast(place).getDefiningOp<gpu::IotaOp>();
  IntegerAttr number;
  if (!iota || !matchPattern(bound, m_Constant(&number)))
    return false;
  return number.getValue().sge(cast<RankedTensorType>(iota.getType()).getDimSize(0));
}

/// The only mask of a load, over all axes of its tile, or null.
static Value soleMask(gpu::LoadOp load) {
  return load.getMasks().size() == 1 ? load.getMasks().front() : Value();
}

/// Is `masked` true where `chosen` is and `whole`, the mask of all, if there is one?
static bool isConjunction(Value masked, Value chosen, Value whole) {
  std::optional<Below> both = matchBelow(masked), one = matchBelow(chosen);
  if (!both || !one || both->place != one->place)
    return false;
  auto least = both->bound.getDefiningOp<arith::MinSIOp>();
  if (!least || !llvm::is_contained(least->getOperands(), one->bound))
    return false;
  Value other = least->getOperand(least.getLhs() == one->bound ? 1 : 0);
  if (!whole)
    return isBeyond(other, both->place);
  std::optional<Below> all = matchBelow(whole);
  return all && all->place == both->place && all->bound == other;
}

/// Do stores under `mask` alone see what is computed from `value`?
static bool isStoredUnder(Value value, Value mask) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto store = dyn_cast<gpu::StoreOp>(user))
      return use.getOperandNumber() == 0 && llvm::is_contained(store.getMasks(), mask);
    return user->hasTrait<OpTrait::Elementwise>() && user->getNumResults() == 1 &&
           isStoredUnder(user->getResult(0), mask);
  });
}

/// Does memory stay as it is from one operation of a block to a later one?
static bool isUnwritten(Operation *from, Operation *to) {
  for (Operation *op = from; op != to; op = op->getNextNode())
    if (!op || op->getNumRegions() > 0 || hasEffect<MemoryEffects::Write>(op))
      return false;
  return true;
}

/// Of `whole`, a load that `select` chooses from, the elements that are chosen, loaded elsewhere.
static gpu::LoadOp findMasked(gpu::LoadOp whole, arith::SelectOp select) {
  for (Operation *user : whole.getBuffer().getUsers()) {
    auto other = dyn_cast<gpu::LoadOp>(user);
    if (!other || other == whole || other->getBlock() != whole->getBlock() ||
        other.getType() != whole.getType() || other.getIndices() != whole.getIndices() ||
        other.getStrides() != whole.getStrides() || other.getIndexDims() != whole.getIndexDims() ||
        !soleMask(other) || !isConjunction(soleMask(other), select.getCondition(), soleMask(whole)))
      continue;
    auto dims = cast<DenseI64ArrayAttr>(other.getMaskDims()[0]).asArrayRef();
    auto isBehind = [&](Operation *reader) {
      Operation *here = other->getBlock()->findAncestorOpInBlock(*reader);
      return here && other->isBeforeInBlock(here);
    };
    const bool isFirst = whole->isBeforeInBlock(other);
    if (isUnwritten(isFirst ? whole : other, isFirst ? other : whole) &&
        llvm::equal(dims, llvm::seq<int64_t>(cast<RankedTensorType>(whole.getType()).getRank())) &&
        llvm::all_of(select->getUsers(), isBehind))
      return other;
  }
  return {};
}

/// Replaces a selection by one from a load that is there anyway.
static bool unite(arith::SelectOp select) {
  auto extension = select.getTrueValue().getDefiningOp<arith::ExtFOp>();
  Value chosen = extension ? extension.getIn() : select.getTrueValue();
  auto whole = chosen.getDefiningOp<gpu::LoadOp>();
  if (!whole || whole.getMasks().size() > 1 || !isa<RankedTensorType>(whole.getType()) ||
      !matchPattern(select.getFalseValue(), m_Constant()) ||
      select->getBlock() != whole->getBlock() ||
      (soleMask(whole) && !isStoredUnder(select.getResult(), soleMask(whole))))
    return false;
  gpu::LoadOp masked = findMasked(whole, select);
  if (!masked)
    return false;
  OpBuilder builder(masked->getContext());
  builder.setInsertionPointAfter(masked);
  Value value = masked.getResult();
  if (extension)
    value = arith::ExtFOp::create(builder, extension.getLoc(), extension.getType(), value);
  Value mask = soleMask(masked);
  auto united =
      arith::SelectOp::create(builder, select.getLoc(), mask, value, select.getFalseValue());
  select.getResult().replaceAllUsesWith(united.getResult());
  select.erase();
  for (Operation *op : {extension ? extension.getOperation() : nullptr, whole.getOperation()})
    if (op && op->use_empty())
      op->erase();
  return true;
}

unsigned tk::uniteLoads(gpu::FuncOp function) {
  SmallVector<arith::SelectOp> selects;
  function.walk([&](arith::SelectOp select) { selects.push_back(select); });
  return llvm::count_if(selects, unite);
}
