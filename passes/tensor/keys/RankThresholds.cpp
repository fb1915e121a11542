//===- RankThresholds.cpp - ranks that are compared with a limit ----------===//
//
// Top-p and top-k keep the elements of a row whose larger elements have a sum below a limit. The
// sum does not fall from an element to the next smaller one. So each row has a threshold, and an
// element is kept if its key is on the right side of it. No element needs its own sum.
//
// 1. The pattern matches a sum or a count of ranked terms (RankedTerms.cpp) that comparisons with
//    a limit of the row alone read (LimitedRanks.cpp). No term is negative.
// 2. Keys become integers in their order (RankTest.cpp). The threshold is the last integer whose
//    sum of the terms before it is on the same side of the limit as an empty sum.
// 3. It is found digit by digit. A step computes the sums for all values of a digit, in parts of
//    the row, and counts those on that side.
//
// The pattern declines if the sorted terms or all comparisons (SumByRank.cpp) take less time. The
// number of bits of a digit is the fastest one.
//
//   %y = tk.compute ["v"] {tk.reduce [sum] ["u"] {a[u] > a[v] ? w[u] : 0} < p ? a[v] : 0}
//     =>
//   %s0 = tk.compute ["part", "digit"] {tk.reduce [sum] ["u"] {order(a[u]) < x ? w[u] : 0}}
//       with x = -2^31 - 1 + (digit + 1) * 2^28
//   %t0 = tk.compute [] {-2^31 - 1 + 2^28 * tk.reduce [sum] ["digit"] {sum of s0[.., digit] < p}}
//   …   seven more digits
//   %y = tk.compute ["v"] {order(a[v]) <= t7 ? a[v] : 0}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/RankThresholds.h"
#include "passes/machine/limits/Keys.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/tensor/keys/KeyTests.h"
#include "passes/tensor/keys/LimitedRanks.h"
#include "passes/tensor/keys/RankTimes.h"
#include "passes/tensor/keys/RowKey.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace tk;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:thresholds";

namespace {

/// A term counts if its key, or the order of its key, is on one side of `bound`.
struct DigitTest {
  Value bound;
  std::optional<CmpFPredicate> predicate; ///< none: the order is at most `bound`, an i32
};

/// Finds thresholds in one compute op.
class ThresholdFinder {
public:
  ThresholdFinder(KernelOp kernel, ComputeOp compute, const LimitedRank &limited)
      : kernel(kernel), compute(compute), ranked(limited.ranked), order(limited.order),
        tests(limited.tests), positions(limited.positions), builder(compute), loc(ranked.loc),
        prefix(cast<StringAttr>(compute.getNames()[0]).getValue()), writer(builder, loc, prefix) {
    for (unsigned p : positions) {
      names.push_back(getName(compute.getIndex(p)));
      extents.push_back(compute.getExtents()[p]);
    }
  }

  bool pays();
  void replace();

private:
  Value orderOf(OpBuilder &at, Value value, bool isKey);
  IRMapping mapRow(ValueRange indices);
  Value sumsOfParts(Value last, int64_t step);
  Value nextDigit(const LimitTest &test, Value last, Value sums, int64_t step);
  Value boundOfDigit(OpBuilder &at, Value last, Value digit, int64_t step);
  DigitTest testOfDigit(OpBuilder &at, Value last, Value digit, int64_t step);
  Value isCounted(OpBuilder &at, Value key, const DigitTest &test);
  void storeKeys();
  Value keyAt(OpBuilder &at, ValueRange row, Value u, IRMapping &mapping);
  Value lastOf(OpBuilder &at, Value last, ValueRange indices);
  Value boundAt(OpBuilder &at, const LimitTest &test);

  KernelOp kernel;
  ComputeOp compute;
  RankedReduction ranked;
  KeyOrder order;
  SmallVector<LimitTest> tests;
  SmallVector<unsigned> positions; ///< of the indices of a row
  SmallVector<StringRef> names;    ///< of those
  SmallVector<Value> extents;      ///< of those
  OpBuilder builder;
  Location loc;
  std::string prefix;
  ComputeWriter writer;
  RankTimes times;
  Value storedKeys;   ///< null: the keys are elements of a tensor
  int64_t ofPart = 0; ///< terms of a part
  Value numParts;
};

} // namespace

//===----------------------------------------------------------------------===//
// The time
//===----------------------------------------------------------------------===//

