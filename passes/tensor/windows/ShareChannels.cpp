//===- ShareChannels.cpp - split-K of convolutions with few tiles ---------===//
//
// A convolution of 16-bit operands that TMA loads bring from where they lie may have fewer tiles
// than there are multiprocessors: small planes have few pixels.
//
// 1. Choose the number of shares, by the waves of tiles and by the bytes of the shares.
// 2. A compute op has the product of each share. Channels behind the last one read as zero.
// 3. The original compute op adds the shares.
//
//   %y = tk.compute ["n", "a", "o"] {tk.reduce [sum] ["r", "c"] {x[n, a + r, c] * w[o, r, c]}}
//     =>
//   %z = tk.compute ["share", "n", "a", "o"] {tk.reduce [sum] ["r", "c"] to (%R, %length) {
//          x[n, a + r, share * %length + c] * w[o, r, share * %length + c]}}
//   %y = tk.compute ["n", "a", "o"] {%z[0, n, a, o] + %z[1, n, a, o]}
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/machine/limits/Windows.h"
#include "passes/plan/WindowPlaces.h"
#include "passes/tensor/normalize/IndexArithmetic.h"
#include "passes/tensor/windows/WindowSums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tk;

using namespace limits::share_channels;

static BlockArgument channelOf(const WindowSum &sum) {
  LoadOp window = sum.window;
  return cast<BlockArgument>(window.getIndices().back());
}

/// May all channels be read share by share? Behind the last one lies the end of both tensors.
static bool hasWholeChannels(const WindowSum &sum) {
  ComputeOp compute = sum.compute;
  LoadOp weights = sum.weights;
  if (sum.rows.size() + sum.pixels.size() != compute.getNumIndices() ||
      ReduceOp(sum.reduce).getNumAccumulators() != 1 || !isZeroOutside(weights))
    return false;
  BlockArgument channel = channelOf(sum);
  for (LoadOp load : {sum.window, sum.weights}) {
    unsigned count = 0;
    for (auto [index, extent] :
         llvm::zip_equal(load.getIndices(), getExtents(sum.kernel, load.getTensor()))) {
      if (index != channel && llvm::is_contained(getIterationIndices(index), channel))
        return false;
      if (index == channel && !isSameExtent(extent, sum.extentOf(channel)))
        return false;
      count += index == channel;
    }
    if (count != 1)
      return false;
  }
  return true;
}

namespace {

/// The sizes that the time of a sum in shares follows from, with dimensions that are `share` of
/// their bounds where they are not known.
struct ShareExtents {
  double places = 1, terms = 1, rows, channels;

  ShareExtents(const WindowSum &sum, double share) {
    auto sizeOf = [&](BlockArgument index) {
      return std::max(estimateSize(sum.kernel, sum.extentOf(index), share), 1.0);
    };
    ReduceOp reduce = sum.reduce;
    for (BlockArgument pixel : sum.pixels)
      places *= sizeOf(pixel);
    for (BlockArgument index : reduce.getBlock()->getArguments())
      if (index != channelOf(sum))
        terms *= sizeOf(index);
    rows = sizeOf(sum.rows[0]);
    channels = sizeOf(channelOf(sum));
  }

  bool areKnown() const { return !std::isnan(places * terms * rows * channels); }
  int64_t slices() const {
    return static_cast<int64_t>(std::ceil(channels / static_cast<double>(channelsOfSlice)));
  }
  /// The time of the sum in shares; with one share that of the plain sum.
  double timeOf(int64_t shares, int64_t processors) const {
    double product = std::numeric_limits<double>::max();
    for (const WarpgroupTile &tile : warpgroupTiles)
      product = std::min(
          product,
          tile.timeOf(tile.count(static_cast<int64_t>(places), static_cast<int64_t>(rows)) * shares,
                      processors));
    product *= cost::termOfProcessor * terms *
               static_cast<double>(channelsOfSlice * llvm::divideCeil(slices(), shares));
    if (shares == 1)
      return product;
    return product + cost::launch +
           cost::byteOfConvolution * rows * places * 2 * cost::bytesOfWide *
               static_cast<double>(shares);
  }
};

} // namespace

