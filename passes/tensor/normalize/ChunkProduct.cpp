//===- ChunkProduct.cpp - the compute ops of a product by chunks ----------===//
//
// The algorithm and its restrictions are in ChunkProducts.cpp.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/ChunkProduct.h"

#include "passes/analysis/EqualComputes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/tensor/normalize/PadConditions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

Value ChunkProduct::times(OpBuilder &at, Value a, Value b) {
  return a && b ? arith::MulFOp::create(at, reduce.getLoc(), a, b).getResult() : (a ? a : b);
}

/// The product of `factors` at `row`, and of `times`, which may be null.
Value ChunkProduct::product(OpBuilder &at, ArrayRef<Factor> factors, Value row, Value product) {
  for (const Factor &factor : factors)
    if (!factor.isDivisor)
      product = times(at, product, weights->valueAt(at, factor.value, row));
  for (const Factor &factor : factors)
    if (factor.isDivisor) {
      if (!product)
        product = arith::ConstantOp::create(at, reduce.getLoc(),
                                            at.getFloatAttr(reduce.getResult(0).getType(), 1.0));
      product = arith::DivFOp::create(at, reduce.getLoc(), product,
                                      weights->valueAt(at, factor.value, row));
    }
  return product;
}

/// `value` with the precision of an operand of the matrix unit.
Value ChunkProduct::rounded(OpBuilder &at, Value value) {
  auto wide = value.getDefiningOp<arith::ExtFOp>();
  if (!narrow || (wide && wide.getIn().getType() == narrow))
    return value;
  Location loc = reduce.getLoc();
  auto round = arith::TruncFOp::create(at, loc, Type(narrow), value);
  round->setAttr(roundedFactorAttr, at.getUnitAttr());
  return arith::ExtFOp::create(at, loc, value.getType(), round.getOut());
}

Value ChunkProduct::toStored(OpBuilder &at, Value value) {
  return narrow ? arith::TruncFOp::create(at, reduce.getLoc(), Type(narrow), value).getResult()
                : value;
}

Value ChunkProduct::fromStored(OpBuilder &at, Value value) {
  return narrow ? arith::ExtFOp::create(at, reduce.getLoc(), reduce.getResult(0).getType(), value)
                      .getResult()
                : value;
}

Value ChunkProduct::rowOf(OpBuilder &at, Value chunk, Value number) {
  Arithmetic index{at, reduce.getLoc()};
  return index.add(index.mul(chunk, index.number(length)), number);
}

/// The row of `chunk` that the results of the chunks beyond it see first.
Value ChunkProduct::edgeOf(OpBuilder &at, Value chunk) {
  Arithmetic index{at, reduce.getLoc()};
  Value row = rowOf(at, chunk, index.number(side.isBackward ? 0 : length - 1));
  return side.isBackward || isWhole ? row : index.min(row, index.sub(extent, index.number(1)));
}

/// A compute op over `lists` of indices, the chunks behind the first list, the row in a chunk if
/// there is one, and `last`. `body` gets the values of the chunk and of the row.
ComputeOp ChunkProduct::define(StringRef suffix, ArrayRef<Indices> lists, bool hasRow,
                               const Indices &last, Type type, Body body) {
  Location loc = reduce.getLoc();
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  Indices old;
  auto append = [&](const Indices &list) {
    for (BlockArgument index : list) {
      names.push_back(cast<StringAttr>(compute.getIndexNames()[index.getArgNumber()]).getValue());
      extents.push_back(compute.getExtents()[index.getArgNumber()]);
      old.push_back(index);
    }
  };
  append(lists.front());
  const std::string place =
      cast<StringAttr>(compute.getIndexNames()[side.place.getArgNumber()]).getValue().str();
  const std::string chunk = place + "_chunk", row = place + "_in_chunk", seen = place + "_seen";
  const unsigned first = names.size();
  names.push_back(chunk);
  extents.push_back(numChunks);
  if (hasRow) {
    names.push_back(row);
    extents.push_back(arith::ConstantIndexOp::create(*builder, loc, length));
  }
  const unsigned numOwn = hasRow ? 2 : 1;
  for (const Indices &list : lists.drop_front())
    append(list);
  append(last);
  if (suffix == ".scores") {
    names.push_back(seen);
    extents.push_back(arith::ConstantIndexOp::create(*builder, loc, length));
  }
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + suffix).str();
  auto result = ComputeOp::create(*builder, loc, names, extents, ArrayRef<Type>{type},
                                  ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                                  [&](OpBuilder &at, Location, ValueRange own) {
                                    IRMapping mapping;
                                    for (auto [n, index] : llvm::enumerate(old))
                                      mapping.map(index, own[n < first ? n : n + numOwn]);
                                    setIndices(mapping);
                                    YieldOp::create(at, loc, body(at, own.drop_front(first)));
                                  });
  result->setAttr(storedApartAttrName, builder->getUnitAttr());
  if (!isWhole) { // Rows behind the last one are loaded, but not read.
    Dependence onRows{ValueRange{result.getIndex(first)}};
    result.walk([&](LoadOp load) {
      if (load.getPad() || !llvm::any_of(load.getIndices(), [&](Value v) { return onRows.on(v); }))
        return;
      OpBuilder at(load);
      Value zero = arith::ConstantOp::create(at, loc, at.getZeroAttr(load.getType()));
      load.getPadMutable().assign(zero);
    });
  }
  // Gradients share states, and sums of products.
  SmallVector<ComputeOp> earlier;
  for (ComputeOp other : result->getBlock()->getOps<ComputeOp>())
    if (other->hasAttr(storedApartAttrName) && other->isBeforeInBlock(result))
      earlier.push_back(other);
  if (ComputeOp equal = findEqual(earlier, result)) {
    result.erase();
    return equal;
  }
  return result;
}

