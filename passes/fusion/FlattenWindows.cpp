//===- FlattenWindows.cpp - sums over windows become products -------------===//
//
// A sum over windows, such as a convolution, multiplies elements of a tensor at p + r, where p is a
// place (a pixel's row or column) and r a tap of the window, by weights. If the places of all axes
// are counted through as one number q, in rows that are as long as places and taps reach, then a
// tap is a distance in q: the sum is a product of rows q + distance, which copies bring as boxes.
//
// 1. Take sums over windows in f32 (WindowSums.cpp) where that saves time (WindowCost.cpp).
// 2. The windows' tensor is stored once more, in three parts in bf16 (SplitSignificands.cpp) and in
//    the order [part, slab, q, lane]. A slab holds one slice of the channels, and, where windows
//    move by s, every s-th place along each axis. What lies outside of the tensor is what the
//    program reads there. Parts are of the numbers as they are: windows share their elements, so
//    that a scale could not be one row's. Numbers below 2^-110 have an error of 2^-134.
// 3. The weights are stored in the order [part, tap and slice, row, lane].
// 4. The product of both, over pairs of parts, taps and slices, and over the lanes of a slice, is
//    stored for all q. Those between two rows of places are computed for nothing.
// 5. The statement reads the product at its places. What follows the sum stays there.
// 6. Of few channels the taps of some axes are channels: their windows are stored tap by tap.
//    Where tiles are few, pairs of parts are shared out among blocks, whose sums the statement
//    adds.
//
//   %y = tk.compute ["o", "a", "b"] {tk.reduce [sum] ["c", "r", "s"] {
//          x[c, a + r, b + s] * w[o, c, r, s]}}
//     =>
//   %x = tk.compute ["slab", "q", "part", "lane"] {part of x[slab * 64 + lane, q / %W, q % %W]}
//   %w = tk.compute ["tap", "o", "part", "lane"] {part of w[o, lane, tap / %S, tap % %S]}
//   %z = tk.compute ["o", "q"] {tk.reduce [sum] ["step", "lane"] {
//          %x[left(step), slab(step), q + distance(step), lane] *
//          %w[right(step), tap(step), o, lane]} precision <blocked>}
//   %y = tk.compute ["o", "a", "b"] {%z[o, a * %W + b]}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/fusion/IndexArithmetic.h"
#include "passes/fusion/PadFactors.h"
#include "passes/fusion/SignificandParts.h"
#include "passes/fusion/WindowSums.h"
#include "passes/tiling/SizeFacts.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tk {
#define GEN_PASS_DEF_FLATTENWINDOWS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-flatten-windows";
/// The pixels of a product are a multiple of the widest tile.
static constexpr int64_t columnsOfTile = 256;

namespace {

/// One sum over windows, and how it becomes a product. Extents are numbers of the launch.
class FlattenedSum {
public:
  FlattenedSum(const WindowSum &sum, const WindowPlan &plan);
  void rewrite();

private:
  std::string nameOf(StringRef suffix);
  SmallVector<Value> extentsOf(ArrayRef<BlockArgument> indices);
  void mapChannels(Arithmetic at, Value channel, IRMapping &mapping);
  Value storeWindows();
  Value storeWeights();
  Value createElement(Arithmetic at, Value load, Value channel, ValueRange places);
  Value storeProduct(Value windows, Value weights);
  Value createTerm(Arithmetic at, Value windows, Value weights, ValueRange own, Value step,
                   Value lane);
  bool isRowInnermost();

  WindowSum sum;
  WindowPlan plan;
  Location loc;
  OpBuilder before; ///< at the statement
  SmallVector<Value> batchExtents, rowExtents, pixelExtents, channelExtents, tapExtents, residues;
  Value slices, taps, channels, reach, pixels, rows;
};

} // namespace