int64_t tk::planChannelShares(const WindowSum &sum, int64_t processors) {
  const ShareExtents usual(sum, usualShareOfBound), most(sum, 1);
  if (!hasWholeChannels(sum) || !usual.areKnown() || !most.areKnown())
    return 1;
  auto timeOf = [&](int64_t shares) {
    return usual.timeOf(shares, processors) + most.timeOf(shares, processors);
  };
  int64_t best = 1;
  double least = mostTimeOfShares * timeOf(1);
  for (int64_t shares = 2; shares <= std::min(mostShares, usual.slices()); ++shares)
    if (const double time = timeOf(shares); time < least) {
      least = time;
      best = shares;
    }
  return best;
}

/// The products of all shares, of `length` channels each, as [share, the results' indices].
static Value storeShares(const WindowSum &sum, int64_t count, Value length) {
  ComputeOp compute = sum.compute;
  ReduceOp reduce = sum.reduce;
  Location loc = reduce.getLoc();
  OpBuilder before(compute);
  SmallVector<StringRef> names = {"share"}, terms;
  for (Attribute name : compute.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  SmallVector<Value> extents = {Arithmetic{before, loc}.number(count)};
  llvm::append_range(extents, compute.getExtents());
  // One loop goes through all terms, a slice of the channels at a time: their index is the last.
  const unsigned channel = channelOf(sum).getArgNumber();
  SmallVector<unsigned> order;
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
    if (n != channel)
      order.push_back(n);
  order.push_back(channel);
  SmallVector<Value> lower, upper;
  for (unsigned n : order) {
    terms.push_back(cast<StringAttr>(reduce.getIndexNames()[n]).getValue());
    lower.push_back(reduce.getLower()[n]);
    upper.push_back(n == channel ? length : reduce.getUpper()[n]);
  }
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".shares").str();
  auto statement = ComputeOp::create(
      before, loc, names, extents, ArrayRef<Type>{before.getF32Type()}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location, ValueRange places) {
        IRMapping mapping;
        for (auto [n, place] : llvm::enumerate(places.drop_front()))
          mapping.map(compute.getIndex(n), place);
        auto product = ReduceOp::create(
            body, loc, ReduceKind::Sum, terms, lower, upper, before.getF32Type(),
            [&](OpBuilder &inner, Location, ValueRange indices) -> Value {
              Arithmetic at{inner, loc};
              for (auto [n, index] : llvm::zip_equal(order, indices))
                mapping.map(reduce.getIndex(n),
                            n == channel ? at.add(at.mul(places[0], length), index) : index);
              Value zero = arith::ConstantOp::create(inner, loc, inner.getZeroAttr(sum.element));
              Value factors[2];
              for (auto [factor, load] :
                   {std::pair(&factors[0], sum.weights), std::pair(&factors[1], sum.window)}) {
                SmallVector<Value> own =
                    llvm::map_to_vector(LoadOp(load).getIndices(), [&](Value index) {
                      return cloneFrom(inner, index, compute, mapping);
                    });
                Value element = LoadOp::create(inner, loc, LoadOp(load).getTensor(), own, zero);
                *factor = arith::ExtFOp::create(inner, loc, inner.getF32Type(), element);
              }
              return arith::MulFOp::create(inner, loc, factors[1], factors[0]);
            },
            reduce.getPrecision());
        YieldOp::create(body, loc, product.getResult(0));
      });
  return statement->getResult(0);
}

void tk::shareChannels(const WindowSum &sum, int64_t shares) {
  ReduceOp reduce = sum.reduce;
  ComputeOp compute = sum.compute;
  Location loc = reduce.getLoc();
  OpBuilder before(compute), builder(reduce);
  Arithmetic outside{before, loc};
  Value slices =
      outside.ceilDiv(outside.ceilDiv(sum.extentOf(channelOf(sum)), channelsOfSlice), shares);
  Value product = storeShares(sum, shares, outside.mul(slices, outside.number(channelsOfSlice)));
  Value result;
  for (int64_t share = 0; share < shares; ++share) {
    SmallVector<Value> indices = {Arithmetic{builder, loc}.number(share)};
    llvm::append_range(indices, compute.getBlock()->getArguments());
    Value part = LoadOp::create(builder, loc, product, indices, Value());
    result = result ? createCombination(builder, loc, ReduceKind::Sum, result, part) : part;
  }
  reduce.replaceAllUsesWith(ValueRange{result});
  eraseDead(compute);
}
