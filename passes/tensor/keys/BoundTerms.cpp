//===- BoundTerms.cpp - ranges of the elements with a key -----------------===//
//
// An inference engine writes the keys of a few tokens into the rows of a large cache:
//
//   cache[p, c] = if any[t](slot[t] == p) then sum[t](if slot[t] == p then k[t, c] else 0.0)
//                 else cache[p, c]
//
// As it is written, each element of the cache goes through all tokens. Most rows have no token.
//
// 1. Find reductions over one index whose element is the identity of the reduction unless tests of
//    equality hold, which read a tensor. The tests depend on some indices of the compute op, the
//    element on others, too. The former have as many values together as there are elements. Other
//    conditions that depend on no more indices are tests, too.
// 2. Two compute ops over these indices store the first element for which the tests hold, and the
//    one behind the last. Reductions with the same tests share them.
// 3. The reduction goes over that range. The tests stay in it. If each element has a place of its
//    own, a range has one element at most.
// 4. `any` of the tests is that the range is not empty.
//
// The pattern declines if the compute op has few elements at each place, as the two compute ops
// make all tests, too.
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

#include "passes/analysis/EqualComputes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/TermConditions.h"
#include "passes/machine/SortCost.h"
#include "passes/tensor/keys/RowKey.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <vector>

using namespace mlir;
using namespace tk;

namespace {

/// A reduction of the elements for which tests hold.
struct TestedReduction {
  ReduceOp reduce;
  SmallVector<Value> tests;
  SmallVector<BlockArgument> places;  ///< the indices of the compute op that tests depend on
  SmallVector<BlockArgument> columns; ///< those that the element depends on besides
  bool isAny = false;                 ///< do the tests hold for any element?
};

/// Bounds the reductions of one compute op that have the same tests.
class TermBounds {
public:
  TermBounds(KernelOp kernel, ComputeOp compute, const TestedReduction &tested)
      : kernel(kernel), compute(compute), tested(tested), builder(compute),
        writer(builder, compute.getLoc(), cast<StringAttr>(compute.getNames()[0]).getValue()) {}

  bool pays(ArrayRef<TestedReduction> all);
  /// Stores the ends of ranges, or takes those of `stored`, to which new ones are added.
  void store(SmallVectorImpl<ComputeOp> &stored);
  void bound(const TestedReduction &one);

private:
  std::optional<double> countValues(ArrayRef<BlockArgument> indices);
  Value storeEnd(StringRef suffix, ReduceKind kind);

  KernelOp kernel;
  ComputeOp compute;
  const TestedReduction &tested;
  OpBuilder builder;
  ComputeWriter writer;
  Value first, end;
};

} // namespace

/// The product of the extents of `indices`, if that is known.
std::optional<double> TermBounds::countValues(ArrayRef<BlockArgument> indices) {
  double count = 1;
  for (BlockArgument index : indices) {
    std::optional<int64_t> upper =
        getSizeFact(kernel, compute.getExtents()[index.getArgNumber()]).upper;
    if (!upper)
      return std::nullopt;
    count *= static_cast<double>(*upper);
  }
  return count;
}

/// Do the reductions take longer than making the tests twice?
bool TermBounds::pays(ArrayRef<TestedReduction> all) {
  ReduceOp reduce = tested.reduce;
  std::optional<int64_t> terms = getSizeFact(kernel, reduce.getUpper()[0]).upper;
  std::optional<double> places = countValues(tested.places);
  if (!terms || !places || static_cast<double>(*terms) > *places)
    return false;
  double columns = 0;
  for (const TestedReduction &one : all) {
    std::optional<double> ofOne = countValues(one.columns);
    if (!ofOne)
      return false;
    columns += *ofOne;
  }
  const double tests = static_cast<double>(*terms) * *places;
  return cost::guardedTerm * tests * columns > 2 * (cost::launch + cost::guardedFewTerm * tests);
}

/// At each place the extreme of what `kind` asks for: the first element for which the tests hold,
/// or the one behind the last.
Value TermBounds::storeEnd(StringRef suffix, ReduceKind kind) {
  Location loc = compute.getLoc();
  ReduceOp reduce = tested.reduce;
  Value terms = reduce.getUpper()[0];
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  for (BlockArgument index : tested.places) {
    names.push_back(getName(index));
    extents.push_back(compute.getExtents()[index.getArgNumber()]);
  }
  auto place = [&](OpBuilder &inner, ValueRange at, Value term) -> Value {
    IRMapping mapping;
    for (auto [index, mine] : llvm::zip_equal(tested.places, at))
      mapping.map(index, mine);
    mapping.map(reduce.getIndex(0), term);
    Value holds;
    for (Value test : tested.tests) {
      Value own = cloneFrom(inner, test, compute, mapping);
      holds = holds ? arith::AndIOp::create(inner, loc, holds, own).getResult() : own;
    }
    Value none = terms;
    if (kind == ReduceKind::Max) {
      term = arith::AddIOp::create(inner, loc, term, writer.constant(inner, 1));
      none = writer.constant(inner, 0);
    }
    return arith::SelectOp::create(inner, loc, holds, writer.word(inner, term),
                                   writer.word(inner, none));
  };
  return writer.define(
      suffix, names, extents, builder.getI32Type(), [&](OpBuilder &at, ValueRange own) -> Value {
        return ReduceOp::create(at, loc, kind, ArrayRef<StringRef>{getName(reduce.getIndex(0))},
                                ValueRange{writer.constant(at, 0)}, ValueRange{terms},
                                at.getI32Type(),
                                [&](OpBuilder &inner, Location, ValueRange term) -> Value {
                                  return place(inner, own, term[0]);
                                })
            .getResult(0);
      });
}

