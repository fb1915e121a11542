//===- SplitReductions.cpp - two-level reductions -------------------------===//
//
// A long reduction with few results runs in few blocks. This pass gives the reduction a second
// level: many blocks compute partial results, and a short reduction combines these.
//
// 1. Find compute ops with at most 64 results, or, on a GPU, column reductions whose columns give
//    too few blocks.
// 2. All reductions of the compute op must qualify. A reduction qualifies if it may have more than
//    `chunk` elements, if its bounds do not vary, and if its elements need no other reduction. The
//    sum of squared distances from another reduction's result, as in a variance, qualifies as well
//    (SquaredDistances.cpp).
// 3. Choose the index to cut and the length of a chunk (PlanParts.cpp). `split k = n` in a schedule
//    block sets n chunks instead, whatever the sizes are.
// 4. A new compute op with one more index, the chunk, computes the partial results.
// 5. The reduction then combines the partial results in a fixed order. Results therefore repeat bit
//    by bit.
// 6. If the index that was cut has too few values for as many blocks as the machine wants, another
//    index of the partial results is cut likewise.
//
// Before, rows of products and elements of reductions that have a key are sorted by it
// (SortRows.cpp, SortTerms.cpp), or counted by it (CountByDigits.cpp). Sums of larger or smaller
// elements are read from the sorted row (SumByRank.cpp), or compared with a limit by a threshold of
// the row (RankThresholds.cpp). A key that is arithmetic of
// an index becomes a range of that index (IndexKeys.cpp). Sums of products of three or more factors
// are computed pair by pair (OrderFactors.cpp). Sums of elements that decay with distance go over
// chunks (DecayedSums.cpp). Windows of several axes are reduced one axis after
// the other (SplitWindows.cpp). Behind, sums for each of few taps get a loop in common
// (SeparateTaps.cpp).
//
// The pass leaves products that tk-split-contractions cuts to that pass. It also declines online
// reductions, and a reduction that another compute op carries together with one that needs it
// (tk-split-chains).
//
//   %s = tk.compute [] {tk.reduce [sum] ["i"] from (0) to (%N) {x[i]}}
//     =>
//   %p = tk.compute ["i.chunk"] in (ceil(%N / 4096)) {tk.reduce [sum] ["i"] from (c * 4096) ..}
//   %s = tk.compute [] {tk.reduce [sum] ["i.chunk"] {p[i.chunk]}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/SplitReductions.h"
#include "passes/machine/limits/Splits.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/EqualComputes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/plan/ScheduleBlock.h"
#include "passes/tensor/keys/BoundTerms.h"
#include "passes/tensor/keys/CountByDigits.h"
#include "passes/tensor/keys/IndexKeys.h"
#include "passes/tensor/keys/RankThresholds.h"
#include "passes/tensor/keys/SortRows.h"
#include "passes/tensor/keys/SortTerms.h"
#include "passes/tensor/keys/SumByKey.h"
#include "passes/tensor/keys/SumByRank.h"
#include "passes/tensor/normalize/Simplify.h"
#include "passes/tensor/split/DecayedSums.h"
#include "passes/tensor/split/OrderAxes.h"
#include "passes/tensor/split/OrderFactors.h"
#include "passes/tensor/split/PlanParts.h"
#include "passes/tensor/split/SeparateTaps.h"
#include "passes/tensor/split/SplitContractions.h"
#include "passes/tensor/split/SplitWindows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace tk {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions";
using namespace limits::split_reductions;

