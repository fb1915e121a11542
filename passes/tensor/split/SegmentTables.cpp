//===- SegmentTables.cpp - where the segments of shares lie ---------------===//
//
// 1. If rows have bounds of their own, a table holds each range's extreme bounds.
// 2. A scan over the ranges gives the unit in which each range ends.
// 3. Segment `s` is in the last range `r` whose first share `p` has `r + p <= s`. Its share is
//    `s - r`; the segment is what of the range lies in that share.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/SegmentTables.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/machine/limits/Splits.h"

using namespace mlir;
using namespace tk;

using namespace limits::share_parts;

Value SegmentTables::quotient(OpBuilder &builder, Value a, Value b) {
  return FloorDivOp::create(builder, loc, a.getType(), a, b);
}

Value SegmentTables::ceilDiv(OpBuilder &builder, Value a, Value b) {
  Value rest = fold<arith::SubIOp>(builder, b, number(builder, 1));
  return quotient(builder, fold<arith::AddIOp>(builder, a, rest), b);
}

Value SegmentTables::toInteger(OpBuilder &builder, Value value) {
  return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), value);
}

static Value toIndex(OpBuilder &builder, Value value) {
  return arith::IndexCastOp::create(builder, value.getLoc(), builder.getIndexType(), value);
}

Value SegmentTables::entry(OpBuilder &builder, Value table, Value place, bool mayBeOutside) {
  Value pad;
  if (mayBeOutside)
    pad = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  return toIndex(builder, LoadOp::create(builder, loc, table, place, pad));
}

SmallVector<Value> SegmentTables::takeApart(OpBuilder &builder, Value range) {
  SmallVector<Value> values(parts.batch.size());
  for (unsigned n = parts.batch.size(); n-- > 0;) {
    Value extent = compute.getExtents()[parts.batch[n]];
    if (n == 0) {
      values[n] = range;
      continue;
    }
    values[n] = FloorModOp::create(builder, loc, range.getType(), range, extent);
    range = quotient(builder, range, extent);
  }
  return values;
}

IRMapping SegmentTables::mapBatch(ValueRange values) {
  IRMapping mapping;
  for (auto [p, value] : llvm::zip_equal(parts.batch, values))
    mapping.map(compute.getIndex(p), value);
  return mapping;
}

/// A bound of a range: of those of all its rows the greatest, or the least.
Value SegmentTables::extremeOf(OpBuilder &builder, Value bound, Value range, ReduceKind kind) {
  if (parts.variesByRow)
    return entry(builder, extremes.lookup({bound, kind}), range);
  IRMapping mapping = mapBatch(takeApart(builder, range));
  return cloneSlice(builder, bound, compute.getBlock(), mapping);
}

/// The greatest and the least of rows' own bounds, in a statement before those that need them
/// several times.
void SegmentTables::createExtremes() {
  OpBuilder builder(compute);
  SmallVector<std::pair<Value, ReduceKind>> wanted;
  SmallVector<std::string> names;
  auto own = cast<StringAttr>(compute.getNames()[0]).getValue();
  for (Value bound : {parts.begin, parts.end})
    for (ReduceKind kind : {ReduceKind::Min, ReduceKind::Max})
      if (bound) {
        wanted.push_back({bound, kind});
        names.push_back((own + (kind == ReduceKind::Min ? ".least_" : ".greatest_") +
                         (bound == parts.end ? "end" : "begin"))
                            .str());
      }
  SmallVector<StringRef> indices;
  for (unsigned p : parts.rows)
    indices.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
  auto createBody = [&](OpBuilder &body, Location, ValueRange places) {
    SmallVector<Value> values, lower, extents;
    for (unsigned p : parts.rows) {
      lower.push_back(number(body, 0));
      extents.push_back(compute.getExtents()[p]);
    }
    SmallVector<Value> batch = takeApart(body, places[0]);
    for (auto [bound, kind] : wanted) {
      auto createTerm = [&](OpBuilder &term, Location, ValueRange rows) -> Value {
        IRMapping mapping = mapBatch(batch);
        for (auto [p, row] : llvm::zip_equal(parts.rows, rows))
          mapping.map(compute.getIndex(p), row);
        return toInteger(term, cloneSlice(term, bound, compute.getBlock(), mapping));
      };
      values.push_back(
          ReduceOp::create(body, loc, kind, indices, lower, extents, body.getI32Type(), createTerm)
              .getResult(0));
    }
    YieldOp::create(body, loc, values);
  };
  auto statement = ComputeOp::create(builder, loc, StringRef("range"), numRanges,
                                     SmallVector<Type>(wanted.size(), builder.getI32Type()),
                                     llvm::to_vector_of<StringRef>(names),
                                     ArrayRef<SmallVector<unsigned>>{}, createBody);
  for (auto [which, table] : llvm::zip_equal(wanted, statement.getResults()))
    extremes[which] = table;
}