FlattenedSum::FlattenedSum(const WindowSum &given, const WindowPlan &plan)
    : sum(given), plan(plan), loc(given.reduce->getLoc()), before(given.compute) {
  for (unsigned n = sum.axes.size(); n-- > 0;)
    if (plan.unrolled >> n & 1)
      sum.unroll(n);
  Arithmetic at{before, loc};
  batchExtents = extentsOf(sum.batches);
  rowExtents = extentsOf(sum.rows);
  channelExtents = extentsOf(sum.channels);
  // How far taps reach along each axis, and how many of the places between two windows they read.
  for (BlockArgument index : sum.pixels) {
    Value extent = sum.extentOf(index);
    if (const WindowAxis *axis = sum.axisOf(index)) {
      Value count = sum.extentOf(axis->tap), stride = at.number(axis->stride);
      Value last = at.mul(at.sub(count, at.number(1)), at.number(axis->dilation));
      extent = at.add(extent, at.div(last, stride));
      tapExtents.push_back(count);
      const bool readsFew = axis->dilation == 1 && axis->stride > 1;
      residues.push_back(readsFew ? at.min(stride, count) : stride);
    }
    pixelExtents.push_back(extent);
  }
  rows = at.product(rowExtents);
  channels = at.product(channelExtents);
  taps = at.product(tapExtents);
  slices = at.div(at.add(channels, at.number(plan.slice - 1)), at.number(plan.slice));
  pixels = createMultiple(before, loc, at.product(pixelExtents), columnsOfTile);
  // The last tap is so far behind a place.
  SmallVector<Value> last;
  for (BlockArgument index : sum.pixels) {
    const WindowAxis *axis = sum.axisOf(index);
    last.push_back(axis ? at.sub(pixelExtents[last.size()], sum.extentOf(index)) : at.number(0));
  }
  reach = at.add(pixels, at.countOf(last, pixelExtents));
}

std::string FlattenedSum::nameOf(StringRef suffix) {
  return (cast<StringAttr>(sum.compute.getNames()[0]).getValue() + suffix).str();
}

SmallVector<Value> FlattenedSum::extentsOf(ArrayRef<BlockArgument> indices) {
  return llvm::map_to_vector(indices, [&](BlockArgument index) { return sum.extentOf(index); });
}

/// The channels' indices, and taps that are channels, from where one is counted.
void FlattenedSum::mapChannels(Arithmetic at, Value channel, IRMapping &mapping) {
  for (auto [index, digit] : llvm::zip_equal(sum.channels, at.digits(channel, channelExtents)))
    mapping.map(index, digit);
}

/// Part `places[part]` of `element`, an f32 number, or 0 behind the last channel.
Value FlattenedSum::createElement(Arithmetic at, Value element, Value channel, ValueRange places) {
  if (getSizeFact(sum.kernel, channels).divisor % plan.slice != 0) {
    Value inside =
        arith::CmpIOp::create(at.builder, loc, arith::CmpIPredicate::slt, channel, channels);
    element =
        arith::SelectOp::create(at.builder, loc, inside, element, createF32(at.builder, loc, 0));
  }
  return createPart(at.builder, loc, element, places[places.size() - 3], /*isBounded=*/false);
}

/// The axes of what is stored in parts, of indices [batch, slab, part, row, lane] with so many
/// batches: parts are computed one behind the other of what is read once, and lie apart.
static SmallVector<unsigned> partFirst(unsigned batches) {
  SmallVector<unsigned> order = {batches + 1};
  if (batches)
    order.push_back(0);
  order.append({batches, batches + 2, batches + 3});
  return order;
}

/// The windows' tensor as [part, batch, slab, q, lane].
Value FlattenedSum::storeWindows() {
  Arithmetic outside{before, loc};
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  if (!batchExtents.empty()) {
    names.push_back("batch");
    extents.push_back(batchExtents[0]);
  }
  const unsigned first = extents.size();
  names.append({"slab", "part", "q", "lane"});
  extents.append({outside.mul(outside.product(residues), slices), outside.number(countParts), reach,
                  outside.number(plan.slice)});
  SmallVector<unsigned> order = partFirst(first);
  std::string name = nameOf(".windows");
  auto statement = ComputeOp::create(
      before, loc, names, extents, ArrayRef<Type>{before.getBF16Type()}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{order}, [&](OpBuilder &body, Location, ValueRange places) {
        Arithmetic at{body, loc};
        IRMapping mapping;
        if (first)
          mapping.map(sum.batches[0], places[0]);
        Value slab = places[first];
        Value channel = at.add(at.mul(at.mod(slab, slices), at.number(plan.slice)), places.back());
        mapChannels(at, channel, mapping);
        SmallVector<Value> offsets = at.digits(at.div(slab, slices), residues);
        for (auto [index, place] :
             llvm::zip_equal(sum.pixels, at.digits(places[first + 2], pixelExtents)))
          mapping.map(index, place);
        for (const WindowAxis &axis : sum.axes)
          mapping.map(axis.tap,
                      axis.isTurned ? at.sub(sum.extentOf(axis.tap), at.number(1)) : at.number(0));
        SmallVector<Value> indices;
        for (Value index : sum.window.getIndices())
          indices.push_back(cloneFrom(body, index, sum.compute, mapping));
        for (auto [axis, offset] : llvm::zip_equal(sum.axes, offsets))
          indices[axis.axis] = at.add(indices[axis.axis], offset);
        Value pad = sum.window.getPad();
        pad = pad ? cloneFrom(body, pad, sum.compute, mapping) : createF32(body, loc, 0);
        Value element = LoadOp::create(body, loc, sum.window.getTensor(), indices, pad);
        YieldOp::create(body, loc, createElement(at, element, channel, places));
      });
  return statement->getResult(0);
}

