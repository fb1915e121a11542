//===- ShareParts.cpp - work-centric decomposition of sequences -----------===//
//
// Sequences of different lengths leave multiprocessors idle if each sequence is cut into chunks of
// one length (tk-split-chains). The last chunk of a sequence is shorter, and most chunks of a short
// sequence are empty. This pass applies a work-centric decomposition (stream-K): it lays all
// sequences end to end, and cuts them into one equal share for each multiprocessor.
//
// 1. Find a compute op of partial softmax states whose range ends at a loaded length. Below, a
//    range is the keys of one batch element, and a unit is 64 keys.
// 2. A new compute op scans the lengths of the ranges, in units.
// 3. Share `p` is the units from `p * L` to `(p + 1) * L`. A segment ends where a share or a range
//    ends. The segment of a share and a range has the number `share + range`. There are at most as
//    many segments as shares and ranges together; an unused number is an empty segment.
// 4. A second compute op stores tables: for each segment its range, begin and size, for each share
//    its first segment, for each range its first segment and the one behind its last. If rows have
//    bounds of their own, these become masks with known ranges, from each range's extreme bounds.
// 5. The states are computed for each segment. The segment replaces the index of the part and the
//    batch indices. A persistent block computes the segments of one share (tk-persist-blocks).
// 6. The combining reduction runs from a range's first segment to its last.
//
// The cut depends on the lengths only, so results repeat bit by bit.
//
// The pass declines more than 1024 ranges, ranges below 4096 keys, and little work for each
// multiprocessor (PartStates.cpp has the measurements). `persistent` in a schedule block overrides
// the last two.
//
//   %s = tk.compute ["j.part", "b", "i"] in (%P, %B, %I) {
//     tk.reduce ["j"] from (0) to (min(L, %length[b] - j.part * L)) {.. %k[b, j.part * L + j] ..}}
//     =>
//   %ends = tk.compute ["range"] {scan of %length / unit}
//   %range, %begin, %size, %first, %from, %to = tk.compute ["segment"] {.. %ends ..}
//   %s = tk.compute ["segment", "i"] in (%shares + %B, %I) {
//     %b = %range[tk.in_shares %first[%segment]]
//     tk.reduce ["j"] from (0) to (%size) {.. %k[b, %begin + j] ..}}
//   tk.reduce ["j.part"] from (%from[b]) to (%to[b]) {.. %s[j.part, i] ..}
//
// Source: M. Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix
// Multiplication on the GPU" (PPoPP 2023), for one matrix product.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/MaskRanges.h"
#include "passes/analysis/Notes.h"
#include "passes/machine/limits/Splits.h"
#include "passes/tensor/ranges/ChainMasks.h"
#include "passes/tensor/split/PartStates.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tk {
#define GEN_PASS_DEF_SHAREPARTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-share-parts";
using namespace limits::share_parts;

namespace {

/// Puts shares in the place of a statement's parts.
class Sharing {
public:
  Sharing(PartStates &parts, int64_t shares)
      : parts(parts), compute(parts.compute), shares(shares), loc(compute.getLoc()) {}

  void apply();

private:
  SmallVector<Value> takeApart(OpBuilder &builder, Value range);
  IRMapping mapBatch(ValueRange values);
  Value putTogether(OpBuilder &builder, LoadOp load, ReduceOp reader);
  Value extremeOf(OpBuilder &builder, Value bound, Value range, ReduceKind kind);
  void createExtremes();
  Value firstUnitOf(OpBuilder &builder, Value range);
  Value unitsOf(OpBuilder &builder, Value range);
  Value createEnds();
  ComputeOp createSegments(Value ends);
  void maskRows(ReduceOp copy, Value first, IRMapping &mapping, MaskRanges ranges);
  ComputeOp createStates(ComputeOp segments);
  void combine(ComputeOp states, ComputeOp segments);

  Value number(OpBuilder &builder, int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  template <typename Op> Value create(OpBuilder &builder, Value a, Value b) {
    return builder.createOrFold<Op>(loc, a, b);
  }
  Value quotient(OpBuilder &builder, Value a, Value b) {
    return FloorDivOp::create(builder, loc, a.getType(), a, b);
  }
  Value ceilDiv(OpBuilder &builder, Value a, Value b) {
    Value rest = create<arith::SubIOp>(builder, b, number(builder, 1));
    return quotient(builder, create<arith::AddIOp>(builder, a, rest), b);
  }
  Value toIndex(OpBuilder &builder, Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  }
  Value toInteger(OpBuilder &builder, Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), value);
  }
  /// An entry of a table, 0 outside of it where that may be asked for.
  Value entry(OpBuilder &builder, Value table, Value place, bool mayBeOutside = false) {
    Value pad;
    if (mayBeOutside)
      pad = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
    return toIndex(builder, LoadOp::create(builder, loc, table, place, pad));
  }