bool ThresholdFinder::pays() {
  std::optional<RankTimes> predicted = predictRanks(kernel, compute, ranked, order.bits);
  if (!predicted)
    return false;
  times = *predicted;
  const double searched = times.threshold * static_cast<double>(tests.size());
  const double other = std::min(times.sorted, times.compared);
  const bool isFaster = searched < other;
  note(ranked.reduce, passName, isFaster ? Verdict::Derived : Verdict::Declined,
       "the " + describe(ranked.reduce) +
           (isFaster ? " is not computed: elements compare with a threshold of their row: "
                     : " is computed, and no threshold of its row: ") +
           Twine(llvm::formatv("{0:F1} us are predicted by thresholds, {1:F1} us by sums",
                               searched / 1000, other / 1000)
                     .str()));
  return isFaster;
}

//===----------------------------------------------------------------------===//
// The steps
//===----------------------------------------------------------------------===//

/// The order of a key or a bound, an i64.
Value ThresholdFinder::orderOf(OpBuilder &at, Value value, bool isKey) {
  Value number = tk::orderOf(at, loc, ranked.test, value, isKey);
  if (order.shift == 0)
    return number;
  Value shift = arith::ConstantOp::create(at, loc, at.getI64IntegerAttr(order.shift));
  return arith::ShRSIOp::create(at, loc, number, shift);
}

IRMapping ThresholdFinder::mapRow(ValueRange indices) {
  IRMapping mapping;
  for (auto [p, index] : llvm::zip(positions, indices))
    mapping.map(compute.getIndex(p), index);
  return mapping;
}

/// The last order whose sum is known to be on the side of an empty sum.
Value ThresholdFinder::lastOf(OpBuilder &at, Value last, ValueRange indices) {
  return last ? LoadOp::create(at, loc, last, indices, Value()).getResult()
              : arith::ConstantOp::create(at, loc, at.getI64IntegerAttr(order.beforeAll));
}

/// The last order of the terms that count for a value of the digit, an i64 of all 32 bits.
Value ThresholdFinder::boundOfDigit(OpBuilder &at, Value last, Value digit, int64_t step) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(at, loc, at.getI64IntegerAttr(value));
  };
  Value steps = arith::IndexCastOp::create(at, loc, at.getI64Type(), digit);
  steps = arith::AddIOp::create(at, loc, steps, number(1));
  Value bound = arith::MulIOp::create(at, loc, steps, number(step));
  bound = arith::AddIOp::create(at, loc, bound, last);
  if (!ranked.test.isInclusive)
    bound = arith::SubIOp::create(at, loc, bound, number(1));
  if (order.shift == 0)
    return bound;
  bound = arith::ShLIOp::create(at, loc, bound, number(order.shift));
  return arith::OrIOp::create(at, loc, bound, number((int64_t(1) << order.shift) - 1));
}

/// The test of a term for a value of the digit.
DigitTest ThresholdFinder::testOfDigit(OpBuilder &at, Value last, Value digit, int64_t step) {
  Value bound = boundOfDigit(at, last, digit, step);
  if (isa<FloatType>(order.key.getType())) {
    OrderTest test = notAbove(at, loc, ranked.test, bound);
    return {test.bound, test.predicate};
  }
  Value most = arith::ConstantOp::create(at, loc, at.getI64IntegerAttr(INT32_MAX));
  bound = arith::MinSIOp::create(at, loc, bound, most);
  return {arith::TruncIOp::create(at, loc, at.getI32Type(), bound), std::nullopt};
}

/// Does a term with the key `key` count?
Value ThresholdFinder::isCounted(OpBuilder &at, Value key, const DigitTest &test) {
  if (test.predicate) {
    if (!key.getType().isF32())
      key = arith::ExtFOp::create(at, loc, at.getF32Type(), key);
    return arith::CmpFOp::create(at, loc, *test.predicate, key, test.bound);
  }
  Value number = orderOf(at, key, /*isKey=*/true);
  number = at.createOrFold<arith::TruncIOp>(loc, at.getI32Type(), number);
  return arith::CmpIOp::create(at, loc, CmpIPredicate::sle, number, test.bound);
}

