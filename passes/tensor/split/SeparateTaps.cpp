//===- SeparateTaps.cpp - sums of few taps --------------------------------===//
//
// The gradient by the weights of a depthwise convolution is a long sum for each channel and tap.
// The sums of neighbouring taps read the same elements: those of one operand, and those of the
// other one a step apart. Threads that each have one tap load all of them again.
//
// 1. Find sums in which an operand is read at a place that moves with an index of few results, and
//    with an index of the sum. Another operand does not depend on that index.
// 2. All other indices of the results stand in both operands, or in none. Else the sum is a product
//    of matrices.
// 3. Give each value of the index, each tap, a compute op of its own. They have equal indices, so
//    that tk-merge-computes makes one loop of them.
// 4. Readers select the result of their tap.
//
//   %w = tk.compute ["c", "r"] in (%C, 3) {tk.reduce [sum] ["t"] {dy[t, c] * x[t + r, c]}}
//   .. %w[c, r]
//     =>
//   %0 = tk.compute ["c"] in (%C) {tk.reduce [sum] ["t"] {dy[t, c] * x[t, c]}}
//   %1 = tk.compute ["c"] in (%C) {tk.reduce [sum] ["t"] {dy[t, c] * x[t + 1, c]}}
//   %2 = tk.compute ["c"] in (%C) {tk.reduce [sum] ["t"] {dy[t, c] * x[t + 2, c]}}
//   .. r == 0 ? %0[c] : r == 1 ? %1[c] : %2[c]
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/SeparateTaps.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexGrowth.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/limits/Splits.h"
#include "passes/plan/WindowPlaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tk;

using namespace limits::separate_taps;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:taps";

/// Does `load` have one place that moves with `tap` and with an index of `reduce`?
static bool isMoved(LoadOp load, BlockArgument tap, ReduceOp reduce) {
  Dependence onTap{ValueRange{tap}};
  unsigned places = 0;
  for (Value index : load.getIndices()) {
    if (!onTap.on(index))
      continue;
    ++places;
    const bool isSum = llvm::any_of(getIterationIndices(index), [&](BlockArgument own) {
      return own.getOwner() == reduce.getBlock() && growth(index, own);
    });
    if (!isSum || !growth(index, tap))
      return false;
  }
  return places == 1 && !(load.getPad() && onTap.on(load.getPad()));
}

namespace {
/// A sum for each tap.
struct TapSum {
  ComputeOp compute;
  ReduceOp reduce;
  unsigned tap; ///< which index of the compute op
  int64_t count;
};
} // namespace

/// Do all other indices of the results stand in the moved operand wherever they stand in the
/// others?
static bool isMatrixProduct(const TapSum &sum, ArrayRef<LoadOp> moved, ArrayRef<LoadOp> others) {
  ComputeOp compute = sum.compute;
  for (BlockArgument index : compute.getBlock()->getArguments()) {
    if (index.getArgNumber() == sum.tap)
      continue;
    Dependence on{ValueRange{index}};
    auto has = [&](LoadOp load) { return on.on(load.getResult()); };
    const bool ofMoved = llvm::any_of(moved, has), ofOthers = llvm::any_of(others, has);
    if (ofMoved == ofOthers)
      continue;
    if (ofOthers || !llvm::all_of(moved, [&](LoadOp load) {
          return !has(load) || isMoved(load, index, sum.reduce);
        }))
      return true;
  }
  return false;
}

/// Are the operands so large that loading them again takes more time than the launch?
static bool readsMuch(KernelOp kernel, ArrayRef<LoadOp> loads) {
  return llvm::any_of(loads, [&](LoadOp load) {
    double elements = 1;
    for (Value extent : getExtents(kernel, load.getTensor()))
      elements *= estimateSize(kernel, extent);
    return elements >= leastElements;
  });
}

/// The sum of `compute` over taps that are index `tap` of it.
static std::optional<TapSum> matchTap(KernelOp kernel, ComputeOp compute, ReduceOp reduce,
                                      unsigned tap) {
  std::optional<int64_t> count = getSizeFact(kernel, compute.getExtents()[tap]).exact;
  if (!count || *count < 2 || *count > mostTaps)
    return std::nullopt;
  BlockArgument index = compute.getIndex(tap);
  Dependence onTap{ValueRange{index}};
  SmallVector<LoadOp> moved, others;
  bool areKnown = true;
  reduce.getBody().walk([&](LoadOp load) {
    const bool depends = onTap.on(load.getResult());
    areKnown &= !depends || isMoved(load, index, reduce);
    (depends ? moved : others).push_back(load);
  });
  TapSum sum{compute, reduce, tap, *count};
  if (!areKnown || moved.empty() || others.empty() || isMatrixProduct(sum, moved, others) ||
      !readsMuch(kernel, others))
    return std::nullopt;
  return sum;
}