  PartStates &parts;
  ComputeOp compute;
  int64_t shares;
  Location loc;
  Value numRanges;
  llvm::SmallMapVector<std::pair<Value, ReduceKind>, Value, 4> extremes; ///< tables
};

struct ShareParts : tk::impl::SharePartsBase<ShareParts> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    if (!target)
      return;
    SmallVector<ComputeOp> computes;
    getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
    for (ComputeOp compute : computes) {
      PartStates parts(compute->getParentOfType<KernelOp>(), compute);
      if (!parts.match(target))
        continue;
      Sharing(parts, llvm::divideCeil(target.getProcessors(), parts.tilesOfRows)).apply();
      ++numShared;
    }
  }
};

} // namespace

/// The values of the batch indices that are number `range`, the last one running fastest.
SmallVector<Value> Sharing::takeApart(OpBuilder &builder, Value range) {
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

/// The batch indices, which have `values`.
IRMapping Sharing::mapBatch(ValueRange values) {
  IRMapping mapping;
  for (auto [p, value] : llvm::zip_equal(parts.batch, values))
    mapping.map(compute.getIndex(p), value);
  return mapping;
}

/// The range whose states `load` reads.
Value Sharing::putTogether(OpBuilder &builder, LoadOp load, ReduceOp reader) {
  IRMapping mapping;
  Value range = number(builder, 0);
  for (unsigned p : parts.batch) {
    Value own = cloneSlice(builder, parts.batchIndexOf(load, p), reader.getBlock(), mapping);
    Value before = create<arith::MulIOp>(builder, range, compute.getExtents()[p]);
    range = create<arith::AddIOp>(builder, before, own);
  }
  return range;
}

/// A bound of a range: of those of all its rows the greatest, or the least.
Value Sharing::extremeOf(OpBuilder &builder, Value bound, Value range, ReduceKind kind) {
  if (parts.variesByRow)
    return entry(builder, extremes.lookup({bound, kind}), range);
  IRMapping mapping = mapBatch(takeApart(builder, range));
  return cloneSlice(builder, bound, compute.getBlock(), mapping);
}

/// The greatest and the least of rows' own bounds, in a statement before those that need them
/// several times.
void Sharing::createExtremes() {
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
Value Sharing::firstUnitOf(OpBuilder &builder, Value range) {
  Value zero = number(builder, 0);
  if (!parts.begin)
    return zero;
  Value least = extremeOf(builder, parts.begin, range, ReduceKind::Min);
  least = create<arith::MaxSIOp>(builder, least, zero);
  return quotient(builder, least, number(builder, termsOfUnit));
}

/// How many units a range has.
Value Sharing::unitsOf(OpBuilder &builder, Value range) {
  Value zero = number(builder, 0);
  Value last = extremeOf(builder, parts.end, range, ReduceKind::Max);
  last = create<arith::MaxSIOp>(builder, last, zero);
  Value units = ceilDiv(builder, last, number(builder, termsOfUnit));
  units = create<arith::SubIOp>(builder, units, firstUnitOf(builder, range));
  return create<arith::MaxSIOp>(builder, units, zero);
}

/// Where each range ends, in units.
Value Sharing::createEnds() {
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

/// What the results of the statement of segments are, in order.
struct Table {
  enum : unsigned { Range, Begin, Size, First, From, To, RowBegin, AllBegin, AllEnd, Count };
};

ComputeOp Sharing::createSegments(Value ends) {
  OpBuilder builder(compute);
  // None without ranges, else as many as shares and ranges.
  Value count = create<arith::AddIOp>(builder, numRanges, number(builder, shares));
  Value most = create<arith::MulIOp>(builder, numRanges, number(builder, shares + 1));
  count = create<arith::MinSIOp>(builder, count, most);
  auto own = cast<StringAttr>(compute.getNames()[0]).getValue();
  SmallVector<std::string> names;
  for (StringRef name :
       {"range", "begin", "size", "first", "from", "to", "row_begin", "all_begin", "all_end"})
    names.push_back((own + "." + name).str());
  names.resize(parts.variesByRow ? Table::Count : Table::RowBegin);
  auto createBody = [&](OpBuilder &body, Location, ValueRange places) {
    Value segment = places[0], one = number(body, 1);
    auto endOf = [&](OpBuilder &at, Value range) { return entry(at, ends, range, true); };
    auto beginOf = [&](OpBuilder &at, Value range) {
      return endOf(at, create<arith::SubIOp>(at, range, number(at, 1)));
    };
    Value all = endOf(body, create<arith::SubIOp>(body, numRanges, one));
    Value length = ceilDiv(body, all, number(body, shares));
    length = create<arith::MaxSIOp>(body, length, one);
    // The last range that is reached, as all before it are.
    auto lastRange = [&](llvm::function_ref<Value(OpBuilder &, Value)> isReached) {
      auto createTerm = [&](OpBuilder &at, Location, ValueRange indices) -> Value {
        Value yes = arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(1));
        Value no = arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(0));
        return arith::SelectOp::create(at, loc, isReached(at, indices[0]), yes, no);
      };
      auto found =
          ReduceOp::create(body, loc, ReduceKind::Sum, ArrayRef<StringRef>{"range"},
                           ValueRange{one}, ValueRange{numRanges}, body.getI32Type(), createTerm);
      return toIndex(body, found.getResult(0));
    };
    auto isAtMost = [&](OpBuilder &at, Value a, Value b) -> Value {
      return arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sle, a, b);
    };
    Value range = lastRange([&](OpBuilder &at, Value other) {
      Value share = quotient(at, beginOf(at, other), length);
      return isAtMost(at, create<arith::AddIOp>(at, other, share), segment);
    });
    Value rangeOfShare = lastRange([&](OpBuilder &at, Value other) {
      return isAtMost(at, beginOf(at, other), create<arith::MulIOp>(at, segment, length));
    });
    // What of the range lies in the share.
    Value share = create<arith::SubIOp>(body, segment, range);
    Value before = beginOf(body, range), zero = number(body, 0);
    Value units = create<arith::SubIOp>(body, endOf(body, range), before);
    auto within = [&](Value number) {
      Value at = create<arith::SubIOp>(body, create<arith::MulIOp>(body, number, length), before);
      return create<arith::MinSIOp>(body, create<arith::MaxSIOp>(body, at, zero), units);
    };
    Value from = within(share), to = within(create<arith::AddIOp>(body, share, one));
    // The same number is that of a range.
    Value firstOf = quotient(body, beginOf(body, segment), length);
    Value behind = ceilDiv(body, endOf(body, segment), length);
    SmallVector<Value> values(names.size());
    values[Table::Range] = range;
    values[Table::Begin] = create<arith::AddIOp>(body, firstUnitOf(body, range), from);
    // Bounds of terms, counted from where the segment begins.
    Value unit = number(body, termsOfUnit);
    Value first = create<arith::MulIOp>(body, values[Table::Begin], unit);
    Value size = create<arith::MulIOp>(body, create<arith::SubIOp>(body, to, from), unit);
    auto inSegment = [&](Value bound, ReduceKind kind) {
      Value at = bound ? extremeOf(body, bound, range, kind) : zero;
      at = create<arith::MaxSIOp>(body, create<arith::SubIOp>(body, at, first), zero);
      return create<arith::MinSIOp>(body, at, size);
    };
    values[Table::Size] = inSegment(parts.end, ReduceKind::Max);
    if (parts.variesByRow) {
      values[Table::RowBegin] = inSegment(parts.begin, ReduceKind::Min);
      values[Table::AllBegin] = inSegment(parts.begin, ReduceKind::Max);
      values[Table::AllEnd] = inSegment(parts.end, ReduceKind::Min);
    }
    values[Table::First] = create<arith::AddIOp>(body, segment, rangeOfShare);
    values[Table::From] = create<arith::AddIOp>(body, segment, firstOf);
    values[Table::To] = create<arith::AddIOp>(body, segment, behind);
    for (Value &value : values)
      value = toInteger(body, value);
    YieldOp::create(body, loc, values);
  };
  return ComputeOp::create(builder, loc, StringRef("segment"), count,
                           SmallVector<Type>(names.size(), builder.getI32Type()),
                           llvm::to_vector_of<StringRef>(names), ArrayRef<SmallVector<unsigned>>{},
                           createBody);
}