/// The unit that the first term of a range is in.
Value SegmentTables::firstUnitOf(OpBuilder &builder, Value range) {
  Value zero = number(builder, 0);
  if (!parts.begin)
    return zero;
  Value least = extremeOf(builder, parts.begin, range, ReduceKind::Min);
  least = fold<arith::MaxSIOp>(builder, least, zero);
  return quotient(builder, least, number(builder, termsOfUnit));
}

/// How many units a range has.
Value SegmentTables::unitsOf(OpBuilder &builder, Value range) {
  Value zero = number(builder, 0);
  Value last = extremeOf(builder, parts.end, range, ReduceKind::Max);
  last = fold<arith::MaxSIOp>(builder, last, zero);
  Value units = ceilDiv(builder, last, number(builder, termsOfUnit));
  units = fold<arith::SubIOp>(builder, units, firstUnitOf(builder, range));
  return fold<arith::MaxSIOp>(builder, units, zero);
}

/// Where each range ends, in units.
Value SegmentTables::createEnds() {
  OpBuilder builder(compute);
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".ends").str();
  auto createBody = [&](OpBuilder &body, Location, ValueRange places) {
    auto createTerm = [&](OpBuilder &term, Location, ValueRange indices) -> Value {
      return toInteger(term, unitsOf(term, indices[0]));
    };
    Value ends = ScanOp::create(body, loc, ReduceKind::Sum, "range", number(body, 0), numRanges,
                                places[0], body.getI32Type(), createTerm);
    YieldOp::create(body, loc, ends);
  };
  return ComputeOp::create(builder, loc, StringRef("range"), numRanges, builder.getI32Type(),
                           StringRef(name), ArrayRef<SmallVector<unsigned>>{}, createBody)
      .getResult(0);
}

/// Where a range ends and begins, in units; 0 outside of the ranges.
Value SegmentTables::endOf(OpBuilder &builder, Value range) {
  return entry(builder, ends, range, /*mayBeOutside=*/true);
}
Value SegmentTables::beginOf(OpBuilder &builder, Value range) {
  return endOf(builder, fold<arith::SubIOp>(builder, range, number(builder, 1)));
}

/// The last range that is reached, as all before it are.
Value SegmentTables::lastRange(OpBuilder &builder,
                               llvm::function_ref<Value(OpBuilder &, Value)> isReached) {
  auto createTerm = [&](OpBuilder &at, Location, ValueRange indices) -> Value {
    Value yes = arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(1));
    Value no = arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(0));
    return arith::SelectOp::create(at, loc, isReached(at, indices[0]), yes, no);
  };
  Value one = number(builder, 1);
  auto found =
      ReduceOp::create(builder, loc, ReduceKind::Sum, ArrayRef<StringRef>{"range"}, ValueRange{one},
                       ValueRange{numRanges}, builder.getI32Type(), createTerm);
  return toIndex(builder, found.getResult(0));
}

