//===- SumByKey.cpp - sums by a key in shared memory ----------------------===//
//
// A block that has a sum for each key in shared memory reads each element once. Sums of integers do
// not depend on the order of their terms, so that threads add atomically. Sums of floats have a
// fixed order: each warp has sums of its own, and lanes with one key add one after the other.
//
// 1. The pattern matches sums of i32 and f32, and counts of any type, whose term is 0 unless a key
//    equals an index of the compute op, or two keys equal two indices (KeyedTerms.cpp).
// 2. A bin is a key with the values of the other indices that the term depends on: the second key,
//    and the columns of the summed tensor.
// 3. Elements are cut into parts. A compute op of the family `histogram` sums each part by bin.
// 4. The result is the sum over the parts. A count is converted to the type of the result.
//
// The pattern declines if the comparisons with all keys take less time, or sorting the elements
// (SortTerms.cpp).
//
//   %y = tk.compute ["g", "c"] {tk.reduce [sum] ["i"] {s[i] == g ? x[i, c] : 0}}
//     =>
//   %t = tk.compute ["part", "bin"] {tk.reduce [sum] ["i", "c"] from (part * 4096, 0) to .. {
//       s[i] * C + c == bin and 0 <= s[i] < G ? x[i, c] : 0}}
//   %y = tk.compute ["g", "c"] {tk.reduce [sum] ["part"] {t[part, g * C + c]}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/SumByKey.h"
#include "passes/machine/limits/Keys.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Conditions.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/SortCost.h"
#include "passes/tensor/keys/KeyTests.h"
#include "passes/tensor/keys/KeyedTerms.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:histograms";
using namespace limits::sum_by_key;

namespace {

/// A sum by one key or two.
struct KeyedSum {
  KeyedReduction keyed;
  std::optional<KeyedReduction> lower; ///< the same reduction by a second key
  SmallVector<unsigned> columns;       ///< positions of indices that are part of the bin besides
};

/// A value of the compute op's body for one term of the new one.
struct Term {
  Value bin, weight, condition;
};

class KeyedSumming {
public:
  KeyedSumming(KernelOp kernel, ComputeOp compute, const KeyedSum &sum)
      : kernel(kernel), compute(compute), sum(sum), builder(compute), loc(compute.getLoc()),
        writer(builder, loc, cast<StringAttr>(compute.getNames()[0]).getValue()) {}

  bool pays();
  void rewrite(unsigned number);

private:
  SmallVector<Value> binExtents();
  bool isCount() const { return getCountedCondition(element()) != nullptr; }
  Value element() const { return ReduceOp(sum.keyed.reduce).getYield().getValues()[0]; }
  double timeOfSorting(double batches, double rows, double terms);
  Term copyTerm(OpBuilder &at, const IRMapping &indices);
  Value binOf(OpBuilder &at, ArrayRef<Value> digits);
  Value storeParts(StringRef suffix);

  KernelOp kernel;
  ComputeOp compute;
  const KeyedSum &sum;
  OpBuilder builder;
  Location loc;
  ComputeWriter writer;
  int64_t ofPart = 0; ///< values of the key's first index
};

} // namespace

/// Can the key be compared with any index?
static bool isWideKey(Value key) {
  return key.getType().isIndex() || key.getType().getIntOrFloatBitWidth() >= 32;
}

static std::optional<KeyedSum> matchSum(ComputeOp compute, ReduceOp reduce) {
  std::optional<KeyedReduction> keyed = matchKeyedReduction(compute, reduce);
  if (!keyed || keyed->readsGroup || !keyed->others.empty() || !isWideKey(keyed->key.key) ||
      reduce.getKind(0) != ReduceKind::Sum || getKeyedFactors(*keyed))
    return std::nullopt;
  Type type = reduce.getResult(0).getType();
  if (!type.isInteger(32) && !type.isF32() &&
      !getCountedCondition(reduce.getYield().getValues()[0]))
    return std::nullopt;
  KeyedSum found{*keyed, std::nullopt, keyed->columns};
  for (unsigned p : keyed->columns) {
    std::optional<KeyedReduction> lower = matchKeyedReduction(compute, reduce, p);
    if (!lower || lower->readsGroup || !isWideKey(lower->key.key) ||
        lower->key.indices != keyed->key.indices || lower->key.numBatches != keyed->key.numBatches)
      continue;
    found.lower = lower;
    llvm::erase(found.columns, p);
    break;
  }
  return found;
}

