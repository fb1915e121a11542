//===- FlattenedFactors.cpp - the operands of flattened convolutions ------===//
//
// 1. Compute how far the taps reach along each axis, and the order in which pixels are counted. A
//    row of pixels is followed by the pixels that only taps reach. Both of its ends share the
//    elements outside of the tensor.
// 2. Store the parts of the input, pixel by pixel.
// 3. Store the parts of the weights, tap by tap.
// 4. Phases may be rows. The weights of a row are 0 at taps that its phase does not have.
// 5. Several groups of a batch may be one. Their rows and their channels then stand side by side,
//    and the weights of a row are 0 at the channels of other groups.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/windows/FlattenedSum.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/TileFacts.h"
#include "passes/tensor/operands/PadFactors.h"
#include "passes/tensor/split/SignificandParts.h"

using namespace mlir;
using namespace tk;

FlattenedSum::FlattenedSum(const WindowSum &given, const WindowPlan &plan)
    : sum(given), plan(plan), loc(given.reduce->getLoc()), before(given.compute) {
  for (unsigned n = sum.axes.size(); n-- > 0;)
    if (plan.unrolled >> n & 1)
      sum.unroll(n);
  Arithmetic at{before, loc};
  batchExtents = extentsOf(sum.batches);
  phaseExtents = extentsOf(sum.phases);
  rowExtents = extentsOf(sum.rows);
  channelExtents = extentsOf(sum.channels);
  if (plan.groups > 1) {
    Value count = at.number(plan.groups);
    batchExtents[0] = at.div(batchExtents[0], count);
    rowExtents.insert(rowExtents.begin(), count);
    channelExtents.insert(channelExtents.begin(), count);
  }
  // How far taps reach along each axis, and how many of the places between two windows they read.
  SmallVector<Value> distances;
  for (BlockArgument index : sum.pixels) {
    Value extent = sum.extentOf(index), distance = at.number(0);
    if (const WindowAxis *axis = sum.axisOf(index)) {
      Value count = mostOf(axis->tap), stride = at.number(axis->stride);
      distance = at.div(at.mul(at.sub(count, at.number(1)), at.number(axis->dilation)), stride);
      extent =
          at.sub(at.add(extent, distance), sharedEnds(*axis, at.add(extent, distance), distance));
      tapExtents.push_back(count);
      const bool readsFew = axis->dilation == 1 && axis->stride > 1;
      residues.push_back(readsFew ? at.min(stride, count) : stride);
    }
    distances.push_back(distance);
    pixelExtents.push_back(extent);
  }
  if (plan.arePhasesRows)
    makePhasesRows();
  rows = at.product(rowExtents);
  channels = at.product(channelExtents);
  taps = at.product(tapExtents);
  slices = at.div(at.add(channels, at.number(plan.slice - 1)), at.number(plan.slice));
  pixels = createMultiple(before, loc, at.product(pixelExtents), columnsOfLargestTile);
  reach = at.add(pixels, at.countOf(distances, pixelExtents));
}

/// The index that the weights and the product are over beside their own: the batch, or the phases.
void FlattenedSum::addOuter(SmallVectorImpl<StringRef> &names, SmallVectorImpl<Value> &extents) {
  if (batchExtents.empty() && phaseExtents.empty())
    return;
  names.push_back(phaseExtents.empty() ? "batch" : "phase");
  extents.push_back(phaseExtents.empty() ? batchExtents[0]
                                         : Arithmetic{before, loc}.product(phaseExtents));
}

void FlattenedSum::mapOuter(Arithmetic at, Value place, IRMapping &mapping) {
  if (!sum.batches.empty() && plan.groups == 1)
    mapping.map(sum.batches[0], place);
  for (auto [index, phase] : llvm::zip_equal(sum.phases, at.digits(place, phaseExtents)))
    mapping.map(index, phase);
}

/// The most taps along an axis: those of phase 0.
Value FlattenedSum::mostOf(BlockArgument tap) {
  Arithmetic at{before, loc};
  IRMapping mapping;
  for (BlockArgument phase : sum.phases)
    mapping.map(phase, at.number(0));
  return cloneFrom(before, sum.extentOf(tap), sum.compute, mapping);
}

/// Counts the rows of all phases together, phase by phase.
void FlattenedSum::makePhasesRows() {
  rowExtents.insert(rowExtents.begin(), phaseExtents.begin(), phaseExtents.end());
  sum.rows.insert(sum.rows.begin(), sum.phases.begin(), sum.phases.end());
  phaseExtents.clear();
  sum.phases.clear();
}

/// The weights' `element`, or 0 at taps that the phase in `mapping` does not have.
Value FlattenedSum::withoutOtherTaps(Arithmetic at, Value element, IRMapping &mapping) {
  for (const WindowAxis &axis : sum.axes) {
    Value end = sum.extentOf(axis.tap);
    if (isKernelLevel(end, sum.compute))
      continue;
    Value isOwn =
        arith::CmpIOp::create(at.builder, loc, arith::CmpIPredicate::slt, mapping.lookup(axis.tap),
                              cloneFrom(at.builder, end, sum.compute, mapping));
    element = arith::SelectOp::create(at.builder, loc, isOwn, element, createZero(at));
  }
  return element;
}

