//===- FlattenWindows.cpp - convolutions become matrix products -----------===//
//
// A convolution sums `x[c, a + r, b + s] * w[o, c, r, s]` over channels `c` and taps `r`, `s`. The
// pixels of all axes can be counted by one number `q`, in image rows that include the border the
// taps reach. A tap is then a constant distance in `q`. The sum becomes a matrix product whose
// operand rows are `q + distance`, and TMA loads can fetch these rows as boxes.
//
// 1. Find convolutions in f32, tf32, f16 or bf16 (WindowSums.cpp), without wgmma those in 16 bits
//    alone. A factor that is rounded to 16 bits is stored (RoundedFactor.cpp).
// 2. Store the image in the order [part, slab, q, lane]. A slab holds one slice of the channels;
//    with stride s it holds every s-th pixel along each axis. Positions outside of the tensor hold
//    the value that the kernel reads there. f32 is stored by the bf16x3 decomposition
//    (SplitSignificands.cpp), without a scale for each row, because windows share elements. Numbers
//    below 2^-110 then have an absolute error of up to 2^-134.
// 3. Store the weights in the order [part, tap and slice, row, lane].
// 4. Store the product for all `q`. Its reduction runs over pairs of parts, taps, slices and lanes.
//    The `q` between two image rows give results that nothing reads. tf32 and 16-bit types have one
//    part. Their epilogue is fused into the product if it reads nothing that depends on the pixel.
//    The pairs of one step share the parts that they multiply (tk-tile).
// 5. The original compute op reads the product at its pixels.
// 6. If there are few channels, the taps of some axes count as channels (im2col along these axes).
//    If there are few tiles, the product is split-K, and the compute op adds the parts.
//    Blocks also share the channels of 16-bit operands that are read where they lie
//    (ShareChannels.cpp).
//    If a batch has few rows and channels, several of its groups are one product, whose weights are
//    0 between groups. If the phases of a transposed convolution have few rows each, they are rows
//    of one product, whose weights are 0 at taps of other phases. Results that are NaN are computed
//    again, since 0 times infinity is NaN.
//    Products over the same windows store these once (EqualOperands.cpp).
//    A sum over pixels, such as a gradient by weights, counts these as its terms (CountTerms.cpp).
// 7. Other sums in f32 whose indices are all short get one index that counts all terms. CUDA cores
//    multiply slices of it.
//
// The pass declines if the predicted time of the sum is below 20 us, or not above that of the
// product (WindowCost.cpp). It leaves kernels with a schedule block alone.
//
//   %y = tk.compute ["o", "a", "b"] {tk.reduce [sum] ["c", "r", "s"] {
//          x[c, a + r, b + s] * w[o, c, r, s]}}
//     =>
//   %x = tk.compute ["slab", "q", "part", "lane"] {part of x[slab * 64 + lane, q / %W, q % %W]}
//   %w = tk.compute ["tap", "o", "part", "lane"] {part of w[o, lane, tap / %S, tap % %S]}
//   %z = tk.compute ["o", "q"] {tk.reduce [sum] ["step", "pair", "lane"] {
//          %x[right(pair), slab(step), q + distance(step), lane] *
//          %w[left(pair), tap(step), o, lane]} precision <blocked>}
//   %y = tk.compute ["o", "a", "b"] {%z[o, a * %W + b]}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/limits/Windows.h"
#include "passes/tensor/normalize/PadConditions.h"
#include "passes/tensor/normalize/Simplify.h"
#include "passes/tensor/split/SignificandParts.h"
#include "passes/tensor/windows/CountedTerms.h"
#include "passes/tensor/windows/EqualOperands.h"
#include "passes/tensor/windows/FlattenedSum.h"
#include "passes/tensor/windows/RoundedFactor.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