/// The extents that a bin is counted through: of the key, the second key and the columns.
SmallVector<Value> KeyedSumming::binExtents() {
  SmallVector<Value> extents = {sum.keyed.key.numKeys};
  if (sum.lower)
    extents.push_back(sum.lower->key.numKeys);
  for (unsigned p : sum.columns)
    extents.push_back(compute.getExtents()[p]);
  return extents;
}

/// Nanoseconds that the sorted elements take, where they can be sorted.
double KeyedSumming::timeOfSorting(double batches, double rows, double terms) {
  if (sum.lower)
    return std::numeric_limits<double>::infinity();
  constexpr int64_t ofBlock = 128;
  constexpr double launches = 2, bytes = 4;
  const double keys = guessSize(kernel, sum.keyed.key.numKeys);
  return RowOrders::timeOf(batches, rows, keys + 1, ofBlock) + launches * cost::launch +
         cost::byte * bytes * terms;
}

bool KeyedSumming::pays() {
  const RowKey &key = sum.keyed.key;
  ReduceOp reduce = sum.keyed.reduce;
  SmallVector<Value> sizes = binExtents(), bins = sizes;
  llvm::append_range(sizes, key.extents);
  for (unsigned n : sum.keyed.rest)
    sizes.push_back(getExtent(reduce.getIndex(n), compute));
  for (Value size : sizes)
    if (!getSizeFact(kernel, size).upper)
      return false;
  double numBins = 1, batches = 1, terms = 1, rest = 1, ofRow = 1;
  for (Value extent : bins)
    numBins *= guessSize(kernel, extent);
  for (auto [n, extent] : llvm::enumerate(key.extents))
    (n < key.numBatches ? batches : terms) *= guessSize(kernel, extent);
  for (unsigned n : sum.keyed.rest)
    rest *= guessSize(kernel, getExtent(reduce.getIndex(n), compute));
  ofRow = rest;
  for (unsigned p : sum.columns)
    ofRow *= guessSize(kernel, compute.getExtents()[p]);
  if (numBins < 2 || numBins > mostBins || terms * ofRow < 2)
    return false;
  const double rows = guessSize(kernel, key.extents[key.numBatches]);
  const double ofIndex = terms / rows * ofRow;
  const double parts =
      std::clamp(std::floor(countersOfParts / (numBins * batches)), fewestParts, partsOfElements);
  const double steps = std::ceil(terms * ofRow / parts / termsOfStep);
  ofPart = static_cast<int64_t>(std::max(std::ceil(steps * termsOfStep / ofIndex), 1.0));
  const double counts = std::ceil(rows / static_cast<double>(ofPart)) * batches * numBins;
  const bool isFloat = reduce.getResult(0).getType().isF32() && !isCount();
  const double blocks = std::ceil(numBins / (isFloat ? floatBinsOfBlock : binsOfBlock));
  constexpr double launches = 2, bytesOfCount = 8;
  const double own =
      launches * cost::launch +
      (isFloat ? cost::orderedTerm : cost::binnedTerm) * batches * terms * ofRow * blocks +
      cost::byte * bytesOfCount * counts;
  const double ofTerm =
      isCount() && sum.columns.empty() ? cost::countedTerm : cost::guardedColumnTerm;
  return own < ofTerm * batches * terms * rest * numBins &&
         own < timeOfSorting(batches, terms, batches * terms * ofRow) &&
         counts < std::numeric_limits<int32_t>::max();
}

/// The number that `digits`, one for each of the bin's extents, are.
Value KeyedSumming::binOf(OpBuilder &at, ArrayRef<Value> digits) {
  Value bin = digits.front();
  for (auto [digit, extent] : llvm::drop_begin(llvm::zip_equal(digits, binExtents()))) {
    bin = arith::MulIOp::create(at, loc, bin, extent);
    bin = arith::AddIOp::create(at, loc, bin, digit);
  }
  return bin;
}