/// Makes a mask of the bounds that rows have of their own, of which it is known for which terms it
/// holds for some and for all of them.
void Sharing::maskRows(ReduceOp copy, Value first, IRMapping &mapping, MaskRanges ranges) {
  SmallVector<Value> scores = findScores(copy);
  OpBuilder outside(copy), body = OpBuilder::atBlockBegin(copy.getBlock());
  copy.getLowerMutable()[0].set(number(outside, 0));
  ranges.index = copy.getIndex(0);
  Value at = arith::AddIOp::create(body, loc, first, ranges.index);
  auto compare = [&](arith::CmpIPredicate predicate, Value bound) -> Value {
    return arith::CmpIOp::create(body, loc, predicate, at, mapping.lookupOrDefault(bound));
  };
  ranges.holds = compare(arith::CmpIPredicate::slt, parts.end);
  if (parts.begin) {
    Value isBehind = compare(arith::CmpIPredicate::sge, parts.begin);
    ranges.holds = arith::AndIOp::create(body, loc, isBehind, ranges.holds);
  }
  maskScores(copy, scores, createMask(body, loc, ranges));
}

/// The states of all segments.
ComputeOp Sharing::createStates(ComputeOp segments) {
  OpBuilder builder(compute);
  SmallVector<StringRef> indices = {"segment"}, names;
  SmallVector<Value> extents = {segments.getExtents()[0]};
  SmallVector<unsigned> placeOf(compute.getNumIndices(), 0);
  for (unsigned p = 1; p < compute.getNumIndices(); ++p) {
    if (parts.isBatch(p))
      continue;
    placeOf[p] = indices.size();
    indices.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
    extents.push_back(compute.getExtents()[p]);
  }
  SmallVector<Type> types;
  SmallVector<SmallVector<unsigned>> over;
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    names.push_back(cast<StringAttr>(compute.getNames()[r]).getValue());
    types.push_back(cast<RankedTensorType>(compute.getResult(r).getType()).getElementType());
    over.emplace_back();
    for (unsigned p : compute.getIndicesOf(r))
      if (!parts.isBatch(p))
        over.back().push_back(placeOf[p]);
  }
  return ComputeOp::create(
      builder, loc, indices, extents, types, names, over,
      [&](OpBuilder &body, Location, ValueRange places) {
        Value segment =
            InSharesOp::create(body, loc, segments.getResult(Table::First), places[0], shares);
        Value unit = number(body, termsOfUnit);
        SmallVector<Value> values =
            takeApart(body, entry(body, segments.getResult(Table::Range), segment));
        auto load = [&](unsigned table) { return entry(body, segments.getResult(table), segment); };
        Value first = create<arith::MulIOp>(body, load(Table::Begin), unit);
        Value size = load(Table::Size);
        MaskRanges ranges;
        if (parts.variesByRow)
          ranges = {
              {}, {}, load(Table::RowBegin), size, load(Table::AllBegin), load(Table::AllEnd)};
        IRMapping mapping = mapBatch(values);
        mapping.map(compute.getIndex(0), segment);
        for (unsigned p = 1; p < compute.getNumIndices(); ++p)
          if (!parts.isBatch(p))
            mapping.map(compute.getIndex(p), places[placeOf[p]]);
        for (Operation &op : *compute.getBlock()) {
          if (&op == parts.offset) {
            mapping.map(parts.offset.getResult(), first);
            continue;
          }
          body.clone(op, mapping);
        }
        auto copy = mapping.lookup(parts.reduce.getResult(0)).getDefiningOp<ReduceOp>();
        copy.getUpperMutable()[0].set(size);
        if (parts.variesByRow)
          maskRows(copy, first, mapping, ranges);
      });
}