void ChunkProduct::setIndices(const IRMapping &mapping) {
  indices = mapping;
  weights->setIndices(indices);
}

/// The sum of `term` over the rows of a chunk, or over those that the row `seenBy` sees.
Value ChunkProduct::sumOverChunk(OpBuilder &at, Type type, Value seenBy,
                                 llvm::function_ref<Value(OpBuilder &, Value)> term) {
  Location loc = reduce.getLoc();
  Arithmetic index{at, loc};
  Value zero = index.number(0), end = index.number(length);
  if (seenBy && side.isBackward)
    zero = side.isIncluded ? seenBy : index.add(seenBy, index.number(1));
  else if (seenBy)
    end = side.isIncluded ? index.add(seenBy, index.number(1)) : seenBy;
  return ReduceOp::create(
             at, loc, ReduceKind::Sum,
             ArrayRef<StringRef>{cast<StringAttr>(reduce.getIndexNames()[0]).getValue()},
             ValueRange{zero}, ValueRange{end}, type,
             [&](OpBuilder &inner, Location, ValueRange own) { return term(inner, own.front()); })
      .getResult(0);
}

/// The sum of `term` over y.
Value ChunkProduct::sumOverStates(OpBuilder &at, llvm::function_ref<Value(OpBuilder &)> term) {
  Location loc = reduce.getLoc();
  SmallVector<StringRef> names;
  SmallVector<Value> lower, upper;
  for (BlockArgument index : states) {
    names.push_back(cast<StringAttr>(compute.getIndexNames()[index.getArgNumber()]).getValue());
    lower.push_back(arith::ConstantIndexOp::create(at, loc, 0));
    upper.push_back(compute.getExtents()[index.getArgNumber()]);
  }
  const IRMapping around = indices;
  auto sum =
      ReduceOp::create(at, loc, ReduceKind::Sum, names, lower, upper, reduce.getResult(0).getType(),
                       [&](OpBuilder &inner, Location, ValueRange own) -> Value {
                         IRMapping mapping(around);
                         for (auto [index, value] : llvm::zip_equal(states, own))
                           mapping.map(index, value);
                         setIndices(mapping);
                         return term(inner);
                       });
  setIndices(around);
  return sum.getResult(0);
}

/// The weights of the way from `before` to `to`: all of them, or those of a kind. Null if it is 1.
Value ChunkProduct::decay(OpBuilder &at, Value to, Value before, std::optional<Kind> kind) {
  Value all;
  for (unsigned n = 0; n < weights->getNumWeights(); ++n)
    if (!kind || kinds[n] == *kind)
      all = times(at, all, weights->weightBetween(at, n, to, before));
  return all;
}

/// `value` times the weights of a kind of the term at `index`, as seen from `to`.
Value ChunkProduct::weighted(OpBuilder &at, Value value, Value to, Value index, Kind kind) {
  for (unsigned n = 0; n < weights->getNumWeights(); ++n)
    if (kinds[n] == kind)
      value = times(at, value, weights->weightAt(at, n, to, index));
  return kind == Kind::Plain ? product(at, ofTerm, index, value) : value;
}

