//===- ListBlocks.cpp - lists of the key blocks that each query block sees ===//
//
// A table that says which blocks of keys each block of queries sees, `seen[i / 64, j / 64] != 0`,
// has no ranges: the blocks may lie anywhere. This part of tk-bound-masks lists them:
//
// 1. It matches masks that read a tensor at a key and at a quotient of the row that is equal within
//    a group of 128 or 64 rows. Bounds of the keys that depend on the row become part of the mask.
// 2. Compute ops find, for each group and each block of 64 keys, whether the mask is true for some
//    pairs or for all pairs. They count both kinds up to each block and list the block numbers.
//    Blocks that the mask cuts come first.
// 3. The fused attention loop visits the listed blocks. The key index becomes the number of the
//    block and the position in it. The row index becomes the group and the position in it, so that
//    the rows of a tile have one list (DivideIndices.h).
// 4. The remaining mask ends with the list and covers the cut blocks, which come first
//    (MaskRanges.h). If the mask is equal within each group and block, only the end of the list
//    remains. The range stays that of all keys, from which tiles are planned.
//
// The lists have one number for each group and block: at most 1/4096 of the number of scores.
//
//   %o = tk.compute ["i", "e"] {
//     tk.reduce ["j"] from (0) to (%T) {.. select(%seen[i / 64, j / 64] != 0, %s(j), -inf) ..}}
//     =>
//   %o = tk.compute ["i.group", "i", "e"] {
//     tk.reduce ["n"] from (0) to (%T) {
//       j = %listed[i.group, n / 64] * 64 + n mod 64
//       .. select(n < %count[i.group] * 64, %s(j), -inf) ..}}
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/ranges/ChainMasks.h"
#include "passes/tensor/ranges/DivideIndices.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/MaskRanges.h"
#include "passes/analysis/Notes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

using namespace limits::list_blocks;

namespace {

class BlockLists {
public:
  BlockLists(ChainMask &mask, int64_t rows) : mask(mask), truth(mask, rows), rows(rows) {}

