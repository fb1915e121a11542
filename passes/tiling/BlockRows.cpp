//===- BlockRows.cpp - blocks that skip what stays as it is ---------------===//
//
// Of an inout result a statement may change a few rows, and leave the others as they are: new keys
// of a cache, for example. A tile that changes stores nothing where the condition is false, but a
// block for each tile of a large cache takes longer than all that is stored.
//
// Where the condition is one for a whole tile, a block goes through several tiles, evaluates the
// condition of each, and computes and stores those alone that change. The planner gives the
// condition's indices tiles of one element (Planner::planElements).
//
// A condition `p == place` says which value of p changes. The index p then has that value alone.
//
// A condition may say that some element of a tensor names p (tk-scatter-rows). A block then has an
// element, which gives p its value. Several elements may name one p: the first of them, or the
// last, computes it.
//
// Before: a block for each p:         store v[p, :] -> x[p, :] masks(slot[p] >= 0)
// After:  a block for 64 values of p: for p { if (slot[p] >= 0) { store v[p, :] -> x[p, :] } }
//
// Before: a block for each p:  store v[p, :] -> x[p, :] masks((min t: slot[t] == p) < T)
// After:  a block for each t:  p = slot[t]; if ((min u: slot[u] == p) == t) { store .. }
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ChangedElements.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/limits/Elements.h"
#include "passes/plan/MergeIndices.h"
#include "passes/plan/StatementShape.h"
#include "passes/tiling/BlockProgram.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

using namespace limits::block_rows;

Value tk::gridExtent(OpBuilder &builder, Location loc, ArrayRef<BlockProgram::GridAxis> axes) {
  Value total;
  for (const BlockProgram::GridAxis &axis : axes) {
    Value tiles = axis.extent;
    if (axis.tile != 1) {
      Value round = arith::ConstantIndexOp::create(builder, loc, axis.tile - 1);
      Value size = arith::ConstantIndexOp::create(builder, loc, axis.tile);
      tiles = arith::AddIOp::create(builder, loc, tiles, round);
      tiles = FloorDivOp::create(builder, loc, tiles.getType(), tiles, size);
    }
    if (axis.atLeastOne) {
      Value one = arith::ConstantIndexOp::create(builder, loc, 1);
      tiles = arith::MaxSIOp::create(builder, loc, tiles, one);
    }
    if (axis.blocks != 1) {
      Value blocks = arith::ConstantIndexOp::create(builder, loc, axis.blocks);
      tiles = arith::MulIOp::create(builder, loc, tiles, blocks);
    }
    total = total ? arith::MulIOp::create(builder, loc, total, tiles).getResult() : tiles;
  }
  return total ? total : arith::ConstantIndexOp::create(builder, loc, 1).getResult();
}

/// How many tiles a block goes through: as many as leave each multiprocessor several blocks.
static int64_t countTilesOfBlock(KernelOp kernel, ArrayRef<BlockProgram::GridAxis> axes,
                                 int64_t processors) {
  int64_t tiles = 1;
  for (const BlockProgram::GridAxis &axis : axes) {
    const int64_t most = getSizeFact(kernel, axis.extent).upper.value_or(-1);
    if (most < 0)
      return tilesWhereUnknown;
    tiles = std::min(tiles * std::max<int64_t>(llvm::divideCeil(most, axis.tile), 1), mostTiles);
  }
  const int64_t share = tiles / (processors * blocksOfProcessor);
  return share < 2 ? 1
                   : std::min<int64_t>(llvm::bit_floor(static_cast<uint64_t>(share)), mostOfBlock);
}

/// The index that has one value where the result changes. The value is one for a tile.
std::optional<ChangedPlace> BlockProgram::findChangedPlace() {
  std::optional<ChangedPlace> changed = getChangedPlace(kernel, compute);
  return changed && haveOneValue(changed->index, changed->place) ? changed : std::nullopt;
}