/// The weights as [part, batch, tap and slice, row, lane].
Value FlattenedSum::storeWeights() {
  Arithmetic outside{before, loc};
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  if (!batchExtents.empty()) {
    names.push_back("batch");
    extents.push_back(batchExtents[0]);
  }
  const unsigned first = extents.size();
  names.append({"tap", "part", "row", "lane"});
  extents.append(
      {outside.mul(taps, slices), outside.number(countParts), rows, outside.number(plan.slice)});
  SmallVector<unsigned> order = partFirst(first);
  std::string name = nameOf(".weights");
  auto statement = ComputeOp::create(
      before, loc, names, extents, ArrayRef<Type>{before.getBF16Type()}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{order}, [&](OpBuilder &body, Location, ValueRange places) {
        Arithmetic at{body, loc};
        IRMapping mapping;
        if (first)
          mapping.map(sum.batches[0], places[0]);
        Value slice = at.mod(places[first], slices);
        Value channel = at.add(at.mul(slice, at.number(plan.slice)), places.back());
        mapChannels(at, channel, mapping);
        SmallVector<Value> own = at.digits(at.div(places[first], slices), tapExtents);
        for (auto [axis, tap] : llvm::zip_equal(sum.axes, own)) {
          Value last = at.sub(sum.extentOf(axis.tap), at.number(1));
          mapping.map(axis.tap, axis.isTurned ? at.sub(last, tap) : tap);
        }
        for (auto [index, row] :
             llvm::zip_equal(sum.rows, at.digits(places[first + 2], rowExtents)))
          mapping.map(index, row);
        SmallVector<Value> indices;
        for (Value index : sum.weights.getIndices())
          indices.push_back(cloneFrom(body, index, sum.compute, mapping));
        // Behind the last channel indices may leave the tensor.
        Value pad = sum.weights.getPad();
        pad = pad ? cloneFrom(body, pad, sum.compute, mapping) : createF32(body, loc, 0);
        Value element = LoadOp::create(body, loc, sum.weights.getTensor(), indices, pad);
        YieldOp::create(body, loc, createElement(at, element, channel, places));
      });
  return statement->getResult(0);
}

/// Is the statement's last index one of the weights' rows?
bool FlattenedSum::isRowInnermost() {
  return llvm::is_contained(sum.rows, sum.compute.getBlock()->getArguments().back());
}

/// The product of one pair of parts, tap and slice (`step`) and one lane. `own` is the batch, if
/// there is one, the row and the pixel.
Value FlattenedSum::createTerm(Arithmetic at, Value windows, Value weights, ValueRange own,
                               Value step, Value lane) {
  Value steps = at.mul(taps, slices);
  Value pair = at.div(step, steps), tapAndSlice = at.mod(step, steps);
  SmallVector<Value> distances, offsets,
      tapsOfAxes = at.digits(at.div(tapAndSlice, slices), tapExtents);
  unsigned n = 0;
  for (BlockArgument index : sum.pixels) {
    const WindowAxis *axis = sum.axisOf(index);
    if (!axis) {
      distances.push_back(at.number(0));
      continue;
    }
    Value distance = at.mul(tapsOfAxes[n++], at.number(axis->dilation));
    distances.push_back(at.div(distance, at.number(axis->stride)));
    offsets.push_back(at.mod(distance, at.number(axis->stride)));
  }
  Value slab = at.add(at.mul(at.countOf(offsets, residues), slices), at.mod(tapAndSlice, slices));
  Value pixel = at.add(own.back(), at.countOf(distances, pixelExtents));
  SmallVector<Value> left = {createPartOfPair(at.builder, loc, pair, /*isLeft=*/true)};
  SmallVector<Value> right = {createPartOfPair(at.builder, loc, pair, /*isLeft=*/false)};
  if (own.size() > 2) {
    left.push_back(own[0]);
    right.push_back(own[0]);
  }
  left.append({tapAndSlice, own[own.size() - 2], lane});
  right.append({slab, pixel, lane});
  Value wide[2];
  for (const auto &[side, tensor, indices] :
       {std::tuple(0, weights, left), std::tuple(1, windows, right)}) {
    Value part = LoadOp::create(at.builder, loc, tensor, indices, Value());
    wide[side] = arith::ExtFOp::create(at.builder, loc, at.builder.getF32Type(), part);
  }
  if (isRowInnermost())
    std::swap(wide[0], wide[1]);
  return arith::MulFOp::create(at.builder, loc, wide[0], wide[1]);
}

