//===- KeyedProducts.cpp - matrix products over the elements with a key ---===//
#include "passes/tensor/keys/TermSorting.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tk;

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// Stores `factor` in the order of the keys.
Value TermSorting::storeFactor(const KeyedReduction &keyed, Value factor,
                               ArrayRef<unsigned> columns, StringRef suffix) {
  Value size = writer.constant(builder, termsOfBlock);
  SmallVector<StringRef> names = {"place"};
  SmallVector<Value> extents = {arith::MulIOp::create(builder, loc, order.numBlocks, size)};
  for (unsigned p : columns) {
    names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
    extents.push_back(compute.getExtents()[p]);
  }
  Value stored = writer.define(
      suffix, names, extents, factor.getType(), [&](OpBuilder &at, ValueRange indices) -> Value {
        Value row = writer.loadIndex(at, order.blockRow,
                                     {writer.divide(at, indices[0], termsOfBlock),
                                      writer.remainder(at, indices[0], termsOfBlock)});
        SmallVector<Value> own;
        unsigned next = 1;
        for (unsigned p : keyed.columns)
          own.push_back(llvm::is_contained(columns, p) ? indices[next++] : writer.constant(at, 0));
        return copyElement(at, keyed, factor, writer.divide(at, indices[0], termsOfBlock), row, own,
                           {});
      });
  padRows(stored.getDefiningOp());
  eraseDead(stored.getDefiningOp<ComputeOp>());
  return stored;
}

/// The sum of `element` over the places of `group`: indices like those of the key's batches, and of
/// the group in its batch.
Value TermSorting::sumPlaces(OpBuilder &at, const KeyedReduction &keyed, ValueRange group,
                             Type type, llvm::function_ref<Value(OpBuilder &, Value)> element) {
  Value number = group.back(), one = writer.constant(at, 1);
  if (keyed.key.numBatches > 0) {
    Value batch = joinRow(at, loc, group.drop_back(),
                          ValueRange(keyed.key.extents).take_front(keyed.key.numBatches));
    Value groups = arith::AddIOp::create(at, loc, keyed.key.numKeys, one);
    number = arith::AddIOp::create(
        at, loc, arith::MulIOp::create(at, loc, batch, groups).getResult(), number);
  }
  Value size = writer.constant(at, termsOfBlock);
  auto placeOf = [&](Value ofGroup) -> Value {
    return arith::MulIOp::create(at, loc, writer.loadIndex(at, order.first, {ofGroup}), size);
  };
  Value from = placeOf(number), to = placeOf(arith::AddIOp::create(at, loc, number, one));
  auto sum = ReduceOp::create(
      at, loc, ReduceKind::Sum, ArrayRef<StringRef>{"place"}, ValueRange{from}, ValueRange{to},
      type, [&](OpBuilder &in, Location, ValueRange place) { return element(in, place[0]); },
      ReduceOp(keyed.reduce).getPrecision());
  setTypicalTerms(sum, keyed);
  return sum.getResult(0);
}