/// How many places behind the end of one row, of `length` with those that taps reach, are those
/// before the beginning of the next one: as many as lie outside of the tensor at both ends.
Value FlattenedSum::sharedEnds(const WindowAxis &axis, Value length, Value distance) {
  Arithmetic at{before, loc};
  Value pad = sum.window.getPad();
  if (axis.stride != 1 || !pad || !isKernelLevel(pad, sum.compute))
    return at.number(0);
  IRMapping mapping;
  mapping.map(axis.place, at.number(0));
  mapping.map(axis.tap, axis.isTurned ? at.sub(mostOf(axis.tap), at.number(1)) : at.number(0));
  Value first = cloneFrom(before, sum.window.getIndices()[axis.axis], sum.compute, mapping);
  Value extent = getExtents(sum.kernel, sum.window.getTensor())[axis.axis];
  Value outside = at.min(at.sub(at.number(0), first), at.sub(at.add(length, first), extent));
  return at.max(at.min(outside, distance), at.number(0));
}

std::string FlattenedSum::nameOf(StringRef suffix) {
  return (cast<StringAttr>(sum.compute.getNames()[0]).getValue() + suffix).str();
}

SmallVector<Value> FlattenedSum::extentsOf(ArrayRef<BlockArgument> indices) {
  return llvm::map_to_vector(indices, [&](BlockArgument index) { return sum.extentOf(index); });
}

/// Takes the group from the first of `digits`, if one product has several: `outer` counts these
/// products. Returns the group's place in its product; null if there is one group.
Value FlattenedSum::mapGroup(Arithmetic at, Value outer, SmallVectorImpl<Value> &digits,
                             IRMapping &mapping) {
  if (plan.groups == 1)
    return Value();
  Value group = digits.front();
  digits.erase(digits.begin());
  mapping.map(sum.batches[0], at.add(at.mul(outer, at.number(plan.groups)), group));
  return group;
}

/// The `indices`, of `extents`, from the place that counts them together. Returns the group.
Value FlattenedSum::mapCounted(Arithmetic at, Value outer, Value place, ArrayRef<Value> extents,
                               ArrayRef<BlockArgument> indices, IRMapping &mapping) {
  SmallVector<Value> digits = at.digits(place, extents);
  Value group = mapGroup(at, outer, digits, mapping);
  for (auto [index, digit] : llvm::zip_equal(indices, digits))
    mapping.map(index, digit);
  return group;
}

/// The channels' indices, and taps that are channels, from where one is counted.
Value FlattenedSum::mapChannels(Arithmetic at, Value outer, Value channel, IRMapping &mapping) {
  return mapCounted(at, outer, channel, channelExtents, sum.channels, mapping);
}

/// The indices of the weights' rows, from where one is counted.
Value FlattenedSum::mapRows(Arithmetic at, Value outer, Value row, IRMapping &mapping) {
  return mapCounted(at, outer, row, rowExtents, sum.rows, mapping);
}

/// What is stored of `element`: part `places[part]`, if it has parts, or 0 behind the last channel.
Value FlattenedSum::createElement(Arithmetic at, Value element, Value channel, ValueRange places) {
  if (getSizeFact(sum.kernel, channels).divisor % plan.slice != 0) {
    Value inside =
        arith::CmpIOp::create(at.builder, loc, arith::CmpIPredicate::slt, channel, channels);
    element = arith::SelectOp::create(at.builder, loc, inside, element, createZero(at));
  }
  return sum.isInParts() ? createPart(at.builder, loc, element, places[places.size() - 3],
                                      /*isBounded=*/false)
                         : element;
}