/// May index `p` have one value in each tile, which is `place`?
bool BlockProgram::haveOneValue(unsigned p, Value place) {
  if (elementOf || schedule.getLoop() >= 0 ||
      !kernel->getParentOp()->hasAttr(gpu::targetAttrName) ||
      !getMergedIndices(compute.getIndex(p)).empty())
    return false;
  auto isOne = [&](BlockArgument index) {
    return index.getOwner() != compute.getBlock() ||
           (schedule.getTile()[index.getArgNumber()] == 1 && !isMergedIntoOther(index));
  };
  return isOne(compute.getIndex(p)) && llvm::all_of(getIterationIndices(place), isOne);
}

/// The indices that elements give a value where the result changes.
std::optional<VisitedPlaces> BlockProgram::findVisitedPlaces() {
  std::optional<VisitedPlaces> all = getVisitedPlaces(kernel, compute);
  auto haveOne = [&](const NamedIndex &at) { return haveOneValue(at.index, at.value); };
  return all && llvm::all_of(all->places, haveOne) ? all : std::nullopt;
}

/// Gives an index its value.
void BlockProgram::setPlace(const NamedIndex &named) {
  const unsigned id = axisOf.lookup(compute.getIndex(named.index));
  Value place = get(named.value).value, end = kernelValue(axes[id].rangeEnd);
  if (named.part != NamedIndex::Part::Whole) {
    Value divisor = kernelValue(named.divisor);
    Type type = place.getType();
    if (!type.isIndex())
      divisor = arith::IndexCastOp::create(at(0), loc, type, divisor);
    place = named.part == NamedIndex::Part::Quotient
                ? FloorDivOp::create(at(0), loc, type, place, divisor).getResult()
                : FloorModOp::create(at(0), loc, type, place, divisor).getResult();
  }
  Value zero = indexConstant(0);
  // An index may have fewer bits than the value, which is compared as it is.
  if (Type type = place.getType(); !type.isIndex()) {
    zero = constant(builder.getIntegerAttr(type, 0));
    end = arith::IndexCastOp::create(at(0), loc, type, end);
  }
  Value isFrom = arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::sge, place, zero);
  Value isBelow = arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::slt, place, end);
  Value isInside = arith::AndIOp::create(at(0), loc, isFrom, isBelow);
  isPlace = isPlace ? arith::AndIOp::create(at(0), loc, isPlace, isInside).getResult() : isInside;
  if (!place.getType().isIndex())
    place = arith::IndexCastOp::create(at(0), loc, builder.getIndexType(), place);
  axes[id].start = place;
}

/// The axis of the elements that name places: a block has one of them.
unsigned BlockProgram::addElementAxis() {
  ReduceOp reduce = visited->element.reduce;
  elementAxis = newAxis(cast<StringAttr>(reduce.getIndexNames()[0]).getValue(), 1);
  axes[elementAxis].rangeEnd = reduce.getUpper()[0];
  grid.push_back({reduce.getUpper()[0], 1, false});
  return elementAxis;
}

/// Gives indices the values that the block's element names.
void BlockProgram::setVisitedPlaces() {
  ReduceOp reduce = visited->element.reduce;
  axisOf[reduce.getIndex(0)] = elementAxis;
  for (const NamedIndex &place : visited->places)
    setPlace(place);
  // The reduction over all elements has another axis, and other values in its body.
  axisOf.erase(reduce.getIndex(0));
  for (Operation &op : *reduce.getBlock())
    for (Value result : op.getResults())
      scopes[0].memo.erase(result);
}

/// Is the block's element the one of those that name a row which computes it?
TileValue BlockProgram::isOwnPlace() {
  TileValue own = index(elementAxis), chosen = get(visited->element.value());
  if (Type type = chosen.value.getType(); !type.isIndex())
    own.value = arith::IndexCastOp::create(at(own.depth), loc, type, own.value);
  return compare(arith::CmpIPredicate::eq, chosen, own);
}