/// Does another statement over the same indices have the same reduction, under which it takes
/// another? tk-merge-computes makes one of them, and tk-split-chains has states of both in parts.
static bool isCarriedElsewhere(ReduceOp reduce, ComputeOp compute) {
  for (ComputeOp other : compute->getBlock()->getOps<ComputeOp>()) {
    ScalarEquality equality;
    if (other == compute || !equality.equal(other.getExtents(), compute.getExtents()))
      continue;
    for (auto [a, b] :
         llvm::zip_equal(compute.getBlock()->getArguments(), other.getBlock()->getArguments()))
      equality.identify(a, b);
    SmallVector<ReduceOp> all(other.getBlock()->getOps<ReduceOp>());
    for (ReduceOp same : all)
      if (equality.equal(reduce.getOperation(), same.getOperation()) &&
          llvm::any_of(all, [&](ReduceOp next) {
            return next != same && haveSameRanges(next, same) && !matchSquaredDistance(next) &&
                   llvm::any_of(getInputs(next), [&](Value input) {
                     return Dependence(same.getResults()).on(input);
                   });
          }))
        return true;
  }
  return false;
}

/// Are the bounds of an index the same for all results?
static bool hasFixedBounds(ReduceOp reduce, unsigned index, ComputeOp compute) {
  return isKernelLevel(reduce.getLower()[index], compute) &&
         isKernelLevel(reduce.getUpper()[index], compute);
}

/// Why a reduction stays whole, or nothing. Of sums of columns another index may be cut already.
static std::optional<StringRef> whyNotSplit(ReduceOp reduce, ComputeOp compute, const Split &how) {
  if (reduce.isOnline())
    return StringRef("its partial results would not be numbers of the same kind");
  int64_t count = getUpperBound(reduce.getUpper()[how.position]);
  if (count >= 0 && count <= how.length && !isAskedInParts(reduce, compute))
    return StringRef("it is short");
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    if ((i == how.position || !runsAcross(reduce, compute)) && !hasFixedBounds(reduce, i, compute))
      return StringRef("its bounds vary");
  if (!isAskedInParts(reduce, compute) && isCarriedElsewhere(reduce, compute))
    return StringRef("another statement carries it beside one that needs it");
  std::optional<SquaredDistance> distance = matchSquaredDistance(reduce);
  for (Value input : getInputs(reduce)) {
    if (distance && input == distance->point)
      continue;
    for (Operation *op : getSlice(input, compute.getBlock()))
      if (op->getNumRegions())
        return StringRef("its terms need another reduction");
  }
  return std::nullopt;
}

/// Does a reduction read anything along one of its own indices?
static bool readsRows(ReduceOp reduce) {
  return reduce.getBody()
      .walk([&](LoadOp load) {
        auto last = load.getIndices().empty() ? BlockArgument()
                                              : dyn_cast<BlockArgument>(load.getIndices().back());
        return last && last.getOwner() == reduce.getBlock() ? WalkResult::interrupt()
                                                            : WalkResult::advance();
      })
      .wasInterrupted();
}

/// May blocks have tiles of the result, with rows and columns, rather than some columns? What lies
/// along the sum of a few results is read by all threads of a block.
static bool mayHaveTiles(ComputeOp compute, ArrayRef<ReduceOp> reduces) {
  if (compute.getNumIndices() < 2)
    return false;
  const int64_t rows = getUpperBound(compute.getExtents().drop_back().back()),
                columns = getUpperBound(compute.getExtents().back());
  return std::min(rows, columns) > 1 &&
         (rows * columns > limits::plan_parts::fewOutputs || llvm::none_of(reduces, readsRows));
}

namespace {
/// Splits the reductions of compute ops.
class ReductionSplitter {
public:
  explicit ReductionSplitter(int64_t chunk) : chunk(chunk) {}