  bool canList();
  void apply();

private:
  bool readsTable();
  void addBounds();
  Value createState();
  void createCounts(Value state);
  Value createList();
  void goThroughBlocks();
  FurtherIndex over(StringRef name) { return {name, numBlocks}; }
  Value number(OpBuilder &builder, int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value integer(OpBuilder &builder, int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  }
  Value holds(OpBuilder &builder, arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }

  ChainMask &mask;
  GroupTruth truth;
  int64_t rows;
  Location loc = mask.holds.getLoc();
  Value condition;         ///< the mask and the bounds of terms
  bool cutsBlocks = false; ///< may it differ between terms of a block?
  Value numBlocks, cut, whole, listed;
};

} // namespace

/// Does the mask read a tensor at terms and at rows by their groups?
bool BlockLists::readsTable() {
  Dependence onTerm(ValueRange{mask.getTerm()}), onRow(ValueRange{mask.getRow()});
  bool reads = false;
  for (Operation *op : getSlice(mask.holds, mask.reduce.getBlock()))
    if (auto load = dyn_cast<LoadOp>(op); load && onTerm.on(load) && onRow.on(load)) {
      if (truth.varies(load))
        return false;
      reads = true;
    }
  return reads;
}

bool BlockLists::canList() {
  return mask.row && readsTable() && truth.isKnown(mask.holds) &&
         !replacesParameter(mask.kernel, mask.compute) &&
         isMultipleOf(mask.kernel, mask.compute.getExtents()[*mask.row], rows) &&
         isMultipleOf(mask.kernel, mask.extent, termsOfBlock) &&
         canMove(mask, {mask.holds, mask.reduce.getLower()[0], mask.reduce.getUpper()[0]});
}

/// Makes the bounds of the terms part of the mask.
void BlockLists::addBounds() {
  condition = mask.holds;
  OpBuilder builder(mask.holds.getContext());
  builder.setInsertionPointAfterValue(mask.holds);
  auto add = [&](arith::CmpIPredicate predicate, Value bound) {
    Value within = holds(builder, predicate, mask.getTerm(), bound);
    condition = arith::AndIOp::create(builder, loc, condition, within);
  };
  if (Value lower = mask.reduce.getLower()[0]; !getConstantIntValue(lower))
    add(arith::CmpIPredicate::sge, lower);
  if (Value upper = mask.reduce.getUpper()[0]; upper != mask.extent)
    add(arith::CmpIPredicate::slt, upper);
}

/// What the mask is for each group and block: 0 false, 1 true for some, 2 for all of their pairs.
Value BlockLists::createState() {
  auto term = cast<StringAttr>(mask.reduce.getIndexNames()[0]).getValue();
  auto createValues = [&](OpBuilder &body, ValueRange places) -> SmallVector<Value> {
    Value size = number(body, termsOfBlock);
    Value first = arith::MulIOp::create(body, loc, places.back(), size);
    truth.begin(body, loc, places.drop_back());
    Value some, every;
    if (!cutsBlocks) {
      Truth known = truth.at(body, first, condition);
      some = known.some;
      every = known.every;
    } else {
      Value behind = arith::AddIOp::create(body, loc, first, size);
      auto ofBlock = [&](ReduceKind kind) -> Value {
        return ReduceOp::create(body, loc, kind, ArrayRef<StringRef>{term}, first, behind,
                                body.getI1Type(),
                                [&](OpBuilder &inner, Location, ValueRange indices) {
                                  Truth known = truth.at(inner, indices[0], condition);
                                  return kind == ReduceKind::Any ? known.some : known.every;
                                })
            .getResult(0);
      };
      some = ofBlock(ReduceKind::Any);
      every = ofBlock(ReduceKind::All);
    }
    Value isSome = arith::SelectOp::create(body, loc, some, integer(body, 1), integer(body, 0));
    return {arith::SelectOp::create(body, loc, every, integer(body, 2), isSome)};
  };
  return createOverGroups(mask, rows, over("block"), {"state"}, createValues).getResult(0);
}

/// How many blocks up to each one, itself included, are cut by the mask, and how many are not.
void BlockLists::createCounts(Value state) {
  auto createValues = [&](OpBuilder &body, ValueRange places) {
    SmallVector<Value> counts;
    for (int64_t kind : {1, 2}) {
      auto createTerm = [&](OpBuilder &inner, Location, ValueRange at) -> Value {
        SmallVector<Value> indices(places.drop_back());
        indices.push_back(at[0]);
        Value own = LoadOp::create(inner, loc, state, indices, Value());
        Value is = holds(inner, arith::CmpIPredicate::eq, own, integer(inner, kind));
        return arith::SelectOp::create(inner, loc, is, integer(inner, 1), integer(inner, 0));
      };
      counts.push_back(ScanOp::create(body, loc, ReduceKind::Sum, "block", number(body, 0),
                                      numBlocks, places.back(), body.getI32Type(), createTerm));
    }
    return counts;
  };
  ComputeOp counts = createOverGroups(mask, rows, over("block"), {"cut", "whole"}, createValues);
  cut = counts.getResult(0);
  whole = counts.getResult(1);
}

/// How many blocks of a kind a group has: none if there are no blocks.
static Value loadTotal(OpBuilder &builder, Location loc, Value counts, ValueRange group,
                       Value numBlocks) {
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> indices(group);
  indices.push_back(arith::SubIOp::create(builder, loc, numBlocks, one));
  Value none = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  return LoadOp::create(builder, loc, counts, indices, none);
}

/// The numbers of the blocks that are cut, and behind them of those that are not: before the n-th
/// one of a kind are those up to which no more than n are counted, which bisection finds. Entries
/// behind all blocks are 0.
Value BlockLists::createList() {
  const int64_t most = getUpperBound(mask.extent);
  const unsigned steps = llvm::Log2_64_Ceil((most < 0 ? mostTerms : most) / termsOfBlock + 1);
  auto createValues = [&](OpBuilder &body, ValueRange places) -> SmallVector<Value> {
    ValueRange group = places.drop_back();
    Type index = body.getIndexType();
    Value place = arith::IndexCastOp::create(body, loc, body.getI32Type(), places.back());
    Value numCut = loadTotal(body, loc, cut, group, numBlocks);
    Value numWhole = loadTotal(body, loc, whole, group, numBlocks);
    Value isCut = holds(body, arith::CmpIPredicate::slt, place, numCut);
    Value number = arith::SelectOp::create(
        body, loc, isCut, place, arith::SubIOp::create(body, loc, place, numCut).getResult());
    Value before = integer(body, 0), behindAll = integer(body, mostTerms);
    for (unsigned step = steps; step-- > 0;) {
      Value last = arith::AddIOp::create(body, loc, before, integer(body, (1ll << step) - 1));
      SmallVector<Value> at(group);
      at.push_back(arith::IndexCastOp::create(body, loc, index, last));
      Value count = arith::SelectOp::create(
          body, loc, isCut, LoadOp::create(body, loc, cut, at, behindAll).getResult(),
          LoadOp::create(body, loc, whole, at, behindAll).getResult());
      Value isBefore = holds(body, arith::CmpIPredicate::sle, count, number);
      Value further = arith::AddIOp::create(body, loc, last, integer(body, 1));
      before = arith::SelectOp::create(body, loc, isBefore, further, before);
    }
    Value listedCount = arith::AddIOp::create(body, loc, numCut, numWhole);
    Value isListed = holds(body, arith::CmpIPredicate::slt, place, listedCount);
    return {arith::SelectOp::create(body, loc, isListed, before, integer(body, 0))};
  };
  return createOverGroups(mask, rows, over("place"), {"listed"}, createValues).getResult(0);
}

/// Has the chain go through the listed blocks.
void BlockLists::goThroughBlocks() {
  ReduceOp reduce = mask.reduce;
  OpBuilder builder(reduce);
  Value size = number(builder, termsOfBlock);
  SmallVector<Value> group = createGroupIndices(builder, mask, rows);
  auto countTerms = [&](Value blocks) -> Value {
    Value count = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), blocks);
    return arith::MulIOp::create(builder, loc, count, size);
  };
  Value numCut = loadTotal(builder, loc, cut, group, numBlocks);
  Value numWhole = loadTotal(builder, loc, whole, group, numBlocks);
  Value cutTerms = countTerms(numCut);
  Value terms = countTerms(arith::AddIOp::create(builder, loc, numCut, numWhole));
  Value zero = number(builder, 0);

  OpBuilder body = OpBuilder::atBlockBegin(reduce.getBlock());
  Value term = mask.getTerm();
  Value block = FloorDivOp::create(body, loc, term.getType(), term, size);
  Value place = FloorModOp::create(body, loc, term.getType(), term, size);
  SmallVector<Value> at(group);
  at.push_back(block);
  Value entry = LoadOp::create(body, loc, listed, at, Value());
  entry = arith::IndexCastOp::create(body, loc, body.getIndexType(), entry);
  Value start = arith::MulIOp::create(body, loc, entry, size);
  Value moved = arith::AddIOp::create(body, loc, start, place);
  llvm::SmallPtrSet<Operation *, 2> own = {block.getDefiningOp(), place.getDefiningOp()};
  term.replaceAllUsesExcept(moved, own);

  OpBuilder after(condition.getContext());
  after.setInsertionPointAfterValue(condition);
  // Lists are as long as there are blocks of that kind, but loops are planned for all terms.
  const bool isWhole = !truth.varies(condition) && !cutsBlocks;
  Value cuts = isWhole ? arith::ConstantOp::create(after, loc, after.getBoolAttr(true)).getResult()
                       : condition;
  Value known = createMask(after, loc, {term, cuts, zero, terms, cutTerms, terms});
  for (Operation *user : llvm::make_early_inc_range(mask.holds.getUsers()))
    if (auto masked = dyn_cast<arith::SelectOp>(user))
      masked.getConditionMutable().assign(known);
  reduce.getLowerMutable()[0].set(zero);
  reduce.getUpperMutable()[0].set(mask.extent);
}

void BlockLists::apply() {
  addBounds();
  OpBuilder builder(mask.compute);
  numBlocks = FloorDivOp::create(builder, loc, builder.getIndexType(), mask.extent,
                                 number(builder, termsOfBlock));
  cutsBlocks = variesWithin(condition, mask.getTerm(), termsOfBlock, mask.compute);
  Value state = createState();
  createCounts(state);
  listed = createList();
  goThroughBlocks();
  note(mask.reduce, boundMasksName, Verdict::Derived,
       "statements of their own list the blocks of " + Twine(termsOfBlock) + " elements of the " +
           describe(mask.reduce) + " that each " + Twine(rows) +
           " rows need; its loop runs over the list");
  eraseDead(mask.compute);
  Value extent = mask.compute.getExtents()[*mask.row];
  divideIndex(mask.compute, *mask.row, {extent, createGroupCount(builder, mask, rows), rows});
}

bool tk::listBlocks(ChainMask &mask) {
  for (int64_t rows : {128, 64}) {
    BlockLists lists(mask, rows);
    if (lists.canList()) {
      lists.apply();
      return true;
    }
  }
  return false;
}
