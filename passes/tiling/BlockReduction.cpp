//===- BlockReduction.cpp - what reductions carry and combine -------------===//
#include "passes/analysis/ScalarExpr.h"
#include "passes/numerics/FreeReferences.h"
#include "passes/tiling/BlockProgram.h"
#include "passes/tiling/PartLocations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace tk;

TypedAttr tk::identityOf(ReduceKind kind, Type type) {
  Builder builder(type.getContext());
  bool isMax = kind == ReduceKind::Max || kind == ReduceKind::ArgMax;
  bool isMin = kind == ReduceKind::Min || kind == ReduceKind::ArgMin;
  if (auto floatType = dyn_cast<FloatType>(type)) {
    if (isMax || isMin) {
      const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
      // Formats without infinities saturate.
      APFloat value = APFloat::semanticsHasInf(semantics) ? APFloat::getInf(semantics, isMax)
                                                          : APFloat::getLargest(semantics, isMax);
      return builder.getFloatAttr(type, value);
    }
    return builder.getFloatAttr(type, kind == ReduceKind::Prod ? 1.0 : 0.0);
  }
  if (kind == ReduceKind::Prod || kind == ReduceKind::All)
    return builder.getIntegerAttr(type, 1);
  if (isMax || isMin) {
    unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    APInt value = isMax ? APInt::getSignedMinValue(bits) : APInt::getSignedMaxValue(bits);
    return builder.getIntegerAttr(type, value);
  }
  return cast<TypedAttr>(builder.getZeroAttr(type));
}

/// a (+) b for two tiles, or scalars, of one type.
Value BlockProgram::combine(ReduceKind kind, Value a, Value b) {
  return createCombination(at(scopes.size() - 1), loc, kind, a, b);
}

/// The running pair (value, index) after a tile of later indices: taken over where the new value is
/// further out, or the first NaN.
SmallVector<Value> BlockProgram::combineArg(ReduceKind kind, ArrayRef<Value> old,
                                            ArrayRef<Value> term) {
  OpBuilder &at = this->at(scopes.size() - 1);
  bool isMax = kind == ReduceKind::ArgMax;
  Value take;
  if (isa<FloatType>(getElementTypeOrSelf(old[0].getType()))) {
    auto further = isMax ? arith::CmpFPredicate::UGT : arith::CmpFPredicate::ULT;
    Value beats = arith::CmpFOp::create(at, loc, further, term[0], old[0]);
    Value ordered = arith::CmpFOp::create(at, loc, arith::CmpFPredicate::ORD, old[0], old[0]);
    take = arith::AndIOp::create(at, loc, beats, ordered);
  } else {
    auto further = isMax ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::slt;
    take = arith::CmpIOp::create(at, loc, further, term[0], old[0]);
  }
  // A range of nothing but identities still has a first index.
  Value value = arith::SelectOp::create(at, loc, take, term[0], old[0]);
  Value index = arith::SelectOp::create(at, loc, take, term[1], old[1]);
  return {value, index};
}

TileValue BlockProgram::reduceTile(TileValue tile, ArrayRef<unsigned> reduced, ReduceKind kind) {
  // The last one first: threads that are neighbours have neighbours along it, and joining these
  // leaves few values for warps to exchange along the others.
  for (unsigned axis : llvm::reverse(reduced)) {
    auto position = llvm::find(tile.axes, axis);
    if (position == tile.axes.end())
      continue;
    int64_t number = position - tile.axes.begin();
    tile.axes.erase(position);
    Type type = tileType(tile.axes, getElementTypeOrSelf(tile.value.getType()));
    tile.value = gpu::ReduceOp::create(at(tile.depth), loc, type, tile.value, kind, number);
  }
  return tile;
}

/// Where the current tiles' index values are all inside the reduction's bounds.
std::optional<TileValue> BlockProgram::termMask(Reduction &reduction, unsigned minDepth) {
  SmallVector<TileValue> masks;
  for (unsigned axis : reduction.axes)
    if (std::optional<TileValue> mask = exactMask(axis, minDepth))
      masks.push_back(*mask);
  if (masks.empty())
    return std::nullopt;
  return andMasks(masks);
}