/// Of `stored`, the compute op that computes what `made` does; else `made`, which is added.
static Value shareStored(Value made, SmallVectorImpl<ComputeOp> &stored) {
  auto own = made.getDefiningOp<ComputeOp>();
  if (ComputeOp other = findEqual(stored, own)) {
    own.erase();
    return other.getResult(0);
  }
  stored.push_back(own);
  return made;
}

void TermBounds::store(SmallVectorImpl<ComputeOp> &stored) {
  first = shareStored(storeEnd(".first", ReduceKind::Min), stored);
  end = shareStored(storeEnd(".end", ReduceKind::Max), stored);
}

void TermBounds::bound(const TestedReduction &one) {
  ReduceOp reduce = one.reduce;
  OpBuilder at(reduce);
  Location loc = reduce.getLoc();
  SmallVector<Value> place(one.places.begin(), one.places.end());
  Value lower = writer.loadIndex(at, first, place), upper = writer.loadIndex(at, end, place);
  note(reduce, "tk-split-reductions:key-ranges", Verdict::Derived,
       "the " + describe(reduce) + " runs from the first element with its key to the last one");
  if (one.isAny) {
    Value some = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, lower, upper);
    reduce.getResult(0).replaceAllUsesWith(some);
    reduce.erase();
    return;
  }
  reduce.getLowerMutable()[0].set(lower);
  reduce.getUpperMutable()[0].set(
      arith::MinSIOp::create(at, loc, upper, reduce.getUpper()[0]).getResult());
}

/// Is `condition` a test of equality that reads a tensor at the index of `reduce`?
static bool isTest(Value condition, ReduceOp reduce) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  return compare && compare.getPredicate() == arith::CmpIPredicate::eq && readsTensor(condition) &&
         Dependence{ValueRange{reduce.getIndex(0)}}.on(condition);
}

static std::optional<TestedReduction> matchTested(ComputeOp compute, ReduceOp reduce) {
  const ReduceKind kind = reduce.getKind(0);
  if (reduce.isOnline() || reduce.getNumIndices() != 1 || isHeavy(reduce) ||
      isContraction(reduce) || !getExtent(reduce.getIndex(0), compute) ||
      !llvm::is_contained({ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Any},
                          kind) ||
      llvm::any_of(*reduce.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; }))
    return std::nullopt;
  TestedReduction tested;
  tested.reduce = reduce;
  SmallVector<TermCondition> conditions = TermConditions(reduce).found;
  for (const auto &[condition, from, divisor] : conditions)
    if (!from && !divisor && isTest(condition, reduce))
      tested.tests.push_back(condition);
  llvm::SetVector<BlockArgument> places;
  for (Value test : tested.tests)
    places.insert_range(getIterationIndices(test));
  places.remove(reduce.getIndex(0));
  // Other conditions of an element narrow the range, too.
  for (const auto &[condition, from, divisor] : conditions)
    if (!from && !divisor && !llvm::is_contained(tested.tests, condition) &&
        llvm::all_of(getIterationIndices(condition), [&](BlockArgument at) {
          return at == reduce.getIndex(0) || places.contains(at);
        }))
      tested.tests.push_back(condition);
  for (BlockArgument index : compute.getBlock()->getArguments())
    if (places.contains(index))
      tested.places.push_back(index);
    else if (llvm::is_contained(getIterationIndices(reduce.getResult(0)), index))
      tested.columns.push_back(index);
  tested.isAny = kind == ReduceKind::Any && tested.tests.size() == conditions.size();
  if (tested.places.empty() || tested.places.size() != places.size())
    return std::nullopt;
  return tested;
}

static bool haveSameTests(const TestedReduction &a, const TestedReduction &b) {
  ReduceOp ofA = a.reduce, ofB = b.reduce;
  ScalarEquality equality;
  equality.identify(ofA.getIndex(0), ofB.getIndex(0));
  return a.places == b.places && a.tests.size() == b.tests.size() &&
         isSameExtent(ofA.getUpper()[0], ofB.getUpper()[0]) &&
         equality.equal(ValueRange(a.tests), ValueRange(b.tests));
}

unsigned tk::boundTerms(KernelOp kernel) {
  unsigned count = 0;
  SmallVector<ComputeOp> stored;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().front().getOps<ComputeOp>())) {
    std::vector<TestedReduction> all;
    for (auto reduce : compute.getBlock()->getOps<ReduceOp>())
      if (std::optional<TestedReduction> tested = matchTested(compute, reduce))
        all.push_back(*tested);
    while (!all.empty()) {
      std::vector<TestedReduction> some, others;
      for (const TestedReduction &tested : all)
        (haveSameTests(tested, all.front()) ? some : others).push_back(tested);
      TermBounds bounds(kernel, compute, some.front());
      if (bounds.pays(some)) {
        bounds.store(stored);
        for (const TestedReduction &tested : some)
          bounds.bound(tested);
        count += some.size();
      }
      all = others;
    }
  }
  return count;
}