/// Has blocks go through several tiles where a condition says which of them change.
void BlockProgram::planRows(const Store &store) {
  auto module = kernel->getParentOfType<ModuleOp>();
  auto target = module->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  const bool isOfTile = llvm::any_of(
      store.masks, [](Value mask) { return mask.getType().isInteger(1) && mask.getDefiningOp(); });
  if (!target || !isOfTile || loopAxis || indicesOfChange(kernel, compute).empty())
    return;
  const int64_t count = countTilesOfBlock(kernel, grid, target.getProcessors());
  if (count < 2)
    return;
  tilesOfBlock = count;
  OpBuilder outside(compute);
  numTiles = kernelValue(gridExtent(outside, loc, grid));
}

/// Moves the operations `all` of a tile into a loop over the block's tiles; returns its body.
Block *BlockProgram::loopOverTiles(ArrayRef<Operation *> all) {
  Block *block = func.getBlock();
  gpu::ProgramIdOp id = *block->getOps<gpu::ProgramIdOp>().begin();
  OpBuilder outer = OpBuilder::atBlockEnd(block);
  Value size = arith::ConstantIndexOp::create(outer, loc, tilesOfBlock);
  Value zero = arith::ConstantIndexOp::create(outer, loc, 0);
  Value one = arith::ConstantIndexOp::create(outer, loc, 1);
  Value first = arith::MulIOp::create(outer, loc, id, size);
  Value left = arith::SubIOp::create(outer, loc, numTiles, first);
  Value end = arith::MinSIOp::create(outer, loc, size, left);
  auto loop = scf::ForOp::create(outer, loc, zero, end, one);
  Operation *last = loop.getBody()->getTerminator();
  OpBuilder inner(last);
  Value own = arith::AddIOp::create(inner, loc, first, loop.getInductionVar());
  id.getResult().replaceAllUsesExcept(own, first.getDefiningOp());
  for (Operation *op : all)
    op->moveBefore(last);
  return loop.getBody();
}

/// Moves the masks of `store` that are one for a tile to `ofTile`.
static void leaveOutMasks(gpu::StoreOp store, llvm::SmallSetVector<Value, 4> &ofTile) {
  SmallVector<Value> others;
  SmallVector<Attribute> dims;
  for (auto [mask, over] : llvm::zip_equal(store.getMasks(), store.getMaskDims()))
    if (mask.getType().isInteger(1)) {
      ofTile.insert(mask);
    } else {
      others.push_back(mask);
      dims.push_back(over);
    }
  store.getMasksMutable().assign(others);
  store.setMaskDimsAttr(ArrayAttr::get(store.getContext(), dims));
}

/// Wraps the program of a tile into a loop over the block's tiles, and what follows from the
/// condition into that.
void BlockProgram::skipRows() {
  if (!numTiles && !isPlace)
    return;
  Block *block = func.getBlock();
  SmallVector<Operation *> all;
  for (Operation &op : *block)
    if (!isa<gpu::ProgramIdOp>(op) && !op.hasTrait<OpTrait::ConstantLike>())
      all.push_back(&op);
  Block *body = numTiles ? loopOverTiles(all) : block;
  OpBuilder inner =
      body->mightHaveTerminator() ? OpBuilder(body->getTerminator()) : OpBuilder::atBlockEnd(body);
  // All stores have the masks of the one condition.
  llvm::SmallSetVector<Value, 4> ofTile;
  body->walk([&](gpu::StoreOp store) { leaveOutMasks(store, ofTile); });
  Value condition = ofTile.front();
  for (Value mask : ArrayRef<Value>(ofTile.getArrayRef()).drop_front())
    condition = arith::AndIOp::create(inner, loc, condition, mask);
  llvm::SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false; // of loops over elements
  options.inclusive = true;
  options.filter = [&](Operation *op) { return op->getBlock() == body; };
  (void)getBackwardSlice(condition, &slice, options);
  // Threads exchange what they know of all elements once.
  if (visited)
    for (Value result : ReduceOp(visited->element.reduce).getResults())
      if (const TileValue *known = lookup(result))
        (void)getBackwardSlice(known->value, &slice, options);
  auto changes = scf::IfOp::create(inner, loc, condition);
  for (Operation *op : all)
    if (!slice.contains(op))
      op->moveBefore(changes.thenBlock()->getTerminator());
}
