//===- CountByDigits.cpp - counts of keys by matrix products --------------===//
//
// A histogram counts the elements whose key is the index of the result. As it is written, each
// element is compared with all keys. A key of two digits is compared with the values of each digit:
// 64 comparisons for 1024 keys. The counts are the product of two matrices of zeros and ones.
//
// 1. The pattern matches sums whose element is 1 if a key equals an index of the compute op, and
//    other conditions hold, else 0 (KeyedTerms.cpp).
// 2. The lower digit has a power of two of values, about the square root of the number of keys.
// 3. Elements are cut into parts. A compute op multiplies the ones of each part, in 8 bits.
// 4. The count is the sum over the parts. It is converted to the type of the result.
// 5. If two keys must equal two indices, as in the counts of pairs of labels, the keys are the
//    digits.
//
// The pattern declines if the comparisons with all keys take less time.
//
//   %y = tk.compute ["g"] {tk.reduce [sum] ["i"] {s[i] == g ? 1 : 0}}
//     =>
//   %t = tk.compute ["part", "high", "low"] {tk.reduce [sum] ["i"] from part * 2048 to .. {
//       (s[i] / 32 == high ? 1 : 0) * (s[i] mod 32 == low ? 1 : 0)}}
//   %y = tk.compute ["g"] {tk.reduce [sum] ["part"] {t[part, g / 32, g mod 32]}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/CountByDigits.h"
#include "passes/machine/limits/Keys.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/SortCost.h"
#include "passes/tensor/keys/KeyTests.h"
#include "passes/tensor/keys/KeyedTerms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:counts";
using namespace limits::count_by_digits;

namespace {

/// A count of the elements with a key.
struct KeyedCount {
  KeyedReduction keyed;
  std::optional<KeyedReduction> lower; ///< the same reduction by a second key, the lower digit
  Value condition; ///< under which an element is counted, with the tests of the key
};

class DigitCounting {
public:
  DigitCounting(KernelOp kernel, ComputeOp compute)
      : kernel(kernel), compute(compute), builder(compute), loc(compute.getLoc()),
        writer(builder, loc, cast<StringAttr>(compute.getNames()[0]).getValue()) {}

  bool pays(const KeyedCount &count);
  void rewrite(const KeyedCount &count);

private:
  Value storeParts(const KeyedCount &count);
  Value countOne(OpBuilder &at, const KeyedCount &count, ValueRange batches, Value element,
                 Value high, Value low);

  KernelOp kernel;
  ComputeOp compute;
  OpBuilder builder;
  Location loc;
  ComputeWriter writer;
  int64_t values = 0; ///< of the lower digit
  int64_t ofPart = 0; ///< elements
};

} // namespace

static std::optional<KeyedCount> matchCount(ComputeOp compute, ReduceOp reduce) {
  std::optional<KeyedReduction> keyed = matchKeyedReduction(compute, reduce);
  if (!keyed || keyed->readsGroup || reduce.getKind(0) != ReduceKind::Sum ||
      keyed->columns.size() > 1 || !keyed->rest.empty() ||
      keyed->key.indices.size() != keyed->key.numBatches + 1)
    return std::nullopt;
  Value condition = getCountedCondition(reduce.getYield().getValues()[0]);
  if (!condition)
    return std::nullopt;
  KeyedCount count{*keyed, std::nullopt, condition};
  if (keyed->columns.empty())
    return count;
  count.lower = matchKeyedReduction(compute, reduce, keyed->columns.front());
  const bool isPair = count.lower && !count.lower->readsGroup &&
                      count.lower->columns == SmallVector<unsigned>{keyed->group} &&
                      count.lower->key.indices == keyed->key.indices &&
                      count.lower->key.numBatches == 0 && keyed->key.numBatches == 0;
  return isPair ? std::optional(count) : std::nullopt;
}

/// Whether products of ones take less time than comparisons with all keys.
bool DigitCounting::pays(const KeyedCount &count) {
  const RowKey &key = count.keyed.key;
  auto isKnown = [&](Value extent) { return getSizeFact(kernel, extent).upper.has_value(); };
  if (!llvm::all_of(key.extents, isKnown) || !isKnown(key.numKeys))
    return false;
  if (count.lower && !isKnown(count.lower->key.numKeys))
    return false;
  const double lower = count.lower ? guessSize(kernel, count.lower->key.numKeys) : 1;
  const double keys = lower * guessSize(kernel, key.numKeys),
               rows = guessSize(kernel, key.extents.back());
  double batches = 1;
  for (Value extent : ArrayRef(key.extents).drop_back())
    batches *= guessSize(kernel, extent);
  constexpr double least = 16, most = 128;
  values = count.lower ? static_cast<int64_t>(std::max(lower, 1.0))
                       : static_cast<int64_t>(
                             std::clamp(std::exp2(std::round(std::log2(keys) / 2)), least, most));
  const double steps = std::ceil(rows * batches / partsOfElements / elementsOfStep);
  ofPart = static_cast<int64_t>(steps) * elementsOfStep;
  const double high = std::ceil(keys / static_cast<double>(values));
  const double counts =
      batches * std::ceil(rows / static_cast<double>(ofPart)) * high * static_cast<double>(values);
  const double compared = rows * batches * (high + static_cast<double>(values));
  const double plain = cost::countedTerm * rows * batches * keys;
  constexpr double launches = 2, bytesOfCount = 8;
  return launches * cost::launch + cost::digit * compared + cost::byte * bytesOfCount * counts <
             plain &&
         counts < std::numeric_limits<int32_t>::max();
}

