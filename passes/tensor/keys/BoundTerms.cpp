//===- BoundTerms.cpp - ranges of the elements with a key -----------------===//
//
// An inference engine writes the keys of a few tokens into the rows of a large cache:
//
//   cache[p, c] = if any[t](slot[t] == p) then sum[t](if slot[t] == p then k[t, c] else 0.0)
//                 else cache[p, c]
//
// As it is written, each element of the cache goes through all tokens. Most rows have no token.
//
// 1. Find reductions over one index whose element is the identity of the reduction unless a key
//    equals an index of the compute op (KeyedTerms.cpp). There are no more elements than keys.
// 2. Two compute ops store the first element of each key, and the one behind the last element.
// 3. The reduction goes over that range. The comparison with the key stays in it. If each element
//    has a key of its own, a range has one element at most.
// 4. `any` of the comparison is that the range is not empty.
//
// The pattern declines if the compute op has few elements for each key, as the two compute ops
// compare each element with each key, too.
//
//   %y = tk.compute ["p", "c"] {tk.reduce [sum] ["t"] from(0) to(%T) {s[t] == p ? k[t, c] : 0}}
//     =>
//   %first = tk.compute ["p"] {tk.reduce [min] ["t"] from(0) to(%T) {s[t] == p ? t : %T}}
//   %end = tk.compute ["p"] {tk.reduce [max] ["t"] from(0) to(%T) {s[t] == p ? t + 1 : 0}}
//   %y = tk.compute ["p", "c"] {
//     tk.reduce [sum] ["t"] from(%first[p]) to(%end[p]) {s[t] == p ? k[t, c] : 0}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/BoundTerms.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/SortCost.h"
#include "passes/tensor/keys/KeyedTerms.h"
#include "passes/tensor/keys/RowOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <vector>

using namespace mlir;
using namespace tk;

namespace {

/// Bounds the reductions of one compute op that have one key.
class TermBounds {
public:
  TermBounds(KernelOp kernel, const KeyedReduction &keyed)
      : kernel(kernel), compute(keyed.key.compute), keyed(keyed), builder(compute),
        writer(builder, compute.getLoc(), cast<StringAttr>(compute.getNames()[0]).getValue()) {}

  bool pays(ArrayRef<KeyedReduction> all);
  void store();
  void bound(const KeyedReduction &one);

private:
  Value storeEnd(StringRef suffix, ReduceKind kind);
  Value loadEnd(OpBuilder &at, Value ends);

  KernelOp kernel;
  ComputeOp compute;
  KeyedReduction keyed;
  OpBuilder builder;
  ComputeWriter writer;
  Value first, end;
};

} // namespace

/// Do the reductions take longer than comparing each element with each key twice?
bool TermBounds::pays(ArrayRef<KeyedReduction> all) {
  std::optional<int64_t> terms = getSizeFact(kernel, keyed.key.extents.front()).upper;
  std::optional<int64_t> keys = getSizeFact(kernel, keyed.key.numKeys).upper;
  if (!terms || !keys || *terms > *keys)
    return false;
  double columns = 0;
  for (const KeyedReduction &one : all) {
    double ofOne = 1;
    for (unsigned p : one.columns) {
      std::optional<int64_t> upper = getSizeFact(kernel, compute.getExtents()[p]).upper;
      if (!upper)
        return false;
      ofOne *= static_cast<double>(*upper);
    }
    columns += ofOne;
  }
  const double compared = static_cast<double>(*terms) * static_cast<double>(*keys);
  return cost::guardedTerm * compared * columns >
         2 * (cost::launch + cost::guardedFewTerm * compared);
}