/// Term `k` with the identity where an index is outside the bounds.
TileValue BlockProgram::maskedTerm(Reduction &reduction, unsigned k) {
  const Accumulator &acc = reduction.accumulators[k];
  TileValue term = get(reduction.op.getYield().getValues()[k]);
  bool isZeroed = acc.kind == ReduceKind::Sum;
  for (unsigned axis : reduction.axes) {
    const Axis &info = axes[axis];
    bool needed = info.limit || info.lower || info.upper;
    bool byLoads =
        !info.lower && !info.upper && llvm::is_contained(zeroOutside.lookup(term.value), axis);
    isZeroed &= !needed || byLoads;
  }
  std::optional<TileValue> mask;
  if (!isZeroed && !reduction.masksTerms)
    mask = termMask(reduction);
  if (mask)
    term = select(*mask, term, identityOf(acc.kind, getElementTypeOrSelf(term.value.getType())));
  auto conditions = present.find(reduction.op);
  if (Value exists = conditions == present.end() ? Value() : conditions->second[k])
    term = select(get(exists), term, identityOf(acc.kind, acc.type));
  Axes wanted = acc.axes;
  for (unsigned axis : reduction.axes)
    if (!axes[axis].isScalar)
      wanted = unite(wanted, {axis});
  return broadcast(term, wanted, scopes.size() - 1);
}

/// The index along the reduction's axis, as a tile of the places' type like the carried values.
TileValue BlockProgram::argIndices(Reduction &reduction) {
  TileValue number = index(reduction.axes.front());
  Type type = tileType(number.axes, reduction.op.getResult(0).getType());
  number.value = arith::IndexCastOp::create(at(number.depth), loc, type, number.value);
  return broadcast(number, reduction.accumulators.front().carried, scopes.size() - 1);
}

/// Is a yielded factor 1?
static bool isOne(Value factor) {
  return matchPattern(factor, m_OneFloat()) || matchPattern(factor, m_One());
}

/// What axes each accumulator has, and which are products for the matrix units.
void BlockProgram::planAccumulators(Reduction &reduction) {
  tk::ReduceOp op = reduction.op;
  unsigned count = op.getNumAccumulators();
  for (unsigned k = 0; k < count; ++k) {
    llvm::SetVector<unsigned> set = axesOf(op.getYield().getValues()[k]);
    if (k > 0) {
      auto factors = cast<YieldOp>(op.getRescale().front().getTerminator());
      set.insert_range(axesOf(factors.getValues()[k - 1]));
    }
    for (unsigned axis : reduction.axes)
      for (const std::optional<TileValue> &bound : {axes[axis].lower, axes[axis].upper})
        if (bound)
          set.insert_range(bound->axes);
    for (unsigned axis : reduction.axes)
      set.remove(axis);
    Accumulator acc;
    acc.kind = op.getKind(k);
    acc.type = op.getYield().getValues()[k].getType();
    acc.axes = sorted(set);
    acc.isAlone = op.standsAlone(k);
    reduction.accumulators.push_back(acc);
    if (k + 1 < count) {
      Block &rescale = op.getRescale().front();
      for (Value running : {Value(op.getRunning(k)), Value(rescale.getArgument(k)),
                            Value(rescale.getArgument(count - 1 + k))})
        runningAxes[running] = acc.axes;
    }
    if (!planHistogram(reduction, k))
      planDot(reduction, k);
  }
}

SmallVector<Value> BlockProgram::initialValues(Reduction &reduction) {
  SmallVector<Value> values;
  unsigned depth = scopes.size() - 1;
  auto add = [&](TypedAttr attr, ArrayRef<unsigned> carried) {
    TileValue scalar{constant(attr, depth), {}, depth};
    values.push_back(broadcast(scalar, carried, depth).value);
  };
  for (Accumulator &acc : reduction.accumulators) {
    add(identityOf(acc.kind, acc.type), acc.carried);
    if (isArgReduction(acc.kind)) {
      // Where all values are the identity the first index of the range is the answer.
      TileValue first = get(reduction.op.getLower().front());
      Type type = tileType(first.axes, reduction.op.getResult(0).getType());
      first.value = arith::IndexCastOp::create(at(first.depth), loc, type, first.value);
      values.push_back(broadcast(first, acc.carried, depth).value);
    }
  }
  return values;
}

/// The reduction's results from what the loop left; of a place also what stands there.
SmallVector<TileValue> BlockProgram::finish(Reduction &reduction, ArrayRef<Value> carried) {
  unsigned depth = scopes.size() - 1;
  SmallVector<TileValue> results;
  if (isArgReduction(reduction.accumulators.front().kind)) {
    Accumulator &acc = reduction.accumulators.front();
    unsigned axis = reduction.axes.front();
    auto position = llvm::find(acc.carried, axis);
    if (position == acc.carried.end())
      return {{carried[1], acc.carried, depth}, {carried[0], acc.carried, depth}};
    Type places = tileType(acc.axes, reduction.op.getResult(0).getType());
    auto op =
        gpu::ArgReduceOp::create(at(depth), loc, tileType(acc.axes, acc.type), places, carried[0],
                                 carried[1], acc.kind, position - acc.carried.begin());
    return {{op.getIndex(), acc.axes, depth}, {op.getValue(), acc.axes, depth}};
  }
  for (auto [k, acc, value] : llvm::enumerate(reduction.accumulators, carried)) {
    llvm::SaveAndRestore ofPart(loc, locationOfAccumulator(reduction, k));
    results.push_back(reduceTile({value, acc.carried, depth}, reduction.axes, acc.kind));
  }
  return results;
}