/// Has the readers go from a range's first segment to its last.
void Sharing::combine(ComputeOp states, ComputeOp segments) {
  // Shares begin in the middle of a range, and ranges in the middle of a share.
  const int64_t typical = llvm::divideCeil(shares, parts.mostBatch) + 1;
  for (ReduceOp reader : parts.readers) {
    OpBuilder builder(reader);
    reader->setAttr(typicalTermsAttrName, builder.getI64IntegerAttr(typical));
    SmallVector<LoadOp> loads;
    reader.walk([&](LoadOp load) {
      if (load.getTensor().getDefiningOp() == compute.getOperation())
        loads.push_back(load);
    });
    Value range = putTogether(builder, loads.front(), reader);
    reader.getLowerMutable()[0].set(entry(builder, segments.getResult(Table::From), range));
    reader.getUpperMutable()[0].set(entry(builder, segments.getResult(Table::To), range));
    for (LoadOp load : loads) {
      unsigned result = cast<OpResult>(load.getTensor()).getResultNumber();
      SmallVector<Value> at;
      for (auto [p, index] : llvm::zip_equal(compute.getIndicesOf(result), load.getIndices()))
        if (!parts.isBatch(p))
          at.push_back(index);
      OpBuilder before(load);
      Value moved = LoadOp::create(before, load.getLoc(), states.getResult(result), at, Value());
      load.replaceAllUsesWith(moved);
      load.erase();
    }
  }
}

void Sharing::apply() {
  OpBuilder builder(compute);
  numRanges = number(builder, 1);
  for (unsigned p : parts.batch)
    numRanges = create<arith::MulIOp>(builder, numRanges, compute.getExtents()[p]);
  if (parts.variesByRow)
    createExtremes();
  Value ends = createEnds();
  ComputeOp segments = createSegments(ends);
  ComputeOp states = createStates(segments);
  eraseDead(states);
  combine(states, segments);
  note(states, passName, Verdict::Derived,
       "the ranges of the " + describe(parts.reduce) +
           ", whose lengths a tensor holds, are cut into " + Twine(shares) + " equal work units");
  compute.erase();
}