/// For each key the extreme of what `kind` asks for: the first element, or the one behind the last.
Value TermBounds::storeEnd(StringRef suffix, ReduceKind kind) {
  Location loc = compute.getLoc();
  Value terms = keyed.key.extents.front(), keys = keyed.key.numKeys;
  ReduceOp reduce = keyed.reduce;
  return writer.define(
      suffix, ArrayRef<StringRef>{"key"}, ArrayRef<Value>{keys}, builder.getI32Type(),
      [&](OpBuilder &at, ValueRange key) -> Value {
        auto found = ReduceOp::create(
            at, loc, kind, ArrayRef<StringRef>{"term"}, ValueRange{writer.constant(at, 0)},
            ValueRange{terms}, at.getI32Type(),
            [&](OpBuilder &inner, Location, ValueRange term) -> Value {
              IRMapping mapping;
              mapping.map(compute.getIndex(keyed.group), key[0]);
              mapping.map(reduce.getIndex(0), term[0]);
              Value holds = cloneFrom(inner, keyed.tests.front(), compute, mapping);
              Value place = term[0], none = terms;
              if (kind == ReduceKind::Max) {
                place = arith::AddIOp::create(inner, loc, place, writer.constant(inner, 1));
                none = writer.constant(inner, 0);
              }
              return arith::SelectOp::create(inner, loc, holds, writer.word(inner, place),
                                             writer.word(inner, none));
            });
        return found.getResult(0);
      });
}

void TermBounds::store() {
  first = storeEnd(".first", ReduceKind::Min);
  end = storeEnd(".end", ReduceKind::Max);
}

Value TermBounds::loadEnd(OpBuilder &at, Value ends) {
  return writer.loadIndex(at, ends, ValueRange{compute.getIndex(keyed.group)});
}

void TermBounds::bound(const KeyedReduction &one) {
  ReduceOp reduce = one.reduce;
  OpBuilder at(reduce);
  Location loc = reduce.getLoc();
  Value lower = loadEnd(at, first), upper = loadEnd(at, end);
  note(reduce, "tk-split-reductions:key-ranges", Verdict::Derived,
       "the " + describe(reduce) + " runs from the first element with its key to the last one");
  if (reduce.getKind(0) == ReduceKind::Any &&
      llvm::is_contained(one.tests, reduce.getYield().getValues()[0])) {
    Value some = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, lower, upper);
    reduce.getResult(0).replaceAllUsesWith(some);
    reduce.erase();
    return;
  }
  reduce.getLowerMutable()[0].set(
      arith::MaxSIOp::create(at, loc, reduce.getLower()[0], lower).getResult());
  reduce.getUpperMutable()[0].set(
      arith::MinSIOp::create(at, loc, upper, reduce.getUpper()[0]).getResult());
}

/// The reductions of `compute` over one index, whose key is of that index alone.
static std::vector<KeyedReduction> findReductions(ComputeOp compute) {
  std::vector<KeyedReduction> found;
  for (auto reduce : compute.getBlock()->getOps<ReduceOp>())
    if (std::optional<KeyedReduction> keyed = matchKeyedReduction(compute, reduce))
      if (reduce.getNumIndices() == 1 && keyed->key.numBatches == 0 && keyed->others.empty())
        found.push_back(*keyed);
  return found;
}

static bool haveOneKey(const KeyedReduction &a, const KeyedReduction &b) {
  if (a.group != b.group || !isSameExtent(a.key.extents[0], b.key.extents[0]))
    return false;
  ScalarEquality equality;
  equality.identify(a.key.indices[0], b.key.indices[0]);
  return equality.equal(a.key.key, b.key.key);
}

unsigned tk::boundTerms(KernelOp kernel) {
  unsigned count = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().front().getOps<ComputeOp>())) {
    std::vector<KeyedReduction> all = findReductions(compute);
    while (!all.empty()) {
      std::vector<KeyedReduction> some, others;
      for (const KeyedReduction &keyed : all)
        (haveOneKey(keyed, all.front()) ? some : others).push_back(keyed);
      TermBounds bounds(kernel, some.front());
      if (bounds.pays(some)) {
        bounds.store();
        for (const KeyedReduction &keyed : some)
          bounds.bound(keyed);
        count += some.size();
      }
      all = others;
    }
  }
  return count;
}