namespace tk {
#define GEN_PASS_DEF_FLATTENWINDOWS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using limits::window_cost::timeOfWarps;

static constexpr llvm::StringLiteral passName = "tk-flatten-windows";
using namespace limits::flatten_windows;

/// Is the statement's last index one of the weights' rows?
bool FlattenedSum::isRowInnermost() {
  return llvm::is_contained(sum.rows, sum.compute.getBlock()->getArguments().back());
}

/// The product of one tap and slice (`step`), pair of parts, if there are parts, and lane. `own` is
/// the batch, or the phase, if there is one, the row and the pixel; along each axis there are
/// `counts` taps.
Value FlattenedSum::createTerm(Arithmetic at, ArrayRef<Value> factors, ArrayRef<Value> own,
                               ArrayRef<Value> counts, Value step, Value pair, Value lane) {
  SmallVector<Value> tap = at.digits(at.div(step, slices), counts);
  const StoredPlace place = placeOf(at, tap);
  Value slice = at.mod(step, slices);
  Value slab = at.add(at.mul(place.residue, slices), slice);
  Value pixel = at.add(own.back(), place.distance);
  auto partOf = [&](bool isLeft) {
    return pair ? createPartOfPair(at.builder, loc, pair, isLeft) : at.number(0);
  };
  SmallVector<Value> ofWindows = {partOf(false)}, ofWeights = {partOf(true)};
  if (!sum.batches.empty())
    ofWindows.push_back(own[0]);
  if (own.size() > 2)
    ofWeights.push_back(own[0]);
  ofWindows.append({slab, pixel, lane});
  ofWeights.append(
      {at.add(at.mul(at.countOf(tap, tapExtents), slices), slice), own[own.size() - 2], lane});
  Value wide[2];
  for (const auto &[side, indices] : {std::pair(0, ofWindows), std::pair(1, ofWeights)}) {
    wide[side] = LoadOp::create(at.builder, loc, factors[side], indices, Value());
    if (!wide[side].getType().isF32())
      wide[side] = arith::ExtFOp::create(at.builder, loc, at.builder.getF32Type(), wide[side]);
  }
  const bool isLeft = isRowInnermost();
  return arith::MulFOp::create(at.builder, loc, wide[isLeft ? 0 : 1], wide[isLeft ? 1 : 0]);
}

/// The product for all pixels, as [share, batch or phase, row, q], or with the last two exchanged
/// where the statement's results are rows by rows of the weights.
Value FlattenedSum::storeProduct(ArrayRef<Value> factors) {
  Arithmetic outside{before, loc};
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  if (plan.shares > 1) {
    names.push_back("share");
    extents.push_back(outside.number(plan.shares));
  }
  addOuter(names, extents);
  const bool isTurned = isRowInnermost();
  names.append(isTurned ? std::initializer_list<StringRef>{"q", "row"}
                        : std::initializer_list<StringRef>{"row", "q"});
  extents.append(isTurned ? std::initializer_list<Value>{pixels, rows}
                          : std::initializer_list<Value>{rows, pixels});
  Value lanes = outside.number(plan.slice), zero = outside.number(0);
  std::string name = nameOf(".flat");
  Type type =
      endsWithProduct() ? sum.compute.getYield().getValues()[0].getType() : before.getF32Type();
  auto statement = ComputeOp::create(
      before, loc, names, extents, ArrayRef<Type>{type}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location, ValueRange places) {
        Arithmetic at{body, loc};
        SmallVector<Value> own(plan.shares > 1 ? places.drop_front() : places);
        if (isTurned)
          std::swap(own[own.size() - 1], own[own.size() - 2]);
        IRMapping mapping;
        if (own.size() > 2)
          mapOuter(at, own[0], mapping);
        SmallVector<Value> counts = tapExtents;
        if (!sum.phases.empty())
          for (auto [axis, count] : llvm::zip_equal(sum.axes, counts))
            count = cloneFrom(body, sum.extentOf(axis.tap), sum.compute, mapping);
        Value count = at.mul(at.product(counts), slices);
        Value first = at.number(0);
        if (plan.shares > 1) {
          // The last shares may have fewer steps, or none.
          Value most = at.div(at.add(count, at.number(plan.shares - 1)), at.number(plan.shares));
          first = at.mul(places[0], most);
          count = at.min(most, at.sub(count, first));
        }
        SmallVector<StringRef> terms = {"step"};
        SmallVector<Value> lengths = {count};
        if (sum.isInParts()) {
          terms.push_back("pair");
          lengths.push_back(at.number(countPairs));
        }
        terms.push_back("lane");
        lengths.push_back(lanes);
        auto product = ReduceOp::create(
            body, loc, ReduceKind::Sum, terms, SmallVector<Value>(terms.size(), zero), lengths,
            before.getF32Type(),
            [&](OpBuilder &inner, Location, ValueRange indices) {
              Arithmetic in{inner, loc};
              return createTerm(in, factors, own, counts, in.add(first, indices[0]),
                                sum.isInParts() ? indices[1] : Value(), indices.back());
            },
            sum.isInParts() ? Precision::Blocked : sum.reduce.getPrecision());
        Value result = product.getResult(0);
        if (endsWithProduct()) {
          mapping.map(sum.reduce.getResult(0), result);
          mapRows(at, own[0], own[own.size() - 2], mapping);
          result = cloneFrom(body, sum.compute.getYield().getValues()[0], sum.compute, mapping);
        }
        YieldOp::create(body, loc, result);
      });
  return statement->getResult(0);
}

