//===- SumByRank.cpp - sums of the terms below a bound --------------------===//
//
// A rank is the number of elements of a row that are smaller than an element. As it is written,
// each element is compared with all others. In the order of the elements it is a place.
//
// 1. The pattern matches sums, counts, maxima, minima and `any` over one index, whose term is the
//    identity of the reduction unless a key at that index compares with a bound that does not
//    depend on it (RankedTerms.cpp). Both may depend on indices of a batch. Other conditions, which
//    do not depend on the indices of the bound alone, are part of the term.
// 2. The keys are cut into chunks that a block sorts (SortedRow.h). A number has the key and the
//    index of its term. Reductions with one key share the sorted chunks.
// 3. A compute op scans the terms of each chunk in the order of the keys. A count needs none.
// 4. The reduction goes over the chunks. A binary search finds the place of the bound in each of
//    them, and the scan has the reduction of the terms before that place.
//
// A reduction of pairs, as in a count of pairs in order, becomes a reduction over one of their
// indices and one of the results (RankedPairs.cpp).
//
// Terms that are summed come first in the order, so that no sum is a difference of two. A key that
// is NaN is the last one, and no key comes before a bound that is NaN.
//
// The pattern declines if all comparisons take less time.
//
//   %y = tk.compute ["v"] {tk.reduce [sum] ["u"] {a[u] < b[v] ? w[u] : 0}}
//     =>
//   %o = tk.compute ["chunk", "r"] {the number of rank r among those of a[chunk * 4096 + j], j}
//   %s = tk.compute ["chunk", "r"] {tk.scan sum "k" at r {w[index(o[chunk, k])]}}
//   %y = tk.compute ["v"] {tk.reduce [sum] ["chunk"] {s[chunk, place(chunk) - 1]}}
//       with place(chunk) = the numbers of o[chunk] that come before the limit of b[v]
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/SumByRank.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SortedRow.h"
#include "passes/tensor/keys/KeyTests.h"
#include "passes/tensor/keys/RankTimes.h"
#include "passes/tensor/keys/RankedPairs.h"
#include "passes/tensor/keys/RankedTerms.h"
#include "passes/tensor/keys/RowKey.h"

#include "llvm/Support/FormatVariadic.h"

#include <deque>

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:ranks";

namespace {

/// Sorted chunks of the keys of a row.
struct SortedKeys {
  RankTest test;              ///< with the key in the body of the compute op
  SmallVector<Value> indices; ///< there, of the batches
  Value term;                 ///< there, the index of the term
  Value numTerms, numChunks, sorted;
  int64_t ofChunk = 0;
};

/// Rewrites reductions of one kernel.
class RankSumming {
public:
  explicit RankSumming(KernelOp kernel) : kernel(kernel) {}
  unsigned rewrite(ComputeOp compute);

private:
  bool rewritePairs(ComputeOp compute, ReduceOp reduce);
  bool pays(ComputeOp compute, const RankedReduction &ranked);
  const SortedKeys &sort(ComputeOp compute, const RankedReduction &ranked);
  const SortedKeys *find(ComputeOp compute, const RankedReduction &ranked);
  Value scan(ComputeOp compute, const RankedReduction &ranked, const SortedKeys &keys);
  void replace(ComputeOp compute, const RankedReduction &ranked);

  KernelOp kernel;
  std::deque<SortedKeys> all;
  int64_t ofChunk = 0; ///< terms of a chunk, as `pays` has chosen
};

} // namespace

//===----------------------------------------------------------------------===//
// The time
//===----------------------------------------------------------------------===//

/// Decides whether the sorted terms take less time, and chooses the length of a chunk.
bool RankSumming::pays(ComputeOp compute, const RankedReduction &ranked) {
  std::optional<RankTimes> times = predictRanks(kernel, compute, ranked);
  if (!times)
    return false;
  ofChunk = times->ofChunk;
  ReduceOp reduce = ranked.reduce;
  const bool isFaster = times->sorted < times->compared;
  note(reduce, passName, isFaster ? Verdict::Derived : Verdict::Declined,
       "the " + describe(reduce) +
           (isFaster ? " reads sums of sorted terms: " : " compares all terms with all bounds: ") +
           Twine(llvm::formatv("{0:F1} us are predicted sorted, {1:F1} us compared",
                               times->sorted / 1000, times->compared / 1000)
                     .str()));
  return isFaster;
}

//===----------------------------------------------------------------------===//
// The sorted terms
//===----------------------------------------------------------------------===//

