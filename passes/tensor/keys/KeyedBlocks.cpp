//===- KeyedBlocks.cpp - reductions of blocks of elements -----------------===//
#include "passes/tensor/keys/TermSorting.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

//===----------------------------------------------------------------------===//
// Elements of sorted rows
//===----------------------------------------------------------------------===//

/// Copies `element` for the row `row`, or of a place without a row, in `block`. `columns` and
/// `rest` are the other indices. Without `isPresent` the element is that of another key.
Value TermSorting::copyElement(OpBuilder &at, const KeyedReduction &keyed, Value element,
                               Value block, Value row, ValueRange columns, ValueRange rest,
                               bool isPresent) {
  rows.push_back(row);
  IRMapping mapping;
  SmallVector<Value> indices = splitRow(at, loc, row, keyed.key.extents);
  mapping.map(ValueRange(keyed.key.indices), ValueRange(indices));
  for (auto [p, column] : llvm::zip_equal(keyed.columns, columns))
    mapping.map(compute.getIndex(p), column);
  for (auto [n, index] : llvm::zip_equal(keyed.rest, rest))
    mapping.map(ReduceOp(keyed.reduce).getIndex(n), index);
  if (keyed.readsGroup) {
    // All rows of the block have this key. The last group of a batch has none.
    Value group = writer.loadIndex(at, order.blockGroup, {block});
    rows.push_back(group);
    if (keyed.key.numBatches > 0) {
      Value groups = arith::AddIOp::create(at, loc, keyed.key.numKeys, writer.constant(at, 1));
      group = FloorModOp::create(at, loc, group.getType(), group, groups);
    }
    mapping.map(compute.getIndex(keyed.group), group);
  }
  Value holds;
  if (isPresent)
    holds = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sge, row, writer.constant(at, 0));
  else
    holds = arith::ConstantOp::create(at, loc, at.getBoolAttr(false));
  for (Value test : keyed.tests)
    mapping.map(test, holds);
  return cloneFrom(at, element, compute, mapping);
}

/// Has loads that depend on a row that is none read 0.
void TermSorting::padRows(Operation *in) {
  Dependence onRow(rows);
  in->walk([&](LoadOp load) {
    if (load.getPad() ||
        llvm::none_of(load.getIndices(), [&](Value index) { return onRow.on(index); }))
      return;
    OpBuilder at(load);
    load.getPadMutable().assign(createIdentity(at, loc, ReduceKind::Sum, load.getType()));
  });
  rows.clear();
}

/// The first block of the group of the compute op's indices, or of the next group.
Value TermSorting::firstBlock(OpBuilder &at, const KeyedReduction &keyed, bool isNext) {
  Value group = compute.getIndex(keyed.group);
  if (keyed.key.numBatches > 0) {
    Value batch = joinRow(at, loc, ValueRange(keyed.key.indices).take_front(keyed.key.numBatches),
                          ValueRange(keyed.key.extents).take_front(keyed.key.numBatches));
    Value groups = arith::AddIOp::create(at, loc, keyed.key.numKeys, writer.constant(at, 1));
    batch = arith::MulIOp::create(at, loc, batch, groups);
    group = arith::AddIOp::create(at, loc, batch, group);
  }
  if (isNext)
    group = arith::AddIOp::create(at, loc, group, writer.constant(at, 1));
  return writer.loadIndex(at, order.first, {group});
}