  /// Those of a compute op, all or none; how many.
  unsigned splitAll(ComputeOp compute);
  /// Divides one more index of partial results, where the first has too few values for as many
  /// blocks as the machine wants: sums over images, rows and columns, for each
  /// channel of what lies channel by channel.
  unsigned splitPartials() {
    unsigned numSplit = 0;
    for (ComputeOp partial : llvm::to_vector(partials)) {
      auto reduces = partial.getBlock()->getOps<ReduceOp>();
      if (llvm::all_of(reduces, [&](ReduceOp reduce) {
            return reduce.getNumIndices() > 1 && runsAcross(reduce, partial) && !readsRows(reduce);
          }))
        numSplit += splitAll(partial);
    }
    return numSplit;
  }
  /// Takes sums of squared distances from sums that exist.
  void joinDistances() {
    for (ComputeOp partial : partials)
      llvm::any_of(distances, [&](ComputeOp other) { return replaceBySums(partial, other); });
  }

private:
  bool canSplitAll(ComputeOp compute, ArrayRef<ReduceOp> reduces, ArrayRef<Split> hows);
  void split(ReduceOp reduce, ComputeOp compute, Split how);
  Value chunkLength(OpBuilder &builder, ReduceOp reduce, ComputeOp compute, Value trip, Split how);

  int64_t chunk;
  SmallVector<ComputeOp> partials;  ///< statements of plain partial results
  SmallVector<ComputeOp> distances; ///< ... of squared distances
};

struct SplitReductionsPass : tk::impl::SplitReductionsBase<SplitReductionsPass> {
  using SplitReductionsBase::SplitReductionsBase;

  /// Sorts rows and elements that tables give a key. They share the orders of a kernel.
  void sortByKey(NamedPatterns &patterns) {
    SmallVector<KernelOp> kernels;
    getOperation()->walk([&](KernelOp kernel) { kernels.push_back(kernel); });
    patterns.run("histograms", [&] {
      for (KernelOp kernel : kernels)
        numSplit += sumByKey(kernel);
    });
    std::deque<RowOrders> orders(kernels.begin(), kernels.end());
    auto run = [&](StringRef name, llvm::function_ref<unsigned(KernelOp, RowOrders &)> sort) {
      patterns.run(name, [&] {
        for (auto [kernel, own] : llvm::zip_equal(kernels, orders))
          numSplit += sort(kernel, own);
      });
    };
    run("rows", sortRows);
    run("segments", sortTerms);
    for (RowOrders &own : orders)
      own.eraseUnused();
    for (auto [name, rewrite] :
         {std::pair("counts", &countByDigits), std::pair("key-ranges", &boundTerms),
          std::pair("thresholds", &findThresholds), std::pair("ranks", &sumByRank),
          std::pair("decays", &splitDecayedSums)})
      patterns.run(name, [&, rewrite = rewrite] {
        for (KernelOp kernel : kernels)
          numSplit += rewrite(kernel);
      });
  }

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    patterns.run("ranges", [&] {
      getOperation()->walk([&](KernelOp kernel) { numSplit += selectIndices(kernel); });
    });
    if (getOperation()->hasAttr(gpu::targetAttrName))
      sortByKey(patterns);
    patterns.run("contraction-order", [&] {
      getOperation()->walk([&](KernelOp kernel) { numSplit += orderFactors(kernel); });
    });
    if (getOperation()->hasAttr(gpu::targetAttrName))
      patterns.run("axis-order", [&] {
        getOperation()->walk([&](KernelOp kernel) { numSplit += orderAxes(kernel); });
      });
    patterns.run("windows", [&] {
      getOperation()->walk([&](KernelOp kernel) { numSplit += splitWindows(kernel); });
    });
    ReductionSplitter splitter(chunk);
    patterns.run("chunks", [&] {
      SmallVector<ComputeOp> computes;
      getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
      for (ComputeOp compute : computes)
        numSplit += splitter.splitAll(compute);
      numSplit += splitter.splitPartials();
    });
    if (getOperation()->hasAttr(gpu::targetAttrName))
      patterns.run("taps", [&] {
        getOperation()->walk([&](KernelOp kernel) { numSplit += separateTaps(kernel); });
      });
    patterns.run("distances", [&] { splitter.joinDistances(); });
    patterns.run("scans", [&] {
      getOperation()->walk([&](KernelOp kernel) { numSplit += splitScans(kernel); });
    });
  }
};
} // namespace