/// The place of the statement whose reduction the accumulator was; if that is not known, of the
/// first one, on whose running values the others depend.
Location BlockProgram::locationOfAccumulator(Reduction &reduction, unsigned k) {
  Location where = locationOfPart(reduction.op.getLoc(), reduction.op.getYield().getValues()[k], k,
                                  reduction.op.getNumAccumulators());
  auto first = where->findInstanceOf<FileLineColLoc>();
  return first ? Location(first) : where;
}

/// Takes one tile of index values into a reduction with one accumulator.
SmallVector<Value> BlockProgram::step(Reduction &reduction, ArrayRef<Value> carried) {
  if (reduction.op.isOnline())
    return onlineStep(reduction, carried);
  Accumulator &acc = reduction.accumulators.front();
  if (acc.isDot)
    return {dot(reduction, acc, carried.front())};
  if (acc.isHistogram) {
    Value sums = histogram(reduction, 0);
    return {reduction.isLoop ? combine(acc.kind, carried.front(), sums) : sums};
  }
  TileValue term = maskedTerm(reduction, 0);
  if (!isArgReduction(acc.kind))
    return {reduction.isLoop ? combine(acc.kind, carried.front(), term.value) : term.value};
  SmallVector<Value> pair = {term.value, argIndices(reduction).value};
  return reduction.isLoop ? combineArg(acc.kind, carried, pair) : pair;
}

/// The same with several accumulators: each is corrected for what the earlier ones have become.
SmallVector<Value> BlockProgram::onlineStep(Reduction &reduction, ArrayRef<Value> carried) {
  tk::ReduceOp op = reduction.op;
  unsigned depth = scopes.size() - 1, count = op.getNumAccumulators();
  Block &rescale = op.getRescale().front();
  // What selects scores is one of the masks at the ends of their range.
  for (Value score : reduction.masked)
    scopes[depth].memo[score] = get(score.getDefiningOp<arith::SelectOp>().getTrueValue());
  for (Value weight : reduction.maskedWeights)
    maskTerm(reduction, weight, ReduceKind::Sum);
  SmallVector<Value> results;
  for (unsigned k = 0; k < count; ++k) {
    Accumulator &acc = reduction.accumulators[k];
    llvm::SaveAndRestore ofPart(loc, locationOfAccumulator(reduction, k));
    if (reduction.masksTerms && acc.kind == ReduceKind::Max)
      maskTerm(reduction, op.getYield().getValues()[k], acc.kind);
    Value old = carried[k];
    if (reduction.isLoop && k > 0) {
      Value yielded = cast<YieldOp>(rescale.getTerminator()).getValues()[k - 1];
      if (!isOne(yielded)) {
        Value factor = broadcast(get(yielded), acc.axes, depth).value;
        old = combine(ReduceKind::Prod, old, factor);
      }
    }
    Value value;
    if (acc.isHistogram) {
      Value sums = histogram(reduction, k);
      results.push_back(reduction.isLoop ? combine(acc.kind, old, sums) : sums);
      continue;
    }
    if (acc.isDot) {
      value = dot(reduction, acc, old);
    } else if (acc.isAlone) {
      TileValue term = maskedTerm(reduction, k);
      results.push_back(reduction.isLoop ? combine(acc.kind, old, term.value) : term.value);
      continue;
    } else {
      TileValue term = reduceTile(maskedTerm(reduction, k), reduction.axes, acc.kind);
      if (auto reduce = term.value.getDefiningOp<gpu::ReduceOp>();
          reduce && k == 0 && op->hasAttr(freeReferenceAttrName))
        reduce.setFreeReference(true);
      value = reduction.isLoop ? combine(acc.kind, old, term.value) : term.value;
    }
    results.push_back(value);
    if (k + 1 == count)
      break;
    auto &memo = scopes[depth].memo;
    memo[op.getRunning(k)] = {value, acc.axes, depth};
    memo[rescale.getArgument(k)] = {carried[k], acc.axes, depth};
    memo[rescale.getArgument(count - 1 + k)] = {value, acc.axes, depth};
  }
  return results;
}