/// Whether an element of another group is NaN by `factor`, which is `stored` over places and
/// `columns`: whether one multiplies 0 by an infinity or NaN.
Value TermSorting::differs(const KeyedReduction &keyed, Value factor, Value stored,
                           ArrayRef<unsigned> columns, StringRef suffix) {
  Type type = builder.getI32Type();
  const bool isSame = !Dependence(keyed.tests).on(factor);
  SmallVector<StringRef> names;
  SmallVector<Value> extents, own;
  for (unsigned p : columns) {
    names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
    extents.push_back(compute.getExtents()[p]);
    own.push_back(compute.getIndex(p));
  }
  auto count = [&](OpBuilder &at, Value place, ValueRange atColumns) -> Value {
    Value value;
    if (isSame) {
      SmallVector<Value> indices = {place};
      llvm::append_range(indices, atColumns);
      Value narrow = withoutExtension(factor);
      Value none = createIdentity(at, loc, ReduceKind::Sum, narrow.getType());
      IRMapping mapping;
      mapping.map(narrow, LoadOp::create(at, loc, stored, indices, none).getResult());
      value = cloneFrom(at, factor, compute, mapping);
      Value zero = createIdentity(at, loc, ReduceKind::Sum, value.getType());
      value = arith::MulFOp::create(at, loc, value, zero);
    } else {
      Value row = writer.loadIndex(
          at, order.blockRow,
          {writer.divide(at, place, termsOfBlock), writer.remainder(at, place, termsOfBlock)}, -1);
      SmallVector<Value> all;
      unsigned next = 0;
      for (unsigned p : keyed.columns)
        all.push_back(llvm::is_contained(columns, p) ? atColumns[next++] : writer.constant(at, 0));
      value = copyElement(at, keyed, factor, writer.divide(at, place, termsOfBlock), row, all, {},
                          false);
    }
    return arith::ExtUIOp::create(at, loc, type, isNan(at, value));
  };
  Value ofAll = writer.define(
      suffix.str() + ".nans", names, extents, type,
      [&](OpBuilder &at, ValueRange atColumns) -> Value {
        Value places =
            arith::MulIOp::create(at, loc, order.numBlocks, writer.constant(at, termsOfBlock));
        return ReduceOp::create(at, loc, ReduceKind::Sum, ArrayRef<StringRef>{"place"},
                                ValueRange{writer.constant(at, 0)}, ValueRange{places}, type,
                                [&](OpBuilder &in, Location, ValueRange place) {
                                  return count(in, place[0], atColumns);
                                })
            .getResult(0);
      });
  padRows(ofAll.getDefiningOp());
  SmallVector<StringRef> groupNames;
  SmallVector<Value> groupExtents, group;
  for (unsigned n = 0; n < keyed.key.numBatches; ++n) {
    groupNames.push_back(getName(keyed.key.indices[n]));
    groupExtents.push_back(keyed.key.extents[n]);
    group.push_back(keyed.key.indices[n]);
  }
  groupNames.push_back(cast<StringAttr>(compute.getIndexNames()[keyed.group]).getValue());
  groupExtents.push_back(keyed.key.numKeys);
  group.push_back(compute.getIndex(keyed.group));
  const unsigned numGroups = groupNames.size();
  llvm::append_range(groupNames, names);
  llvm::append_range(groupExtents, extents);
  Value ofGroup =
      writer.define(suffix.str() + ".nan", groupNames, groupExtents, type,
                    [&](OpBuilder &at, ValueRange indices) {
                      return sumPlaces(at, keyed, indices.take_front(numGroups), type,
                                       [&](OpBuilder &in, Value place) {
                                         return count(in, place, indices.drop_front(numGroups));
                                       });
                    });
  padRows(ofGroup.getDefiningOp());
  OpBuilder at(keyed.reduce);
  llvm::append_range(group, own);
  return arith::CmpIOp::create(at, loc, arith::CmpIPredicate::ne,
                               LoadOp::create(at, loc, ofAll, own, Value()).getResult(),
                               LoadOp::create(at, loc, ofGroup, group, Value()).getResult());
}

/// The sum of the products of sorted factors.
Value TermSorting::multiply(const KeyedReduction &keyed, StringRef suffix) {
  ReduceOp reduce = keyed.reduce;
  auto pair = *getKeyedFactors(keyed);
  const Value factors[2] = {pair.first, pair.second};
  SmallVector<unsigned> columns[2];
  Value stored[2], differ;
  for (unsigned n : {0, 1}) {
    columns[n] = getColumnsOf(keyed, factors[n]);
    stored[n] = storeFactor(keyed, withoutExtension(factors[n]), columns[n],
                            suffix.str() + (n == 0 ? "left" : "right"));
    if (!Dependence(keyed.others).on(factors[n]))
      continue;
    Value own = differs(keyed, factors[n], stored[n], columns[n],
                        suffix.str() + (n == 0 ? "left" : "right"));
    OpBuilder at(reduce);
    differ = differ ? Value(arith::OrIOp::create(at, loc, differ, own)) : own;
  }
  OpBuilder at(reduce);
  SmallVector<Value> group(ValueRange(keyed.key.indices).take_front(keyed.key.numBatches));
  group.push_back(compute.getIndex(keyed.group));
  Type type = reduce.getResult(0).getType();
  Value total = sumPlaces(at, keyed, group, type, [&](OpBuilder &in, Value place) {
    IRMapping mapping;
    for (unsigned n : {0, 1}) {
      SmallVector<Value> indices = {place};
      for (unsigned p : columns[n])
        indices.push_back(compute.getIndex(p));
      Value narrow = withoutExtension(factors[n]);
      Value none = createIdentity(in, loc, ReduceKind::Sum, narrow.getType());
      mapping.map(narrow, LoadOp::create(in, loc, stored[n], indices, none).getResult());
    }
    return cloneFrom(in, reduce.getYield().getValues()[0], compute, mapping);
  });
  if (!differ)
    return total;
  auto floats = cast<FloatType>(type);
  Value nan = arith::ConstantOp::create(
      at, loc, at.getFloatAttr(floats, llvm::APFloat::getNaN(floats.getFloatSemantics())));
  return arith::SelectOp::create(at, loc, differ, nan, total);
}