/// The sums of the terms of each part before each value of a digit.
Value ThresholdFinder::sumsOfParts(Value last, int64_t step) {
  SmallVector<StringRef> ownNames = names;
  llvm::append_range(ownNames, ArrayRef<StringRef>{"part", "digit"});
  SmallVector<Value> ownExtents = extents;
  ownExtents.push_back(numParts);
  ownExtents.push_back(writer.constant(builder, int64_t(1) << times.bitsOfDigit));
  Type type = ranked.getType();
  return writer.define(".sums", ownNames, ownExtents, type, [&](OpBuilder &at, ValueRange indices) {
    ValueRange row = indices.drop_back(2);
    const DigitTest test = testOfDigit(at, lastOf(at, last, row), indices.back(), step);
    Value length = writer.constant(at, ofPart);
    Value first = arith::MulIOp::create(at, loc, indices.drop_back().back(), length);
    Value end = arith::AddIOp::create(at, loc, first, length);
    end = arith::MinSIOp::create(at, loc, end, ranked.numTerms);
    auto term = [&](OpBuilder &in, Location, ValueRange u) -> Value {
      IRMapping mapping = mapRow(row);
      mapping.map(ranked.term, u[0]);
      Value counts = isCounted(in, keyAt(in, row, u[0], mapping), test);
      for (Value condition : ranked.conditions)
        counts = arith::AndIOp::create(in, loc, counts, cloneFrom(in, condition, compute, mapping));
      Value weight = ranked.weight ? cloneFrom(in, ranked.weight, compute, mapping)
                                   : arith::ConstantOp::create(in, loc, in.getI32IntegerAttr(1));
      return arith::SelectOp::create(in, loc, counts, weight,
                                     createIdentity(in, loc, ReduceKind::Sum, type));
    };
    return ReduceOp::create(at, loc, ReduceKind::Sum, ArrayRef<StringRef>{"u"}, ValueRange{first},
                            ValueRange{end}, type, term)
        .getResult(0);
  });
}

/// The last order that is known to be on the side of an empty sum, with one more digit.
Value ThresholdFinder::nextDigit(const LimitTest &test, Value last, Value sums, int64_t step) {
  Type wide = builder.getI64Type(), type = ranked.getType();
  const Type resultType = ReduceOp(ranked.reduce).getResult(0).getType();
  return writer.define(".last", names, extents, wide, [&](OpBuilder &at, ValueRange row) -> Value {
    auto isOnSide = [&](OpBuilder &in, Location, ValueRange digit) -> Value {
      auto partAt = [&](OpBuilder &inPart, Location, ValueRange part) -> Value {
        SmallVector<Value> indices(row);
        llvm::append_range(indices, ValueRange{part[0], digit[0]});
        return LoadOp::create(inPart, loc, sums, indices, Value());
      };
      Value total =
          ReduceOp::create(in, loc, ReduceKind::Sum, ArrayRef<StringRef>{"part"},
                           ValueRange{writer.constant(in, 0)}, ValueRange{numParts}, type, partAt)
              .getResult(0);
      if (type != resultType)
        total = convertTotal(in, loc, total, resultType);
      IRMapping mapping;
      for (auto [p, index] : llvm::zip_equal(positions, row))
        mapping.map(test.indices[p], index);
      mapping.map(test.sum, total);
      Value holds = cloneFrom(in, test.compare->getResult(0), test.getCompute(), mapping);
      Value one = arith::ConstantOp::create(in, loc, in.getI32IntegerAttr(1));
      Value none = arith::ConstantOp::create(in, loc, in.getI32IntegerAttr(0));
      return arith::SelectOp::create(in, loc, holds, test.isBelow ? one : none,
                                     test.isBelow ? none : one);
    };
    Value digits = writer.constant(at, int64_t(1) << times.bitsOfDigit);
    Value count = ReduceOp::create(at, loc, ReduceKind::Sum, ArrayRef<StringRef>{"digit"},
                                   ValueRange{writer.constant(at, 0)}, ValueRange{digits},
                                   at.getI32Type(), isOnSide)
                      .getResult(0);
    count = arith::ExtSIOp::create(at, loc, wide, count);
    Value width = arith::ConstantOp::create(at, loc, at.getI64IntegerAttr(step));
    count = arith::MulIOp::create(at, loc, count, width);
    return arith::AddIOp::create(at, loc, lastOf(at, last, row), count);
  });
}

/// The bound of the element that `test` compares.
Value ThresholdFinder::boundAt(OpBuilder &at, const LimitTest &test) {
  IRMapping mapping;
  if (storedKeys && order.boundIndex) {
    SmallVector<Value> indices;
    for (unsigned p : ranked.batches)
      indices.push_back(test.indices[p]);
    indices.push_back(test.indices[*order.boundIndex]);
    return LoadOp::create(at, loc, storedKeys, indices, Value());
  }
  // The bound may stand in the reduction.
  if (test.getCompute() == compute)
    return cloneSlice(at, order.bound, ReduceOp(ranked.reduce).getBlock(), mapping);
  mapping.map(ValueRange(compute.getBlock()->getArguments()), ValueRange(test.indices));
  return cloneFrom(at, order.bound, compute, mapping);
}