Value TermSorting::isNan(OpBuilder &at, Value value) {
  return arith::CmpFOp::create(at, loc, arith::CmpFPredicate::UNO, value, value);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Stores the reduction of each block's elements. Without `isPresent` it is the number of elements
/// that would be NaN under another key.
Value TermSorting::storeBlocks(const KeyedReduction &keyed, StringRef suffix, Type type,
                               ReduceKind kind, bool isPresent) {
  ReduceOp reduce = keyed.reduce;
  SmallVector<StringRef> names = {"block"}, over = {"place"};
  SmallVector<Value> extents = {order.numBlocks},
                     upper = {writer.constant(builder, order.rowsOfBlock)};
  for (unsigned p : keyed.columns) {
    names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
    extents.push_back(compute.getExtents()[p]);
  }
  for (unsigned n : keyed.rest) {
    over.push_back(cast<StringAttr>(reduce.getIndexNames()[n]).getValue());
    upper.push_back(reduce.getUpper()[n]);
  }
  Value blocks =
      writer.define(suffix, names, extents, type, [&](OpBuilder &at, ValueRange indices) {
        SmallVector<Value> lower(upper.size(), writer.constant(at, 0));
        return ReduceOp::create(at, loc, kind, over, lower, upper, type,
                                [&](OpBuilder &in, Location, ValueRange place) -> Value {
                                  Value row =
                                      writer.loadIndex(in, order.blockRow, {indices[0], place[0]});
                                  Value element = copyElement(
                                      in, keyed, reduce.getYield().getValues()[0], indices[0], row,
                                      indices.drop_front(), place.drop_front(), isPresent);
                                  if (isPresent)
                                    return element;
                                  return arith::ExtUIOp::create(in, loc, type, isNan(in, element));
                                })
            .getResult(0);
      });
  padRows(blocks.getDefiningOp());
  return blocks;
}

/// Reduces the blocks of the compute op's index.
Value TermSorting::reduceBlocks(const KeyedReduction &keyed, Value blocks, ReduceKind kind) {
  OpBuilder at(keyed.reduce);
  Type type = cast<RankedTensorType>(blocks.getType()).getElementType();
  Value from = firstBlock(at, keyed, false), to = firstBlock(at, keyed, true);
  return ReduceOp::create(at, loc, kind, ArrayRef<StringRef>{"block"}, ValueRange{from},
                          ValueRange{to}, type,
                          [&](OpBuilder &in, Location, ValueRange block) -> Value {
                            SmallVector<Value> indices = {block[0]};
                            for (unsigned p : keyed.columns)
                              indices.push_back(compute.getIndex(p));
                            // Blocks of a group are blocks of the tensor, which the bounds do not
                            // show.
                            Value none = createIdentity(in, loc, kind, type);
                            return LoadOp::create(in, loc, blocks, indices, none);
                          })
      .getResult(0);
}

/// `total`, or NaN if an element of another key is NaN.
Value TermSorting::selectNan(const KeyedReduction &keyed, Value total, StringRef suffix) {
  Type type = builder.getI32Type();
  Value blocks = storeBlocks(keyed, suffix.str() + "nan", type, ReduceKind::Sum, false);
  SmallVector<StringRef> names;
  SmallVector<Value> extents, columns;
  for (unsigned p : keyed.columns) {
    names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
    extents.push_back(compute.getExtents()[p]);
    columns.push_back(compute.getIndex(p));
  }
  Value all = writer.define(
      suffix.str() + "nans", names, extents, type, [&](OpBuilder &at, ValueRange indices) {
        return ReduceOp::create(at, loc, ReduceKind::Sum, ArrayRef<StringRef>{"block"},
                                ValueRange{writer.constant(at, 0)}, ValueRange{order.numBlocks},
                                type,
                                [&](OpBuilder &in, Location, ValueRange block) -> Value {
                                  SmallVector<Value> own = {block[0]};
                                  llvm::append_range(own, indices);
                                  return LoadOp::create(in, loc, blocks, own, Value());
                                })
            .getResult(0);
      });
  Value own = reduceBlocks(keyed, blocks, ReduceKind::Sum);
  OpBuilder at(keyed.reduce);
  Value number = LoadOp::create(at, loc, all, columns, Value());
  Value hasOthers = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::ne, number, own);
  auto floats = cast<FloatType>(total.getType());
  Value nan = arith::ConstantOp::create(
      at, loc, at.getFloatAttr(floats, llvm::APFloat::getNaN(floats.getFloatSemantics())));
  return arith::SelectOp::create(at, loc, hasOthers, nan, total);
}

/// How many elements a key has on average.
double TermSorting::termsOfKey(const KeyedReduction &keyed) {
  double terms = 1, groups = guessSize(kernel, keyed.key.numKeys);
  for (auto [n, extent] : llvm::enumerate(keyed.key.extents)) {
    terms *= guessSize(kernel, extent);
    groups *= n < keyed.key.numBatches ? guessSize(kernel, extent) : 1;
  }
  return terms / groups;
}

void TermSorting::setTypicalTerms(ReduceOp reduce, const KeyedReduction &keyed) {
  const auto terms = static_cast<int64_t>(std::ceil(termsOfKey(keyed)));
  reduce->setAttr(typicalTermsAttrName, builder.getI64IntegerAttr(terms));
}

/// Do results of a key lie side by side, for most keys some? A block then has those of one key.
bool TermSorting::hasRowsOfKeys(const KeyedReduction &keyed) {
  const unsigned last = compute.getNumIndices() - 1;
  if (!llvm::is_contained(keyed.columns, last) ||
      guessSize(kernel, compute.getExtents()[last]) < leastColumnsOfKey)
    return false;
  return termsOfKey(keyed) >= leastTermsOfKey;
}