/// `key` in 32 bits if it is a conversion of as many bits or fewer.
static Value narrowed(OpBuilder &at, Value key) {
  Operation *convert = key.getDefiningOp();
  if (!key.getType().isInteger(64) || !isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(convert))
    return key;
  Value from = convert->getOperand(0);
  const unsigned bits = from.getType().getIntOrFloatBitWidth();
  if (bits == 32 && isa<arith::ExtSIOp>(convert))
    return from;
  if (bits >= 32)
    return key;
  if (isa<arith::ExtSIOp>(convert))
    return arith::ExtSIOp::create(at, key.getLoc(), at.getI32Type(), from);
  return arith::ExtUIOp::create(at, key.getLoc(), at.getI32Type(), from);
}

/// The bin and the weight of the term at `indices`, and when it counts.
Term KeyedSumming::copyTerm(OpBuilder &at, const IRMapping &indices) {
  IRMapping mapping = indices;
  Value holds = arith::ConstantOp::create(at, loc, at.getBoolAttr(true));
  SmallVector<Value> digits;
  Term term;
  const bool isOneDigit = !sum.lower && sum.columns.empty();
  auto add = [&](Value condition) {
    term.condition = term.condition
                         ? arith::AndIOp::create(at, loc, term.condition, condition).getResult()
                         : condition;
  };
  auto addConditions = [&](Value condition) {
    SmallVector<Value> parts;
    addParts<arith::AndIOp>(condition, parts);
    for (Value part : parts)
      if (!llvm::is_contained(sum.keyed.tests, part) &&
          !(sum.lower && llvm::is_contained(sum.lower->tests, part)))
        add(cloneFrom(at, part, compute, mapping));
  };
  for (const KeyedReduction *keyed : {&sum.keyed, sum.lower ? &*sum.lower : nullptr}) {
    if (!keyed)
      continue;
    for (Value test : keyed->tests)
      mapping.map(test, holds);
    Value own = cloneFrom(at, keyed->key.key, compute, mapping);
    own = narrowed(at, own);
    // A key that is none must not be the bin of another one.
    if (!isOneDigit || own.getType().isInteger(64)) {
      Value numKeys = keyed->key.numKeys;
      if (!own.getType().isIndex())
        numKeys = arith::IndexCastOp::create(at, loc, own.getType(), numKeys);
      add(arith::CmpIOp::create(at, loc, arith::CmpIPredicate::ult, own, numKeys));
    }
    digits.push_back(own.getType().isIndex()
                         ? own
                         : arith::IndexCastOp::create(at, loc, at.getIndexType(), own).getResult());
  }
  for (unsigned p : sum.columns)
    digits.push_back(mapping.lookup(compute.getIndex(p)));
  term.bin = binOf(at, digits);
  Value weight = element();
  if (Value counted = getCountedCondition(weight)) {
    addConditions(counted);
    term.weight = arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(1));
    return term;
  }
  // Terms of which conditions choose 0 need no weight of their own.
  while (auto select = weight.getDefiningOp<arith::SelectOp>()) {
    if (!isIdentity(select.getFalseValue(), ReduceKind::Sum))
      break;
    addConditions(select.getCondition());
    weight = select.getTrueValue();
  }
  term.weight = cloneFrom(at, weight, compute, mapping);
  return term;
}