/// Sorted chunks of the same keys in the same order, if there are any.
const SortedKeys *RankSumming::find(ComputeOp compute, const RankedReduction &ranked) {
  for (const SortedKeys &keys : all) {
    if (keys.ofChunk != ofChunk || keys.indices.size() != ranked.batches.size() ||
        keys.test.isDescending != ranked.test.isDescending ||
        keys.test.isBackward != ranked.test.isBackward ||
        keys.test.isUnsigned != ranked.test.isUnsigned ||
        !isSameExtent(keys.numTerms, ranked.numTerms))
      continue;
    ScalarEquality equality;
    bool isSame = true;
    auto sorted = keys.sorted.getDefiningOp<ComputeOp>();
    for (auto [n, p] : llvm::enumerate(ranked.batches)) {
      equality.identify(keys.indices[n], compute.getIndex(p));
      isSame &= isSameExtent(sorted.getExtents()[n], compute.getExtents()[p]);
    }
    equality.identify(keys.term, ranked.term);
    if (isSame && equality.equal(keys.test.key, ranked.test.key))
      return &keys;
  }
  return nullptr;
}

/// The chunk's place `place` as an index of the row.
static Value termOf(OpBuilder &at, Location loc, Value chunk, Value place, int64_t ofChunk) {
  Value size = arith::ConstantIndexOp::create(at, loc, ofChunk);
  return arith::AddIOp::create(at, loc, arith::MulIOp::create(at, loc, chunk, size).getResult(),
                               place);
}

/// Stores the numbers of the keys in the order of each chunk.
const SortedKeys &RankSumming::sort(ComputeOp compute, const RankedReduction &ranked) {
  if (const SortedKeys *keys = find(compute, ranked))
    return *keys;
  OpBuilder builder(compute);
  Location loc = ranked.loc;
  ComputeWriter writer(builder, loc, cast<StringAttr>(compute.getNames()[0]).getValue());
  SortedKeys &keys = all.emplace_back();
  keys.test = ranked.test;
  keys.numTerms = ranked.numTerms;
  keys.ofChunk = ofChunk;
  Value raised =
      arith::AddIOp::create(builder, loc, ranked.numTerms, writer.constant(builder, ofChunk - 1));
  keys.numChunks = writer.divide(builder, raised, ofChunk);
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  for (unsigned p : ranked.batches) {
    names.push_back(getName(compute.getIndex(p)));
    extents.push_back(compute.getExtents()[p]);
  }
  llvm::append_range(names, ArrayRef<StringRef>{"chunk", "r"});
  extents.push_back(keys.numChunks);
  extents.push_back(writer.constant(builder, ofChunk));
  Type type = builder.getI64Type();
  keys.sorted = writer.define(
      ".sorted", names, extents, type, [&](OpBuilder &at, ValueRange indices) -> Value {
        ValueRange batches = indices.drop_back(2);
        keys.indices.assign(batches.begin(), batches.end());
        Value chunk = indices.drop_back().back();
        auto numberAt = [&](OpBuilder &in, Value place) -> Value {
          Value term = termOf(in, loc, chunk, place, ofChunk);
          Value last = arith::SubIOp::create(in, loc, ranked.numTerms, writer.constant(in, 1));
          Value inside = arith::MinSIOp::create(in, loc, term, last);
          IRMapping mapping;
          for (auto [p, index] : llvm::zip_equal(ranked.batches, keys.indices))
            mapping.map(compute.getIndex(p), index);
          mapping.map(ranked.term, inside);
          keys.test.key = cloneFrom(in, ranked.test.key, compute, mapping);
          keys.term = inside;
          Value number = numberOf(in, loc, ranked.test, keys.test.key, inside);
          Value isTerm = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::sle, term, last);
          Value none = createIdentity(in, loc, ReduceKind::Min, type);
          return arith::SelectOp::create(in, loc, isTerm, number, none);
        };
        return createSortedRow(at, loc, ofChunk, indices.back(), numberAt);
      });
  gpu::changePlan(keys.sorted.getDefiningOp(),
                  [](gpu::KernelPlan &plan) { plan.family = gpu::PlanFamily::RowReduction; });
  return keys;
}

/// Stores the reductions of the terms of each chunk up to each place.
Value RankSumming::scan(ComputeOp compute, const RankedReduction &ranked, const SortedKeys &keys) {
  OpBuilder builder(compute);
  Location loc = ranked.loc;
  ComputeWriter writer(builder, loc, cast<StringAttr>(compute.getNames()[0]).getValue());
  SmallVector<unsigned> positions(ranked.batches);
  llvm::append_range(positions, ranked.columns);
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  for (unsigned p : positions) {
    names.push_back(getName(compute.getIndex(p)));
    extents.push_back(compute.getExtents()[p]);
  }
  llvm::append_range(names, ArrayRef<StringRef>{"chunk", "r"});
  extents.push_back(keys.numChunks);
  extents.push_back(writer.constant(builder, keys.ofChunk));
  const ReduceKind kind = ranked.getKind();
  Type type = ranked.getType();
  auto termAt = [&](OpBuilder &in, ValueRange indices, Value place) -> Value {
    SmallVector<Value> own(indices.take_front(ranked.batches.size()));
    llvm::append_range(own, ValueRange{indices.drop_back().back(), place});
    Value number = LoadOp::create(in, loc, keys.sorted, own, Value());
    Value none = createIdentity(in, loc, ReduceKind::Min, number.getType());
    Value counts = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::slt, number, none);
    Value term = indexOf(in, loc, ranked.test, number);
    term = arith::SelectOp::create(in, loc, counts, term, writer.constant(in, 0));
    IRMapping mapping;
    for (auto [p, index] : llvm::zip_first(positions, indices))
      mapping.map(compute.getIndex(p), index);
    mapping.map(ranked.term, term);
    for (Value condition : ranked.conditions)
      counts = arith::AndIOp::create(in, loc, counts, cloneFrom(in, condition, compute, mapping));
    Value weight = ranked.weight
                       ? cloneFrom(in, ranked.weight, compute, mapping)
                       : arith::ConstantOp::create(in, loc, in.getI32IntegerAttr(1)).getResult();
    return arith::SelectOp::create(in, loc, counts, weight, createIdentity(in, loc, kind, type));
  };
  return writer.define(".upto", names, extents, type,
                       [&](OpBuilder &at, ValueRange indices) -> Value {
                         return ScanOp::create(at, loc, kind, "k", writer.constant(at, 0),
                                               extents.back(), indices.back(), type,
                                               [&](OpBuilder &in, Location, ValueRange k) -> Value {
                                                 return termAt(in, indices, k[0]);
                                               })
                             .getResult();
                       });
}