/// The product for all pixels, as [share, batch, row, q], or with the last two exchanged where the
/// statement's results are rows by rows of the weights.
Value FlattenedSum::storeProduct(Value windows, Value weights) {
  Arithmetic outside{before, loc};
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  if (plan.shares > 1) {
    names.push_back("share");
    extents.push_back(outside.number(plan.shares));
  }
  if (!batchExtents.empty()) {
    names.push_back("batch");
    extents.push_back(batchExtents[0]);
  }
  const bool isTurned = isRowInnermost();
  names.append(isTurned ? std::initializer_list<StringRef>{"q", "row"}
                        : std::initializer_list<StringRef>{"row", "q"});
  extents.append(isTurned ? std::initializer_list<Value>{pixels, rows}
                          : std::initializer_list<Value>{rows, pixels});
  Value count = outside.mul(outside.number(countPairs / plan.shares), outside.mul(taps, slices));
  Value lanes = outside.number(plan.slice), zero = outside.number(0);
  std::string name = nameOf(".flat");
  auto statement = ComputeOp::create(
      before, loc, names, extents, ArrayRef<Type>{before.getF32Type()}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location, ValueRange places) {
        SmallVector<Value> own(plan.shares > 1 ? places.drop_front() : places);
        if (isTurned)
          std::swap(own[own.size() - 1], own[own.size() - 2]);
        Value first = plan.shares > 1 ? Arithmetic{body, loc}.mul(places[0], count) : Value();
        auto product = ReduceOp::create(
            body, loc, ReduceKind::Sum, ArrayRef<StringRef>{"step", "lane"}, ValueRange{zero, zero},
            ValueRange{count, lanes}, before.getF32Type(),
            [&](OpBuilder &inner, Location, ValueRange indices) {
              Arithmetic at{inner, loc};
              Value step = first ? at.add(first, indices[0]) : indices[0];
              return createTerm(at, windows, weights, own, step, indices[1]);
            },
            Precision::Blocked);
        YieldOp::create(body, loc, product.getResult(0));
      });
  return statement->getResult(0);
}

void FlattenedSum::rewrite() {
  note(sum.reduce, passName, Verdict::Derived,
       "the " + describe(sum.reduce) +
           " is a product of rows of pixels that are counted through, in three parts in bf16 of "
           "each f32 number, on the matrix unit");
  Value product = storeProduct(storeWindows(), storeWeights());
  OpBuilder builder(sum.reduce);
  Arithmetic at{builder, loc};
  SmallVector<Value> indices(llvm::to_vector_of<Value>(sum.batches));
  indices.push_back(at.countOf(llvm::to_vector_of<Value>(sum.rows), rowExtents));
  indices.push_back(at.countOf(llvm::to_vector_of<Value>(sum.pixels), pixelExtents));
  if (isRowInnermost())
    std::swap(indices[indices.size() - 1], indices[indices.size() - 2]);
  Value result;
  for (int64_t share = 0; share < plan.shares; ++share) {
    SmallVector<Value> place(indices);
    if (plan.shares > 1)
      place.insert(place.begin(), at.number(share));
    Value part = LoadOp::create(builder, loc, product, place, Value());
    result = result ? createCombination(builder, loc, ReduceKind::Sum, result, part) : part;
  }
  sum.reduce.replaceAllUsesWith(ValueRange{result});
  sum.reduce.erase();
}

namespace {

struct FlattenWindows : tk::impl::FlattenWindowsBase<FlattenWindows> {
  using FlattenWindowsBase::FlattenWindowsBase;

  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    if (!target || !target.getHopper())
      return;
    getOperation()->walk([&](KernelOp kernel) {
      for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
        for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
          flatten(kernel, compute, reduce, target.getProcessors());
    });
  }

  void flatten(KernelOp kernel, ComputeOp compute, ReduceOp reduce, int64_t processors) {
    std::optional<WindowSum> sum = readWindowSum(kernel, compute, reduce);
    if (!sum)
      return;
    std::optional<WindowPlan> plan = planWindowSum(*sum, processors);
    if (always)
      plan = WindowPlan{static_cast<unsigned>(unrolled), slice, shares, 0};
    else if (!plan || plan->time >= timeOnCores(*sum))
      return;
    FlattenedSum(*sum, *plan).rewrite();
    ++numSums;
  }
};

} // namespace