/// Stores keys that are computed. Each step reads them, and a bound that is a key has the same
/// bits.
void ThresholdFinder::storeKeys() {
  if (order.key.getDefiningOp<LoadOp>())
    return;
  SmallVector<StringRef> ownNames;
  SmallVector<Value> ownExtents;
  for (unsigned p : ranked.batches) {
    ownNames.push_back(getName(compute.getIndex(p)));
    ownExtents.push_back(compute.getExtents()[p]);
  }
  ownNames.push_back("u");
  ownExtents.push_back(ranked.numTerms);
  storedKeys = writer.define(".keys", ownNames, ownExtents, order.key.getType(),
                             [&](OpBuilder &at, ValueRange indices) {
                               IRMapping mapping = mapRow(indices);
                               mapping.map(ranked.term, indices.back());
                               return cloneFrom(at, order.key, compute, mapping);
                             });
}

/// The key of the term `u` of the row `row`.
Value ThresholdFinder::keyAt(OpBuilder &at, ValueRange row, Value u, IRMapping &mapping) {
  if (!storedKeys)
    return cloneFrom(at, order.key, compute, mapping);
  SmallVector<Value> indices(row.take_front(ranked.batches.size()));
  indices.push_back(u);
  Value key = LoadOp::create(at, loc, storedKeys, indices, Value());
  mapping.map(order.key, key);
  ScalarEquality equality;
  if (ranked.weight && equality.equal(ranked.weight, order.key))
    mapping.map(ranked.weight, key);
  return key;
}

void ThresholdFinder::replace() {
  using namespace limits::rank_thresholds;
  storeKeys();
  double rows = 1;
  for (Value extent : extents)
    rows *= guessSize(kernel, extent);
  // A block has the sums for several values of the digit.
  const double blocks = rows * std::max(1.0, std::exp2(times.bitsOfDigit) / valuesOfBlock);
  const double parts = std::max(1.0, std::ceil(blocksOfStep / blocks));
  const double terms = std::max(1.0, guessSize(kernel, ranked.numTerms));
  ofPart = llvm::alignTo(static_cast<int64_t>(std::ceil(terms / parts)), termsOfStep);
  for (const LimitTest &test : tests) {
    builder.setInsertionPoint(test.getCompute());
    writer = ComputeWriter(builder, loc, prefix);
    Value raised =
        arith::AddIOp::create(builder, loc, ranked.numTerms, writer.constant(builder, ofPart - 1));
    numParts = writer.divide(builder, raised, ofPart);
    Value last;
    for (int64_t left = order.bits; left > 0;) {
      left = std::max<int64_t>(left - times.bitsOfDigit, 0);
      const int64_t step = int64_t(1) << left;
      last = nextDigit(test, last, sumsOfParts(last, step), step);
    }
    OpBuilder at(test.compare);
    SmallVector<Value> row;
    for (unsigned p : positions)
      row.push_back(test.indices[p]);
    Value bound = boundAt(at, test);
    const CmpIPredicate predicate = test.isBelow ? CmpIPredicate::sle : CmpIPredicate::sgt;
    Value isKept = arith::CmpIOp::create(at, loc, predicate, orderOf(at, bound, /*isKey=*/false),
                                         lastOf(at, last, row));
    test.compare->getResult(0).replaceAllUsesWith(isKept);
    if (test.getCompute() != compute)
      eraseDead(test.getCompute());
  }
}

unsigned tk::findThresholds(KernelOp kernel) {
  unsigned count = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>())) {
    if (replacesParameter(kernel, compute))
      continue;
    unsigned ofCompute = 0;
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>())) {
      std::optional<RankedReduction> ranked = matchRankedReduction(compute, reduce);
      if (!ranked)
        continue;
      std::optional<LimitedRank> limited = matchLimitedRank(compute, *ranked);
      if (!limited)
        continue;
      ThresholdFinder finder(kernel, compute, *limited);
      if (!finder.pays())
        continue;
      finder.replace();
      ++ofCompute;
    }
    if (ofCompute > 0 && compute->use_empty())
      compute.erase();
    else if (ofCompute > 0)
      eraseDead(compute);
    count += ofCompute;
  }
  return count;
}