//===----------------------------------------------------------------------===//
// The result
//===----------------------------------------------------------------------===//

void RankSumming::replace(ComputeOp compute, const RankedReduction &ranked) {
  const SortedKeys &keys = sort(compute, ranked);
  const bool isCount = ranked.isCount();
  Value upTo = isCount ? Value() : scan(compute, ranked, keys);
  ReduceOp reduce = ranked.reduce;
  Location loc = reduce.getLoc();
  OpBuilder builder(reduce);
  ComputeWriter writer(builder, loc, "");
  const ReduceKind kind = ranked.getKind();
  Type type = ranked.getType();
  RankTest test = ranked.test;
  IRMapping outside;
  for (Value *value : {&test.bound, &test.tie})
    if (*value)
      *value = cloneSlice(builder, *value, reduce.getBlock(), outside);
  Value limit = limitOf(builder, loc, test);
  auto ofChunk = [&](OpBuilder &at, Value chunk) -> Value {
    SmallVector<Value> own;
    for (unsigned p : ranked.batches)
      own.push_back(compute.getIndex(p));
    Value none = createIdentity(at, loc, ReduceKind::Min, at.getI64Type());
    Value place = writer.countLeading(at, keys.ofChunk, [&](OpBuilder &in, Value last) {
      SmallVector<Value> indices = own;
      llvm::append_range(indices, ValueRange{chunk, last});
      Value number = LoadOp::create(in, loc, keys.sorted, indices, none);
      return isBefore(in, loc, test, number, limit);
    });
    if (isCount) {
      // The largest number may be that of a key.
      Value first = termOf(at, loc, chunk, writer.constant(at, 0), keys.ofChunk);
      Value terms = arith::SubIOp::create(at, loc, keys.numTerms, first);
      return writer.word(at, arith::MinSIOp::create(at, loc, place, terms));
    }
    for (unsigned p : ranked.columns)
      own.push_back(compute.getIndex(p));
    Value before = arith::SubIOp::create(at, loc, place, writer.constant(at, 1));
    llvm::append_range(own, ValueRange{chunk, before});
    return LoadOp::create(at, loc, upTo, own, createIdentity(at, loc, kind, type));
  };
  Value total =
      ReduceOp::create(
          builder, loc, kind, ArrayRef<StringRef>{"chunk"}, ValueRange{writer.constant(builder, 0)},
          ValueRange{keys.numChunks}, type,
          [&](OpBuilder &at, Location, ValueRange chunk) { return ofChunk(at, chunk[0]); })
          .getResult(0);
  if (reduce.getKind(0) == ReduceKind::Any) {
    Value zero = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
    total = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, total, zero);
  }
  replaceByTotal(builder, reduce, total);
}

/// Stores reductions over the key's index of a reduction of pairs, if those are rewritten.
bool RankSumming::rewritePairs(ComputeOp compute, ReduceOp reduce) {
  std::optional<RankedPairs> pairs = matchRankedPairs(compute, reduce);
  if (!pairs)
    return false;
  ComputeOp inner = storeInner(compute, *pairs);
  if (rewrite(inner) == 0) {
    inner.erase();
    return false;
  }
  reduceStored(compute, *pairs, inner);
  return true;
}

unsigned RankSumming::rewrite(ComputeOp compute) {
  unsigned count = 0;
  for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
    if (std::optional<RankedReduction> ranked = matchRankedReduction(compute, reduce);
        ranked && pays(compute, *ranked)) {
      replace(compute, *ranked);
      ++count;
    } else if (rewritePairs(compute, reduce)) {
      ++count;
    }
  if (count > 0)
    eraseDead(compute);
  return count;
}

unsigned tk::sumByRank(KernelOp kernel) {
  RankSumming summing(kernel);
  unsigned count = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
    if (!replacesParameter(kernel, compute))
      count += summing.rewrite(compute);
  return count;
}