/// Reduces the elements with the key of each result where the result is.
Value TermSorting::reduceKey(const KeyedReduction &keyed) {
  ReduceOp reduce = keyed.reduce;
  OpBuilder at(reduce);
  SmallVector<StringRef> over = {"next"};
  SmallVector<Value> lower = {firstBlock(at, keyed, false)}, upper = {firstBlock(at, keyed, true)},
                     columns;
  for (unsigned p : keyed.columns)
    columns.push_back(compute.getIndex(p));
  for (unsigned n : keyed.rest) {
    over.push_back(cast<StringAttr>(reduce.getIndexNames()[n]).getValue());
    lower.push_back(writer.constant(at, 0));
    upper.push_back(reduce.getUpper()[n]);
  }
  auto sum = ReduceOp::create(
      at, loc, reduce.getKind(0), over, lower, upper, reduce.getResult(0).getType(),
      [&](OpBuilder &in, Location, ValueRange place) -> Value {
        Value row = writer.loadIndex(in, order.blockRow, {place[0], writer.constant(in, 0)}, -1);
        return copyElement(in, keyed, reduce.getYield().getValues()[0], place[0], row, columns,
                           place.drop_front());
      });
  setTypicalTerms(sum, keyed);
  padRows(sum);
  return sum.getResult(0);
}

/// Reduces the runs of elements with one key: each at its first place. Most keys have no element.
Value TermSorting::reduceRuns(const KeyedReduction &keyed, StringRef suffix) {
  if (hasRowsOfKeys(keyed))
    return reduceKey(keyed);
  ReduceOp reduce = keyed.reduce;
  ReduceKind kind = reduce.getKind(0);
  Type type = reduce.getResult(0).getType();
  Value ends = writer.define(
      suffix.str() + "end", {"place"}, {order.numBlocks}, builder.getI32Type(),
      [&](OpBuilder &at, ValueRange place) -> Value {
        Value group = writer.loadIndex(at, order.blockGroup, place);
        Value next = arith::AddIOp::create(at, loc, group, writer.constant(at, 1));
        Value isFirst = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, place[0],
                                              writer.loadIndex(at, order.first, {group}, 0));
        Value end = writer.loadIndex(at, order.first, {next}, 0);
        return writer.word(at, arith::SelectOp::create(at, loc, isFirst, end, place[0]));
      });
  SmallVector<StringRef> names = {"place"}, over = {"next"};
  SmallVector<Value> extents = {order.numBlocks};
  for (unsigned p : keyed.columns) {
    names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
    extents.push_back(compute.getExtents()[p]);
  }
  for (unsigned n : keyed.rest)
    over.push_back(cast<StringAttr>(reduce.getIndexNames()[n]).getValue());
  Value runs = writer.define(
      suffix.str() + "runs", names, extents, type, [&](OpBuilder &at, ValueRange indices) -> Value {
        SmallVector<Value> lower = {indices[0]}, upper = {writer.loadIndex(at, ends, {indices[0]})};
        for (unsigned n : keyed.rest) {
          lower.push_back(writer.constant(at, 0));
          upper.push_back(reduce.getUpper()[n]);
        }
        auto run = ReduceOp::create(
            at, loc, kind, over, lower, upper, type,
            [&](OpBuilder &in, Location, ValueRange place) -> Value {
              Value row =
                  writer.loadIndex(in, order.blockRow, {place[0], writer.constant(in, 0)}, -1);
              return copyElement(in, keyed, reduce.getYield().getValues()[0], indices[0], row,
                                 indices.drop_front(), place.drop_front());
            });
        setTypicalTerms(run, keyed);
        return run.getResult(0);
      });
  padRows(runs.getDefiningOp());
  OpBuilder at(reduce);
  Value from = firstBlock(at, keyed, false), to = firstBlock(at, keyed, true);
  SmallVector<Value> indices = {from};
  for (unsigned p : keyed.columns)
    indices.push_back(compute.getIndex(p));
  Value none = createIdentity(at, loc, kind, type);
  Value hasElements = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, from, to);
  Value own = LoadOp::create(at, loc, runs, indices, none);
  return arith::SelectOp::create(at, loc, hasElements, own, none);
}

Value TermSorting::reduceAll(const KeyedReduction &keyed, StringRef suffix) {
  ReduceOp reduce = keyed.reduce;
  ReduceKind kind = reduce.getKind(0);
  Type type = reduce.getResult(0).getType();
  Value blocks = storeBlocks(keyed, suffix.str() + "blocks", type, kind, true);
  Value total = reduceBlocks(keyed, blocks, kind);
  return keyed.others.empty() ? total : selectNan(keyed, total, suffix);
}