static std::optional<TapSum> match(KernelOp kernel, ComputeOp compute) {
  SmallVector<ReduceOp> reduces(compute.getBlock()->getOps<ReduceOp>());
  if (compute.getNumResults() != 1 || compute.getResultIndices() || reduces.size() != 1)
    return std::nullopt;
  ReduceOp reduce = reduces.front();
  if (reduce.isOnline() || reduce.getNumAccumulators() != 1 || reduce.getKind(0) != ReduceKind::Sum)
    return std::nullopt;
  for (unsigned tap = compute.getNumIndices(); tap-- > 0;)
    if (std::optional<TapSum> sum = matchTap(kernel, compute, reduce, tap))
      return sum;
  return std::nullopt;
}

std::optional<unsigned> tk::tapOfOneLoop(ComputeOp compute) {
  auto kernel = compute->getParentOfType<KernelOp>();
  if (!kernel || kernel->hasAttr("tk.schedules"))
    return std::nullopt;
  std::optional<TapSum> sum = match(kernel, compute);
  return sum ? std::optional(sum->tap) : std::nullopt;
}

/// The sums of tap `number`.
static ComputeOp createTap(const TapSum &sum, int64_t number) {
  ComputeOp compute = sum.compute;
  OpBuilder builder(compute);
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  for (auto [n, name, extent] : llvm::enumerate(compute.getIndexNames(), compute.getExtents())) {
    if (n == sum.tap)
      continue;
    names.push_back(cast<StringAttr>(name).getValue());
    extents.push_back(extent);
  }
  Value result = ReduceOp(sum.reduce).getResult(0);
  const std::string name =
      (cast<StringAttr>(compute.getNames()[0]).getValue() + ".tap" + Twine(number)).str();
  return ComputeOp::create(
      builder, compute.getLoc(), names, extents, ArrayRef<Type>{result.getType()},
      ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
      [&](OpBuilder &body, Location loc, ValueRange places) {
        IRMapping mapping;
        mapping.map(compute.getIndex(sum.tap),
                    arith::ConstantIndexOp::create(body, loc, number).getResult());
        for (unsigned n = 0, own = 0; n < compute.getNumIndices(); ++n)
          if (n != sum.tap)
            mapping.map(compute.getIndex(n), places[own++]);
        YieldOp::create(body, loc, cloneSlice(body, result, compute.getBlock(), mapping));
      });
}

/// The sum of the tap that `places` of the compute op's indices ask for.
static Value selectTap(OpBuilder &builder, const TapSum &sum, ArrayRef<ComputeOp> taps,
                       SmallVector<Value> places, Value pad) {
  Location loc = ReduceOp(sum.reduce).getLoc();
  Value tap = places[sum.tap], result;
  places.erase(places.begin() + sum.tap);
  for (int64_t number = sum.count; number-- > 0;) {
    Value own = LoadOp::create(builder, loc, ComputeOp(taps[number])->getResult(0), places, pad);
    if (result) {
      Value wanted = arith::ConstantIndexOp::create(builder, loc, number);
      Value isOwn = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, tap, wanted);
      own = arith::SelectOp::create(builder, loc, isOwn, own, result);
    }
    result = own;
  }
  return result;
}

/// Takes the sums of `taps` where those of the compute op are read, or in it if its results are the
/// kernel's, or more than the sums.
static void readTaps(const TapSum &sum, ArrayRef<ComputeOp> taps) {
  ComputeOp compute = sum.compute;
  ReduceOp reduce = sum.reduce;
  const bool isRead = compute.getYield().getValues()[0] == reduce.getResult(0) &&
                      llvm::all_of(compute->getResult(0).getUsers(),
                                   [](Operation *user) { return isa<LoadOp>(user); });
  if (!isRead) {
    OpBuilder builder(reduce);
    Value own = selectTap(builder, sum, taps,
                          llvm::to_vector_of<Value>(compute.getBlock()->getArguments()), Value());
    reduce.replaceAllUsesWith(ValueRange{own});
    eraseDead(compute);
    return;
  }
  for (Operation *user : llvm::to_vector(compute->getResult(0).getUsers())) {
    auto load = cast<LoadOp>(user);
    OpBuilder builder(load);
    load.replaceAllUsesWith(
        selectTap(builder, sum, taps, llvm::to_vector(load.getIndices()), load.getPad()));
    load.erase();
  }
  compute.erase();
}

unsigned tk::separateTaps(KernelOp kernel) {
  if (kernel->hasAttr("tk.schedules"))
    return 0;
  unsigned numSeparated = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>())) {
    std::optional<TapSum> sum = match(kernel, compute);
    if (!sum)
      continue;
    note(sum->reduce, passName, Verdict::Derived,
         "the " + describe(sum->reduce) + " reads the same elements for each of " +
             Twine(sum->count) + " taps: one loop sums all of them");
    SmallVector<ComputeOp> taps;
    for (int64_t number = 0; number < sum->count; ++number)
      taps.push_back(createTap(*sum, number));
    readTaps(*sum, taps);
    ++numSeparated;
  }
  return numSeparated;
}