/// The product at `indices`, of all shares together: few are added up term by term.
Value FlattenedSum::readProduct(Arithmetic at, Value product, ArrayRef<Value> indices) {
  auto load = [&](OpBuilder &builder, Value share) -> Value {
    SmallVector<Value> place(indices);
    if (share)
      place.insert(place.begin(), share);
    return LoadOp::create(builder, loc, product, place, Value());
  };
  if (plan.shares == 1)
    return load(at.builder, Value());
  if (plan.shares > mostAddedOneByOne) {
    auto all = ReduceOp::create(
        at.builder, loc, ReduceKind::Sum, ArrayRef<StringRef>{"share"}, ValueRange{at.number(0)},
        ValueRange{at.number(plan.shares)}, at.builder.getF32Type(),
        [&](OpBuilder &inner, Location, ValueRange share) { return load(inner, share[0]); });
    return all.getResult(0);
  }
  Value result;
  for (int64_t share = 0; share < plan.shares; ++share) {
    Value part = load(at.builder, at.number(share));
    result = result ? createCombination(at.builder, loc, ReduceKind::Sum, result, part) : part;
  }
  return result;
}

void FlattenedSum::rewrite() {
  note(sum.reduce, passName, Verdict::Derived,
       "the " + describe(sum.reduce) +
           " is a matrix product whose columns are all padded pixels of an image, row after row" +
           (sum.isInParts() ? ", in three parts in bf16 of each f32 number, on the matrix unit"
                            : ""));
  Value windows = storeWindows(), weights = storeWeights();
  Value product = storeProduct({windows, weights});
  OpBuilder builder(sum.compute.getYield());
  if (!endsWithProduct() || isChecked())
    builder.setInsertionPoint(sum.reduce);
  Arithmetic at{builder, loc};
  SmallVector<Value> indices(llvm::to_vector_of<Value>(sum.batches)), ofRows;
  if (plan.groups > 1) {
    Value count = at.number(plan.groups);
    ofRows.push_back(at.mod(indices[0], count));
    indices[0] = at.div(indices[0], count);
  }
  llvm::append_range(ofRows, sum.rows);
  if (!sum.phases.empty())
    indices.push_back(at.countOf(llvm::to_vector_of<Value>(sum.phases), phaseExtents));
  indices.push_back(at.countOf(ofRows, rowExtents));
  indices.push_back(at.countOf(llvm::to_vector_of<Value>(sum.pixels), pixelExtents));
  if (isRowInnermost())
    std::swap(indices[indices.size() - 1], indices[indices.size() - 2]);
  Value result = readProduct(at, product, indices);
  if (isChecked()) {
    if (!sum.isInParts())
      readStoredWindows(windows);
    if (!result.getType().isF32())
      result = arith::ExtFOp::create(builder, loc, builder.getF32Type(), result);
    computeNaNAgain(sum.reduce, result);
  } else if (endsWithProduct())
    sum.compute.getYield()->setOperand(0, result);
  else
    sum.reduce.replaceAllUsesWith(ValueRange{result});
  eraseDead(sum.compute);
}

/// Counts the terms of `reduce` through by one index.
static void countThrough(ReduceOp reduce) {
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  Arithmetic outside{builder, loc};
  SmallVector<Value> extents(reduce.getUpper());
  std::string name;
  for (Attribute index : reduce.getIndexNames())
    name += (name.empty() ? "" : ".") + cast<StringAttr>(index).getValue().str();
  auto whole = ReduceOp::create(
      builder, loc, ReduceKind::Sum, ArrayRef<StringRef>{name}, ValueRange{outside.number(0)},
      ValueRange{outside.product(extents)}, reduce.getResult(0).getType(),
      [&](OpBuilder &inner, Location, ValueRange index) -> Value {
        IRMapping mapping;
        SmallVector<Value> digits = Arithmetic{inner, loc}.digits(index[0], extents);
        for (auto [n, digit] : llvm::enumerate(digits))
          mapping.map(reduce.getIndex(n), digit);
        for (Operation &op : reduce.getBlock()->without_terminator())
          inner.clone(op, mapping);
        return mapping.lookup(reduce.getYield().getValues()[0]);
      },
      reduce.getPrecision());
  reduce.replaceAllUsesWith(whole.getResults());
  reduce.erase();
}

namespace {

struct FlattenWindows : tk::impl::FlattenWindowsBase<FlattenWindows> {
  using FlattenWindowsBase::FlattenWindowsBase;
  bool onWarpgroups = false;