/// Stores the sums of each part by bin.
Value KeyedSumming::storeParts(StringRef suffix) {
  const RowKey &key = sum.keyed.key;
  ReduceOp reduce = sum.keyed.reduce;
  const unsigned numBatches = key.numBatches;
  Value size = writer.constant(builder, ofPart), rows = key.extents[numBatches];
  Value raised = arith::AddIOp::create(builder, loc, rows, writer.constant(builder, ofPart - 1));
  SmallVector<StringRef> names, over;
  SmallVector<Value> extents(ValueRange(key.extents).take_front(numBatches)), from, upper;
  for (Value index : ArrayRef(key.indices).take_front(numBatches))
    names.push_back(getName(index));
  llvm::append_range(names, ArrayRef<StringRef>{"part", "bin"});
  extents.push_back(writer.divide(builder, raised, ofPart));
  Value numBins = writer.constant(builder, 1);
  for (Value extent : binExtents())
    numBins = builder.createOrFold<arith::MulIOp>(loc, numBins, extent);
  extents.push_back(numBins);
  SmallVector<Value> indices(ArrayRef(key.indices).drop_front(numBatches));
  for (unsigned n : sum.keyed.rest)
    indices.push_back(reduce.getIndex(n));
  for (unsigned p : sum.columns)
    indices.push_back(compute.getIndex(p));
  for (Value index : indices) {
    over.push_back(getName(index));
    upper.push_back(getExtent(index, compute));
  }
  Type type = isCount() ? builder.getI32Type() : reduce.getResult(0).getType();
  Value parts =
      writer.define(suffix, names, extents, type, [&](OpBuilder &at, ValueRange own) -> Value {
        SmallVector<Value> first(indices.size(), writer.constant(at, 0)), end = upper;
        first[0] = arith::MulIOp::create(at, loc, own[numBatches], size);
        end[0] = arith::AddIOp::create(at, loc, first[0], size);
        end[0] = arith::MinSIOp::create(at, loc, end[0], rows);
        return ReduceOp::create(at, loc, ReduceKind::Sum, over, first, end, type,
                                [&](OpBuilder &in, Location, ValueRange place) -> Value {
                                  IRMapping mapping;
                                  mapping.map(ValueRange(key.indices).take_front(numBatches),
                                              own.take_front(numBatches));
                                  mapping.map(ValueRange(indices), place);
                                  const Term term = copyTerm(in, mapping);
                                  Value isBin =
                                      arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq,
                                                            term.bin, own[numBatches + 1]);
                                  if (term.condition)
                                    isBin = arith::AndIOp::create(in, loc, isBin, term.condition);
                                  Value none = createIdentity(in, loc, ReduceKind::Sum, type);
                                  return arith::SelectOp::create(in, loc, isBin, term.weight, none);
                                })
            .getResult(0);
      });
  gpu::changePlan(parts.getDefiningOp(),
                  [](gpu::KernelPlan &plan) { plan.family = gpu::PlanFamily::Histogram; });
  return parts;
}

void KeyedSumming::rewrite(unsigned number) {
  ReduceOp reduce = sum.keyed.reduce;
  const RowKey &key = sum.keyed.key;
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " adds to sums in shared memory, one for each " +
           (sum.lower ? "pair of keys" : "key"));
  Value parts = storeParts(".bins" + (number == 0 ? std::string() : std::to_string(number)));
  Value numParts = parts.getDefiningOp<ComputeOp>().getExtents()[key.numBatches];
  OpBuilder at(reduce);
  SmallVector<Value> digits = {compute.getIndex(sum.keyed.group)};
  if (sum.lower)
    digits.push_back(compute.getIndex(sum.lower->group));
  for (unsigned p : sum.columns)
    digits.push_back(compute.getIndex(p));
  Value bin = binOf(at, digits);
  Value total =
      ReduceOp::create(at, loc, ReduceKind::Sum, ArrayRef<StringRef>{"part"},
                       ValueRange{writer.constant(at, 0)}, ValueRange{numParts},
                       cast<RankedTensorType>(parts.getType()).getElementType(),
                       [&](OpBuilder &in, Location, ValueRange part) -> Value {
                         SmallVector<Value> own(ValueRange(key.indices).take_front(key.numBatches));
                         llvm::append_range(own, ValueRange{part[0], bin});
                         return LoadOp::create(in, loc, parts, own, Value());
                       })
          .getResult(0);
  replaceByTotal(at, reduce, total);
}

unsigned tk::sumByKey(KernelOp kernel) {
  unsigned numSums = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>())) {
    if (replacesParameter(kernel, compute))
      continue;
    unsigned number = 0;
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>())) {
      KeyTests tests(compute, reduce);
      std::optional<KeyedSum> sum = matchSum(compute, reduce);
      std::optional<KeyedSumming> summing;
      if (sum)
        summing.emplace(kernel, compute, *sum);
      if (!summing || !summing->pays()) {
        tests.restore();
        continue;
      }
      summing->rewrite(number++);
    }
    if (number > 0)
      eraseDead(compute);
    numSums += number;
  }
  return numSums;
}