/// The entries of the tables at `segment`.
SmallVector<Value> SegmentTables::entriesOf(OpBuilder &body, Value segment) {
  Value one = number(body, 1);
  Value all = endOf(body, fold<arith::SubIOp>(body, numRanges, one));
  Value length = ceilDiv(body, all, number(body, shares));
  length = fold<arith::MaxSIOp>(body, length, one);
  auto isAtMost = [&](OpBuilder &at, Value a, Value b) -> Value {
    return arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sle, a, b);
  };
  Value range = lastRange(body, [&](OpBuilder &at, Value other) {
    Value share = quotient(at, beginOf(at, other), length);
    return isAtMost(at, fold<arith::AddIOp>(at, other, share), segment);
  });
  Value rangeOfShare = lastRange(body, [&](OpBuilder &at, Value other) {
    return isAtMost(at, beginOf(at, other), fold<arith::MulIOp>(at, segment, length));
  });
  // What of the range lies in the share.
  Value share = fold<arith::SubIOp>(body, segment, range);
  Value before = beginOf(body, range), zero = number(body, 0);
  Value units = fold<arith::SubIOp>(body, endOf(body, range), before);
  auto within = [&](Value number) {
    Value at = fold<arith::SubIOp>(body, fold<arith::MulIOp>(body, number, length), before);
    return fold<arith::MinSIOp>(body, fold<arith::MaxSIOp>(body, at, zero), units);
  };
  Value from = within(share), to = within(fold<arith::AddIOp>(body, share, one));
  // The same number is that of a range.
  Value firstOf = quotient(body, beginOf(body, segment), length);
  Value behind = ceilDiv(body, endOf(body, segment), length);
  SmallVector<Value> values(parts.variesByRow ? Count : RowBegin);
  values[Range] = range;
  values[Begin] = fold<arith::AddIOp>(body, firstUnitOf(body, range), from);
  // Bounds of terms, counted from where the segment begins.
  Value unit = number(body, termsOfUnit);
  Value first = fold<arith::MulIOp>(body, values[Begin], unit);
  Value size = fold<arith::MulIOp>(body, fold<arith::SubIOp>(body, to, from), unit);
  auto inSegment = [&](Value bound, ReduceKind kind) {
    Value at = bound ? extremeOf(body, bound, range, kind) : zero;
    at = fold<arith::MaxSIOp>(body, fold<arith::SubIOp>(body, at, first), zero);
    return fold<arith::MinSIOp>(body, at, size);
  };
  values[Size] = inSegment(parts.end, ReduceKind::Max);
  if (parts.variesByRow) {
    values[RowBegin] = inSegment(parts.begin, ReduceKind::Min);
    values[AllBegin] = inSegment(parts.begin, ReduceKind::Max);
    values[AllEnd] = inSegment(parts.end, ReduceKind::Min);
  }
  values[First] = fold<arith::AddIOp>(body, segment, rangeOfShare);
  values[From] = fold<arith::AddIOp>(body, segment, firstOf);
  values[To] = fold<arith::AddIOp>(body, segment, behind);
  return values;
}

ComputeOp SegmentTables::create() {
  OpBuilder builder(compute);
  numRanges = number(builder, 1);
  for (unsigned p : parts.batch)
    numRanges = fold<arith::MulIOp>(builder, numRanges, compute.getExtents()[p]);
  if (parts.variesByRow)
    createExtremes();
  ends = createEnds();
  // None without ranges, else as many as shares and ranges.
  Value count = fold<arith::AddIOp>(builder, numRanges, number(builder, shares));
  Value most = fold<arith::MulIOp>(builder, numRanges, number(builder, shares + 1));
  count = fold<arith::MinSIOp>(builder, count, most);
  auto own = cast<StringAttr>(compute.getNames()[0]).getValue();
  SmallVector<std::string> names;
  for (StringRef name :
       {"range", "begin", "size", "first", "from", "to", "row_begin", "all_begin", "all_end"})
    names.push_back((own + "." + name).str());
  names.resize(parts.variesByRow ? Count : RowBegin);
  auto createBody = [&](OpBuilder &body, Location, ValueRange places) {
    SmallVector<Value> values = entriesOf(body, places[0]);
    for (Value &value : values)
      value = toInteger(body, value);
    YieldOp::create(body, loc, values);
  };
  return ComputeOp::create(builder, loc, StringRef("segment"), count,
                           SmallVector<Type>(names.size(), builder.getI32Type()),
                           llvm::to_vector_of<StringRef>(names), ArrayRef<SmallVector<unsigned>>{},
                           createBody);
}