  /// The time of a product that warpgroups compute in `time`: without them, warps do.
  double timeHere(double time) const { return onWarpgroups ? time : timeOfWarps * time; }

  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    if (!target)
      return;
    onWarpgroups = target.getHopper();
    getOperation()->walk([&](KernelOp kernel) {
      if (kernel->hasAttr("tk.schedules"))
        return; // its blocks name indices, and say what becomes of each
      bool isAnyFlat = false;
      for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
        for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
          isAnyFlat |= flattenRounded(kernel, compute, reduce, target.getProcessors());
      if (isAnyFlat)
        shareEqualOperands(kernel);
    });
  }

  /// A factor that is rounded to 16 bits where it is read is stored so, if the sum is flattened
  /// then. Returns whether it is.
  bool flattenRounded(KernelOp kernel, ComputeOp compute, ReduceOp reduce, int64_t processors) {
    std::optional<RoundedFactor> rounded = RoundedFactor::of(compute, reduce);
    const bool isFlat = flatten(kernel, compute, reduce, processors, rounded.has_value());
    if (rounded)
      isFlat ? rounded->keep() : rounded->undo();
    return isFlat;
  }

  /// True if the sum's factors are to be stored as they are multiplied.
  bool flatten(KernelOp kernel, ComputeOp compute, ReduceOp reduce, int64_t processors,
               bool isRounded) {
    std::optional<WindowSum> sum = readWindowSum(kernel, compute, reduce);
    // Warps multiply no parts of f32.
    if (!sum || (!onWarpgroups && sum->isInParts()))
      return false;
    if (!always && isCopiedAsItLies(*sum)) {
      note(reduce, passName, Verdict::Declined,
           "the " + describe(reduce) + " stays as it is: bulk copies bring its windows");
      if (const int64_t channelShares = planChannelShares(*sum, processors); channelShares > 1) {
        note(reduce, passName, Verdict::Derived,
             "the " + describe(reduce) + " has few tiles: blocks divide its channels into " +
                 Twine(channelShares) + " shares");
        shareChannels(*sum, channelShares);
        ++numSums;
        return true;
      }
      // One loop goes through the window's elements and their channels, a slice of these at a time.
      auto channel = cast<BlockArgument>(sum->window.getIndices().back());
      if (unsigned last = reduce.getNumIndices() - 1; channel.getArgNumber() < last)
        moveIndex(reduce, channel.getArgNumber(), last);
      return true;
    }
    std::optional<WindowPlan> plan = planWindowSum(*sum, processors);
    if (countsTerms(*sum, plan, processors))
      return true;
    if (always)
      plan = WindowPlan{static_cast<unsigned>(unrolled), slice, shares, 0};
    else if (!plan)
      return false;
    else if (const double written = timeAsWritten(*sum, processors);
             written < cost::leastTimeToFlatten || timeHere(plan->time) >= written) {
      note(reduce, passName, Verdict::Declined,
           "the " + describe(reduce) + " would take about " +
               Twine(std::llround(timeHere(plan->time) / 1000)) + " us as a product, and " +
               Twine(std::llround(written / 1000)) + " us as it is");
      if (hasShortIndices(*sum) && !isRounded)
        countThrough(reduce);
      return isRounded && written > launchesOfRounding * cost::launch;
    }
    FlattenedSum(*sum, *plan).rewrite();
    ++numSums;
    return true;
  }

  /// Counts the terms of a sum over pixels through, if that takes less time than the product of
  /// `plan` and than the sum as it is.
  bool countsTerms(const WindowSum &sum, const std::optional<WindowPlan> &plan,
                   int64_t processors) {
    std::optional<CountedSum> counted = readCountedSum(sum);
    if (!counted)
      return false;
    std::optional<TermPlan> terms = planCountedSum(*counted, processors);
    if (always) {
      terms = TermPlan{counted->isStored ? static_cast<unsigned>(unrolled) : 0, shares, 0};
      if (counted->batch || !areWindowsInReach(*counted, terms->unrolled))
        return false;
    } else if (!terms || (plan && !counted->batch && plan->time <= terms->time) ||
               timeAsWritten(sum, processors) <=
                   std::max(timeHere(terms->time), double(cost::leastTimeToFlatten))) {
      return false;
    }
    note(sum.reduce, passName, Verdict::Derived,
         "the " + describe(sum.reduce) +
             " is a matrix product over all padded pixels of an image, row after row, in " +
             Twine(terms->shares) + (terms->shares == 1 ? " share" : " shares"));
    countTerms(*counted, *terms);
    ++numSums;
    return true;
  }
};

} // namespace
