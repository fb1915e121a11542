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
#include "passes/tensor/split/SegmentTables.h"

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
      : parts(parts), tables(parts, shares), compute(parts.compute), shares(shares),
        loc(compute.getLoc()) {}

  void apply();

private:
  Value putTogether(OpBuilder &builder, LoadOp load, ReduceOp reader);
  void maskRows(ReduceOp copy, Value first, IRMapping &mapping, MaskRanges ranges);
  ComputeOp createStates(ComputeOp segments);
  void combine(ComputeOp states, ComputeOp segments);

  Value number(OpBuilder &builder, int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  template <typename Op> Value create(OpBuilder &builder, Value a, Value b) {
    return builder.createOrFold<Op>(loc, a, b);
  }

  PartStates &parts;
  SegmentTables tables;
  ComputeOp compute;
  int64_t shares;
  Location loc;
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
        Value segment = InSharesOp::create(body, loc, segments.getResult(SegmentTables::First),
                                           places[0], shares);
        Value unit = number(body, termsOfUnit);
        SmallVector<Value> values = tables.takeApart(
            body, tables.entry(body, segments.getResult(SegmentTables::Range), segment));
        auto load = [&](unsigned table) {
          return tables.entry(body, segments.getResult(table), segment);
        };
        Value first = create<arith::MulIOp>(body, load(SegmentTables::Begin), unit);
        Value size = load(SegmentTables::Size);
        MaskRanges ranges;
        if (parts.variesByRow)
          ranges = {{},
                    {},
                    load(SegmentTables::RowBegin),
                    size,
                    load(SegmentTables::AllBegin),
                    load(SegmentTables::AllEnd)};
        IRMapping mapping = tables.mapBatch(values);
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
    reader.getLowerMutable()[0].set(
        tables.entry(builder, segments.getResult(SegmentTables::From), range));
    reader.getUpperMutable()[0].set(
        tables.entry(builder, segments.getResult(SegmentTables::To), range));
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
  ComputeOp segments = tables.create();
  ComputeOp states = createStates(segments);
  eraseDead(states);
  combine(states, segments);
  note(states, passName, Verdict::Derived,
       "the ranges of the " + describe(parts.reduce) +
           ", whose lengths a tensor holds, are cut into " + Twine(shares) + " equal work units");
  compute.erase();
}