/// `score` of the row `number` of a chunk, if it sees `term`, or 0.
Value ChunkProduct::seen(OpBuilder &at, Value score, Value number, Value term) {
  Location loc = reduce.getLoc();
  using Predicate = arith::CmpIPredicate;
  Value low = side.isBackward ? number : term, high = side.isBackward ? term : number;
  Value isSeen =
      arith::CmpIOp::create(at, loc, side.isIncluded ? Predicate::sle : Predicate::slt, low, high);
  Value none = createIdentity(at, loc, ReduceKind::Sum, score.getType());
  return arith::SelectOp::create(at, loc, isSeen, score, none);
}

/// The product of `to` and of `index` over y, with the weights that do not have x.
Value ChunkProduct::scoreOf(OpBuilder &at, Value to, Value index) {
  Value sum = sumOverStates(at, [&](OpBuilder &inner) {
    Value left = rounded(inner, product(inner, a, to));
    Value right = rounded(inner, product(inner, b, index));
    return weighted(inner, times(inner, left, right), to, index, Kind::OfStates);
  });
  return weighted(at, sum, to, index, Kind::Plain);
}

Value ChunkProduct::createStates() {
  return define(
             ".states", {batch, states}, /*hasRow=*/false, columns, reduce.getResult(0).getType(),
             [&](OpBuilder &at, ValueRange own) {
               Value edge = edgeOf(at, own[0]);
               return sumOverChunk(
                   at, reduce.getResult(0).getType(), /*seenBy=*/{},
                   [&](OpBuilder &inner, Value number) -> Value {
                     Value row = rowOf(inner, own[0], number), left, right;
                     for (unsigned n = 0; n < weights->getNumWeights(); ++n) {
                       Value &operand = kinds[n] == Kind::OfColumns ? right : left;
                       operand = times(inner, operand, weights->ownWeight(inner, n, row));
                       operand = times(inner, operand, weights->weightBetween(inner, n, edge, row));
                     }
                     left = product(inner, ofTerm, row, left);
                     auto ofRow = [&](Value operand) -> Value {
                       if (!operand || isWhole)
                         return operand;
                       Location loc = reduce.getLoc();
                       Value isRow = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt,
                                                           row, extent);
                       Value none = createIdentity(inner, loc, ReduceKind::Sum, operand.getType());
                       return arith::SelectOp::create(inner, loc, isRow, operand, none);
                     };
                     left = rounded(inner, product(inner, b, row, ofRow(left)));
                     right = rounded(inner, product(inner, c, row, ofRow(right)));
                     return times(inner, left, right);
                   });
             })
      ->getResult(0);
}

Value ChunkProduct::createCarried(Value stored) {
  Location loc = reduce.getLoc();
  auto result = define(
      ".carried", {batch, states}, /*hasRow=*/false, columns, storedType(),
      [&](OpBuilder &at, ValueRange own) -> Value {
        Arithmetic index{at, loc};
        Value last = index.sub(numChunks, index.number(1));
        // The chunk whose state scan number `n` adds, and the one before it.
        auto chunkOf = [&](OpBuilder &in, Value n, int64_t back) {
          Arithmetic own{in, loc};
          Value number = own.max(own.sub(n, own.number(back)), own.number(0));
          return side.isBackward ? own.sub(last, number) : number;
        };
        Value position = side.isBackward ? index.sub(last, own[0]) : own[0];
        auto scan = ScanOp::create(
            at, loc, ReduceKind::Sum, "chunk", index.number(0), numChunks, position,
            reduce.getResult(0).getType(), [&](OpBuilder &in, Location, ValueRange n) -> Value {
              Value state = LoadOp::create(
                  in, loc, stored, placeOf(chunkOf(in, n[0], 1), {}, {states, columns}), Value());
              Value zero = arith::ConstantIndexOp::create(in, loc, 0);
              Value isLater = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::sgt, n[0], zero);
              Value none = createIdentity(in, loc, ReduceKind::Sum, state.getType());
              return arith::SelectOp::create(in, loc, isLater, state, none);
            });
        auto yield = scan.getYield();
        OpBuilder in(yield);
        Value n = scan.getBlock()->getArgument(0);
        if (Value own = decay(in, edgeOf(in, chunkOf(in, n, 1)), edgeOf(in, chunkOf(in, n, 2)),
                              std::nullopt))
          yield->insertOperands(1, own);
        return toStored(at, scan.getResult());
      });
  return result->getResult(0);
}