Value FlattenedSum::createZero(Arithmetic at) {
  return arith::ConstantOp::create(at.builder, loc, at.builder.getZeroAttr(sum.element));
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

/// Where the stored windows have what is read at `taps`, one for each axis.
StoredPlace FlattenedSum::placeOf(Arithmetic at, ArrayRef<Value> taps) {
  SmallVector<Value> distances, offsets;
  unsigned n = 0;
  for (BlockArgument index : sum.pixels) {
    const WindowAxis *axis = sum.axisOf(index);
    if (!axis) {
      distances.push_back(at.number(0));
      continue;
    }
    Value distance = taps[n];
    if (axis->isTurned)
      distance = at.sub(at.sub(tapExtents[n], at.number(1)), distance);
    distance = at.mul(distance, at.number(axis->dilation));
    distances.push_back(at.div(distance, at.number(axis->stride)));
    offsets.push_back(at.mod(distance, at.number(axis->stride)));
    ++n;
  }
  return {at.countOf(offsets, residues), at.countOf(distances, pixelExtents)};
}

/// Lets the sum as it is written read the stored windows in the stead of the tensor. A tensor that
/// is computed where it is read would be computed again for each term.
void FlattenedSum::readStoredWindows(Value windows) {
  OpBuilder builder(sum.window);
  Arithmetic at{builder, loc};
  SmallVector<Value> taps, ofChannel, indices = {at.number(0)};
  for (const WindowAxis &axis : sum.axes)
    taps.push_back(axis.tap);
  if (!sum.batches.empty()) {
    Value count = at.number(plan.groups);
    indices.push_back(at.div(sum.batches[0], count));
    if (plan.groups > 1)
      ofChannel.push_back(at.mod(sum.batches[0], count));
  }
  llvm::append_range(ofChannel, sum.channels);
  const StoredPlace place = placeOf(at, taps);
  Value channel = at.countOf(ofChannel, channelExtents), length = at.number(plan.slice);
  Value pixel = at.countOf(llvm::to_vector_of<Value>(sum.pixels), pixelExtents);
  indices.push_back(at.add(at.mul(place.residue, slices), at.div(channel, length)));
  indices.push_back(at.add(pixel, place.distance));
  indices.push_back(at.mod(channel, length));
  sum.window.getTensorMutable().assign(windows);
  sum.window.getIndicesMutable().assign(indices);
  sum.window.getPadMutable().clear();
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
  extents.append({outside.mul(outside.product(residues), slices), outside.number(sum.countParts()),
                  reach, outside.number(plan.slice)});
  SmallVector<unsigned> order = partFirst(first);
  std::string name = nameOf(".windows");
  auto statement = ComputeOp::create(
      before, loc, names, extents,
      ArrayRef<Type>{sum.isInParts() ? before.getBF16Type() : sum.element},
      ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{order},
      [&](OpBuilder &body, Location, ValueRange places) {
        Arithmetic at{body, loc};
        IRMapping mapping;
        if (first)
          mapping.map(sum.batches[0], places[0]);
        Value slab = places[first];
        Value channel = at.add(at.mul(at.mod(slab, slices), at.number(plan.slice)), places.back());
        mapChannels(at, places[0], channel, mapping);
        SmallVector<Value> offsets = at.digits(at.div(slab, slices), residues);
        if (!residues.empty() && at.is(residues[0], 1))
          offsets[0] = at.number(0);
        for (auto [index, place] :
             llvm::zip_equal(sum.pixels, at.digits(places[first + 2], pixelExtents)))
          mapping.map(index, place);
        // A turned window begins with its last tap.
        for (auto [axis, count] : llvm::zip_equal(sum.axes, tapExtents))
          mapping.map(axis.tap, axis.isTurned ? at.sub(count, at.number(1)) : at.number(0));
        SmallVector<Value> indices;
        for (Value index : sum.window.getIndices())
          indices.push_back(cloneFrom(body, index, sum.compute, mapping));
        // Tiles run along the last index of the innermost axis: that of places.
        for (auto [axis, offset] : llvm::zip_equal(sum.axes, offsets))
          indices[axis.axis] = at.add(offset, indices[axis.axis]);
        Value pad = sum.window.getPad();
        pad = pad ? cloneFrom(body, pad, sum.compute, mapping) : createZero(at);
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
  addOuter(names, extents);
  const unsigned first = extents.size();
  names.append({"tap", "part", "row", "lane"});
  extents.append({outside.mul(taps, slices), outside.number(sum.countParts()), rows,
                  outside.number(plan.slice)});
  SmallVector<unsigned> order = partFirst(first);
  std::string name = nameOf(".weights");
  auto statement = ComputeOp::create(
      before, loc, names, extents,
      ArrayRef<Type>{sum.isInParts() ? before.getBF16Type() : sum.element},
      ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{order},
      [&](OpBuilder &body, Location, ValueRange places) {
        Arithmetic at{body, loc};
        IRMapping mapping;
        if (first)
          mapOuter(at, places[0], mapping);
        Value slice = at.mod(places[first], slices);
        Value channel = at.add(at.mul(slice, at.number(plan.slice)), places.back());
        Value ofChannel = mapChannels(at, places[0], channel, mapping);
        SmallVector<Value> own = at.digits(at.div(places[first], slices), tapExtents);
        for (auto [axis, tap] : llvm::zip_equal(sum.axes, own))
          mapping.map(axis.tap, tap);
        Value ofRow = mapRows(at, places[0], places[first + 2], mapping);
        SmallVector<Value> indices;
        for (Value index : sum.weights.getIndices())
          indices.push_back(cloneFrom(body, index, sum.compute, mapping));
        // Behind the last channel indices may leave the tensor.
        Value pad = sum.weights.getPad();
        pad = pad ? cloneFrom(body, pad, sum.compute, mapping) : createZero(at);
        Value element = LoadOp::create(body, loc, sum.weights.getTensor(), indices, pad);
        if (plan.arePhasesRows)
          element = withoutOtherTaps(at, element, mapping);
        if (ofRow) {
          Value isOwn =
              arith::CmpIOp::create(body, loc, arith::CmpIPredicate::eq, ofRow, ofChannel);
          element = arith::SelectOp::create(body, loc, isOwn, element, createZero(at));
        }
        YieldOp::create(body, loc, createElement(at, element, channel, places));
      });
  return statement->getResult(0);
}