/// The product of the ones of `element`, an index of the key's rows, for values of both digits.
Value DigitCounting::countOne(OpBuilder &at, const KeyedCount &count, ValueRange batches,
                              Value element, Value high, Value low) {
  const RowKey &key = count.keyed.key;
  IRMapping mapping;
  for (auto [index, batch] : llvm::zip_first(batches, key.indices))
    mapping.map(batch, index);
  mapping.map(key.indices.back(), element);
  Value holds = arith::ConstantOp::create(at, loc, at.getBoolAttr(true));
  for (Value test : count.keyed.tests)
    mapping.map(test, holds);
  if (count.lower)
    for (Value test : count.lower->tests)
      mapping.map(test, holds);
  auto keyOf = [&](const KeyedReduction &keyed) {
    Value own = cloneFrom(at, keyed.key.key, compute, mapping);
    return own.getType().isIndex()
               ? own
               : arith::IndexCastOp::create(at, loc, at.getIndexType(), own).getResult();
  };
  Value own = keyOf(count.keyed);
  Value condition = cloneFrom(at, count.condition, compute, mapping);
  auto one = [&](Value digit, Value value, Value also) -> Value {
    Value isValue = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, digit, value);
    if (also)
      isValue = arith::AndIOp::create(at, loc, isValue, also);
    // A number of 8 bits, and not a choice of 32 bits, is an operand of the matrix unit.
    Value chosen =
        arith::SelectOp::create(at, loc, isValue, writer.constant(at, 1), writer.constant(at, 0));
    chosen = arith::IndexCastOp::create(at, loc, at.getI8Type(), chosen);
    return arith::ExtSIOp::create(at, loc, at.getI32Type(), chosen);
  };
  if (count.lower)
    return arith::MulIOp::create(at, loc, one(own, high, condition),
                                 one(keyOf(*count.lower), low, {}));
  return arith::MulIOp::create(at, loc, one(writer.divide(at, own, values), high, condition),
                               one(writer.remainder(at, own, values), low, {}));
}

/// Stores the counts of each part by both digits.
Value DigitCounting::storeParts(const KeyedCount &count) {
  const RowKey &key = count.keyed.key;
  Value rows = key.extents.back(), size = writer.constant(builder, ofPart);
  SmallVector<StringRef> names;
  SmallVector<Value> extents(ValueRange(key.extents).drop_back());
  for (Value index : ArrayRef(key.indices).drop_back())
    names.push_back(getName(index));
  llvm::append_range(names, ArrayRef<StringRef>{"part", "high", "low"});
  auto quotient = [&](Value value, int64_t divisor) {
    Value raised =
        arith::AddIOp::create(builder, loc, value, writer.constant(builder, divisor - 1));
    return writer.divide(builder, raised, divisor);
  };
  extents.push_back(quotient(rows, ofPart));
  extents.push_back(count.lower ? key.numKeys : quotient(key.numKeys, values));
  extents.push_back(count.lower ? count.lower->key.numKeys : writer.constant(builder, values));
  const unsigned numBatches = key.numBatches;
  Type type = builder.getI32Type();
  return writer.define(".tally", names, extents, type, [&](OpBuilder &at, ValueRange all) -> Value {
    Value from = arith::MulIOp::create(at, loc, all[numBatches], size);
    Value to = arith::AddIOp::create(at, loc, from, size);
    to = arith::MinSIOp::create(at, loc, to, rows);
    return ReduceOp::create(at, loc, ReduceKind::Sum,
                            ArrayRef<StringRef>{getName(key.indices.back())}, ValueRange{from},
                            ValueRange{to}, type,
                            [&](OpBuilder &in, Location, ValueRange element) {
                              return countOne(in, count, all.take_front(numBatches), element[0],
                                              all[numBatches + 1], all[numBatches + 2]);
                            })
        .getResult(0);
  });
}

void DigitCounting::rewrite(const KeyedCount &count) {
  ReduceOp reduce = count.keyed.reduce;
  const RowKey &key = count.keyed.key;
  const std::string how =
      "two digits of its key, of which the lower one has " + std::to_string(values) + " values";
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " counts by " + (count.lower ? "its two keys" : how));
  Value parts = storeParts(count);
  Value numParts = parts.getDefiningOp<ComputeOp>().getExtents()[key.numBatches];
  OpBuilder at(reduce);
  Value group = compute.getIndex(count.keyed.group);
  Value high = group;
  Value low = count.lower ? Value(compute.getIndex(count.lower->group)) : Value();
  if (!count.lower) {
    high = writer.divide(at, group, values);
    low = writer.remainder(at, group, values);
  }
  Value total =
      ReduceOp::create(at, loc, ReduceKind::Sum, ArrayRef<StringRef>{"part"},
                       ValueRange{writer.constant(at, 0)}, ValueRange{numParts}, at.getI32Type(),
                       [&](OpBuilder &in, Location, ValueRange part) -> Value {
                         SmallVector<Value> indices(
                             ValueRange(key.indices).take_front(key.numBatches));
                         llvm::append_range(indices, ValueRange{part[0], high, low});
                         return LoadOp::create(in, loc, parts, indices, Value());
                       })
          .getResult(0);
  replaceByTotal(at, reduce, total);
}

unsigned tk::countByDigits(KernelOp kernel) {
  unsigned numCounts = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>())) {
    if (replacesParameter(kernel, compute))
      continue;
    bool isChanged = false;
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>())) {
      KeyTests tests(compute, reduce);
      std::optional<KeyedCount> count = matchCount(compute, reduce);
      DigitCounting counting(kernel, compute);
      if (!count || !counting.pays(*count)) {
        tests.restore();
        continue;
      }
      counting.rewrite(*count);
      isChanged = true;
      ++numCounts;
    }
    if (isChanged)
      eraseDead(compute);
  }
  return numCounts;
}