unsigned ReductionSplitter::splitAll(ComputeOp compute) {
  SmallVector<ReduceOp> reduces(compute.getBlock()->getOps<ReduceOp>());
  bool asked =
      llvm::any_of(reduces, [&](ReduceOp reduce) { return isAskedInParts(reduce, compute); });
  if (asked && reduces.size() == 1 && canSplitContraction(compute, reduces.front()))
    return 0;
  if (mayHaveTiles(compute, reduces) && countContractionParts(compute) > 1)
    return 0;
  SmallVector<Split> hows = howToSplit(compute, reduces, chunk);
  if (hows.empty() || !canSplitAll(compute, reduces, hows))
    return 0;
  for (auto [reduce, how] : llvm::zip_equal(reduces, hows))
    split(reduce, compute, how);
  return reduces.size();
}

unsigned tk::splitInChunks(ComputeOp compute) {
  return ReductionSplitter(termsOfChunk).splitAll(compute);
}

/// One loop that stays whole takes as long as all of them.
bool ReductionSplitter::canSplitAll(ComputeOp compute, ArrayRef<ReduceOp> reduces,
                                    ArrayRef<Split> hows) {
  bool allSplit = true;
  for (auto [reduce, how] : llvm::zip_equal(reduces, hows))
    if (auto why = whyNotSplit(reduce, compute, how)) {
      note(reduce, passName, Verdict::Declined,
           "the " + describe(reduce) + " stays whole: " + *why);
      allSplit = false;
    }
  return allSplit;
}

/// How many values of the divided index one part takes in.
Value ReductionSplitter::chunkLength(OpBuilder &builder, ReduceOp reduce, ComputeOp compute,
                                     Value trip, Split how) {
  Location loc = reduce.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  if (!how.parts)
    return constant(how.length);
  int64_t unit = how.unit ? how.unit : reduce.getNumIndices() == 1 ? partAlignment : 1;
  Value padded = arith::AddIOp::create(builder, loc, trip, constant(how.parts * unit - 1));
  Value units = FloorDivOp::create(builder, loc, padded, constant(how.parts * unit));
  // At least one: where there are no terms, their number is still divided by it.
  units = arith::MaxSIOp::create(builder, loc, units, constant(1));
  return arith::MulIOp::create(builder, loc, units, constant(unit));
}

void ReductionSplitter::split(ReduceOp reduce, ComputeOp compute, Split how) {
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  IRMapping hoisted;
  Value lower = cloneSlice(builder, reduce.getLower()[how.position], compute.getBlock(), hoisted);
  Value upper = cloneSlice(builder, reduce.getUpper()[how.position], compute.getBlock(), hoisted);
  Value trip = builder.createOrFold<arith::SubIOp>(loc, upper, lower);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  trip = arith::MaxSIOp::create(builder, loc, trip, zero);
  Value length = chunkLength(builder, reduce, compute, trip, how);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value round = builder.createOrFold<arith::SubIOp>(loc, length, one);
  Value padded = arith::AddIOp::create(builder, loc, trip, round);
  Value numChunks = FloorDivOp::create(builder, loc, padded, length);
  if (how.parts) {
    Value most = arith::ConstantIndexOp::create(builder, loc, how.parts);
    numChunks = arith::MinSIOp::create(builder, loc, numChunks, most);
  }
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " is computed from partial results");
  const Parts parts{lower, upper, length, numChunks, how};
  Value combined;
  if (matchSquaredDistance(reduce)) {
    SplitDistance distance = splitSquaredDistance(reduce, compute, parts);
    if (ComputeOp equal = findEqual(distances, distance.partial)) {
      distance.partial->replaceAllUsesWith(equal);
      distance.partial.erase();
    } else {
      distances.push_back(distance.partial);
    }
    combined = distance.combined;
  } else {
    combined = splitPlain(reduce, compute, parts, partials);
  }
  reduce.getResult(0).replaceAllUsesWith(combined);
  reduce.erase();
}
