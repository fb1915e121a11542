//===- ScatterRows.cpp - rows that a tensor of indices names --------------===//
//
// An inference engine writes a few rows into a large cache, at places that a tensor gives. The
// program says of each row of the cache whether some element names it, and most rows stay:
//
//   cache[p, c] = if any[t](slot[t] == p) then sum[t](if slot[t] == p then k[t, c] else 0.0)
//                 else cache[p, c]
//
// 1. Find compute ops in place whose results change under a condition that a stored reduction over
//    elements decides: the first element whose tests hold comes before the one behind the last
//    (BoundTerms.cpp), or the greatest such element is not negative. The tests say which value each
//    index of a row has.
// 2. Compute that reduction in the compute op. The condition becomes that there is an element whose
//    tests hold.
// 3. tk-tile then has a block for each element instead of one for each row (BlockRows.cpp). The
//    element gives the row. Several elements may name one row, which the first or the last of them
//    computes, with all of them.
//
// The pass declines if elements are so many that comparing each with all takes longer than
// comparing all rows with them.
//
//   %first, %end = tk.compute ["p"] {tk.reduce [min, max] ["t"] {s[t] == p ? t : %T, ...}}
//   %x = tk.compute ["p", "c"] {%first[p] < %end[p] ? .. : x[p, c]}
//     =>
//   %x = tk.compute ["p", "c"] {
//     %first, %end = tk.reduce [min, max] ["t"] {s[t] == p ? t : %T, ...}
//     %first < %T ? .. : x[p, c]}
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/ChangedElements.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/VisitedPlaces.h"
#include "passes/plan/ChangePasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace tk {
#define GEN_PASS_DEF_SCATTERROWS
#include "passes/plan/ChangePasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-scatter-rows";

namespace {

/// A stored result that a condition reads, and the loads of it in the condition's compute op.
struct ReadResult {
  ComputeOp source;
  SmallVector<LoadOp> loads;
};

/// Rewrites one compute op.
class RowScatter {
public:
  RowScatter(KernelOp kernel, ComputeOp compute) : kernel(kernel), compute(compute) {}

  bool run();

private:
  bool findResults(Value condition);
  void inlineResults();
  void testFirst();
  bool pays(const VisitedPlaces &visited);

  KernelOp kernel;
  ComputeOp compute;
  SmallVector<ReadResult> results;
};

} // namespace

/// The stored compute op of whose results `load` takes elements, each at the same indices of
/// `compute`; null if it reads something else.
static ComputeOp sourceOf(LoadOp load, ComputeOp compute) {
  auto source = load.getTensor().getDefiningOp<ComputeOp>();
  if (!source || load.getPad() || !llvm::all_of(load.getIndices(), [&](Value at) {
        auto index = dyn_cast<BlockArgument>(at);
        return index && index.getOwner() == compute.getBlock();
      }))
    return {};
  const SmallVector<unsigned> all = llvm::to_vector(llvm::seq(source.getNumIndices()));
  return source.getIndicesOf(cast<OpResult>(load.getTensor()).getResultNumber()) == all
             ? source
             : ComputeOp();
}

/// Finds the stored results that the condition is computed from.
bool RowScatter::findResults(Value condition) {
  for (Operation *op : getSlice(condition, compute.getBlock()))
    if (auto load = dyn_cast<LoadOp>(op))
      if (ComputeOp source = sourceOf(load, compute);
          source &&
          llvm::none_of(results, [&](const ReadResult &other) { return other.source == source; }))
        results.push_back({source, {}});
  for (ReadResult &result : results) {
    compute.walk([&](LoadOp load) {
      if (load.getTensor().getDefiningOp() == result.source)
        result.loads.push_back(load);
    });
    if (!llvm::all_of(result.loads, [&](LoadOp load) {
          return sourceOf(load, compute) && load.getIndices() == result.loads.front().getIndices();
        }))
      return false;
  }
  return !results.empty();
}

/// Computes what the condition reads in the compute op.
void RowScatter::inlineResults() {
  OpBuilder builder = OpBuilder::atBlockBegin(compute.getBlock());
  for (ReadResult &result : results) {
    IRMapping mapping;
    for (auto [index, own] : llvm::zip_equal(result.source.getBlock()->getArguments(),
                                             result.loads.front().getIndices()))
      mapping.map(index, own);
    for (LoadOp load : result.loads) {
      const unsigned r = cast<OpResult>(load.getTensor()).getResultNumber();
      Value element = result.source.getYield().getValues()[r];
      load.replaceAllUsesWith(cloneSlice(builder, element, result.source.getBlock(), mapping));
    }
  }
  for (ReadResult &result : results)
    for (LoadOp load : result.loads)
      load.erase();
}

/// A range from the first element to the one behind the last has elements if there is a first one.
void RowScatter::testFirst() {
  auto compare = getConditionOfChange(kernel, compute).getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt)
    return;
  std::optional<NamedElement> first = getNamedElement(compare.getLhs()),
                              last = getNamedElement(compare.getRhs());
  if (!first || !last || !first->isFirst || last->isFirst || last->offset != 1)
    return;
  ReduceOp ofFirst = first->reduce, ofLast = last->reduce;
  ScalarEquality equality;
  equality.identify(ofFirst.getIndex(0), ofLast.getIndex(0));
  if (!isSameExtent(ofFirst.getUpper()[0], ofLast.getUpper()[0]) ||
      !equality.equal(first->holds, last->holds))
    return;
  OpBuilder builder(compare);
  Value end = ofFirst.getUpper()[0], place = compare.getLhs();
  if (!place.getType().isIndex())
    end = arith::IndexCastOp::create(builder, compare.getLoc(), place.getType(), end);
  compare.getRhsMutable().assign(end);
}

/// Does it take less time to compare elements with each other than rows with elements?
bool RowScatter::pays(const VisitedPlaces &visited) {
  std::optional<VisitTimes> all = getVisitTimes(kernel, compute, visited);
  if (!all)
    return false;
  const std::string times = llvm::formatv(" (rows compared with elements: {0:f1} us; elements "
                                          "compared with each other: {1:f1} us)",
                                          all->ofRows / 1000, all->ofElements / 1000);
  const bool isFaster = all->ofElements < all->ofRows;
  note(compute, passName, isFaster ? Verdict::Derived : Verdict::Declined,
       (isFaster ? "blocks of " + describe(compute) + " visit the rows that elements name"
                 : "blocks visit all rows of " + describe(compute)) +
           times);
  return isFaster;
}

bool RowScatter::run() {
  Value condition = getConditionOfChange(kernel, compute);
  if (!condition || !findResults(condition))
    return false;
  ComputeOp before = compute.clone();
  inlineResults();
  testFirst();
  std::optional<VisitedPlaces> visited = matchVisitedPlaces(kernel, compute);
  const bool isTaken = visited && pays(*visited);
  if (!isTaken)
    compute.getBody().takeBody(before.getBody());
  before.erase();
  if (isTaken) {
    eraseDead(compute);
    for (ReadResult &result : results)
      if (result.source.use_empty())
        result.source.erase();
  }
  return isTaken;
}

namespace {

struct ScatterRows : tk::impl::ScatterRowsBase<ScatterRows> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(gpu::targetAttrName))
      return;
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
        if (gpu::getPlan(compute).inPlace && RowScatter(kernel, compute).run())
          ++numScattered;
  }
};

} // namespace