/// The scores of the rows of each chunk, if CUDA cores compute them or multiply them; null if they
/// are computed where they are multiplied.
Value ChunkProduct::createScores() {
  if (narrow && !weighsStates && !weighsColumns)
    return {};
  return define(".scores", {batch}, /*hasRow=*/true, {}, storedType(),
                [&](OpBuilder &at, ValueRange own) -> Value {
                  Value to = rowOf(at, own[0], own[1]), index = rowOf(at, own[0], own[2]);
                  Value score = seen(at, scoreOf(at, to, index), own[1], own[2]);
                  return toStored(at, score);
                })
      ->getResult(0);
}

/// Where an element is in a tensor of chunks.
SmallVector<Value> ChunkProduct::placeOf(Value chunk, ValueRange inChunk, ArrayRef<Indices> lists) {
  SmallVector<Value> place;
  for (BlockArgument old : batch)
    place.push_back(indices.lookup(old));
  place.push_back(chunk);
  llvm::append_range(place, inChunk);
  for (const Indices &list : lists)
    for (BlockArgument old : list)
      place.push_back(indices.lookup(old));
  return place;
}

/// The sum over the terms of the row's own chunk.
Value ChunkProduct::insideOf(OpBuilder &at, Value chunk, Value number, Value scores) {
  Location loc = reduce.getLoc();
  const Type type = reduce.getResult(0).getType();
  Value to = rowOf(at, chunk, number);
  // A sum that is stored by itself ends with what the row sees.
  Value end = narrow && !weighsColumns ? Value() : number;
  return sumOverChunk(at, type, end, [&](OpBuilder &inner, Value term) -> Value {
    Value row = rowOf(inner, chunk, term), score;
    if (!scores) {
      score = rounded(inner, scoreOf(inner, to, row));
    } else {
      score = LoadOp::create(inner, loc, scores, placeOf(chunk, {number, term}, {}), Value());
      score = fromStored(inner, score);
    }
    // Elsewhere weights may be infinite, and so may what is multiplied.
    score = weighted(inner, score, to, row, Kind::OfColumns);
    Value right = product(inner, c, row);
    right = weighsColumns ? right : rounded(inner, right);
    Value product = times(inner, score, right);
    return end ? product : seen(inner, product, number, term);
  });
}

/// The sums over a chunk, if CUDA cores compute them; null if the matrix unit does.
Value ChunkProduct::createInside(Value scores) {
  if (narrow && !weighsColumns)
    return {};
  return define(".inside", {batch}, /*hasRow=*/true, columns, reduce.getResult(0).getType(),
                [&](OpBuilder &at, ValueRange own) { return insideOf(at, own[0], own[1], scores); })
      ->getResult(0);
}

Value ChunkProduct::createResults(Value carried, Value scores) {
  Location loc = reduce.getLoc();
  const Type type = reduce.getResult(0).getType();
  Value stored = createInside(scores);
  auto body = [&](OpBuilder &at, ValueRange own) -> Value {
    Value chunk = own[0], to = rowOf(at, chunk, own[1]);
    Value inside = stored
                       ? LoadOp::create(at, loc, stored, placeOf(chunk, own[1], {columns}), Value())
                             .getResult()
                       : insideOf(at, chunk, own[1], scores);
    // No state comes from beyond the ends; weights there are of a way forward, too.
    Arithmetic index{at, loc};
    Value one = index.number(1), first = rowOf(at, chunk, index.number(0));
    Value edge = side.isBackward
                     ? index.min(index.add(first, index.number(length)), index.sub(extent, one))
                     : index.max(index.sub(first, one), index.number(0));
    Value beyond = sumOverStates(at, [&](OpBuilder &inner) {
      Value left = product(inner, a, to);
      left = rounded(inner, times(inner, left, decay(inner, to, edge, Kind::OfStates)));
      Value state =
          LoadOp::create(inner, loc, carried, placeOf(chunk, {}, {states, columns}), Value());
      return times(inner, left, fromStored(inner, state));
    });
    for (Kind kind : {Kind::Plain, Kind::OfColumns})
      beyond = times(at, beyond, decay(at, to, edge, kind));
    return arith::AddFOp::create(at, loc, inside, beyond);
  };
  return define(".chunks", {batch}, /*hasRow=*/true, columns, type, body)->getResult(0);
}
