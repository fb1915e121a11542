//===- BlockAccess.cpp - indices, masks and loads -------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/StrideAxes.h"
#include "passes/numerics/ConvertIndices.h"
#include "passes/tiling/BlockProgram.h"
#include "passes/tiling/PartLocations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// Adds an axis to the order of axes, last or before another.
unsigned BlockProgram::newAxis(StringRef name, int64_t size, std::optional<unsigned> before) {
  unsigned id = axes.size();
  Axis &axis = axes.emplace_back();
  axis.name = name.str();
  axis.size = axis.step = size;
  axis.isScalar = size == 1;
  order.insert(before ? llvm::find(order, *before) : order.end(), id);
  return id;
}

/// The numbers along a tile. Where that holds a whole range, the range may be known to end before
/// it.
Value BlockProgram::numbersAlong(const Axis &axis, Type element) {
  IntegerAttr end;
  SizeFact fact = axis.isWhole && !axis.start ? getSizeFact(kernel, axis.rangeEnd) : SizeFact();
  int64_t upper = std::max<int64_t>(fact.upper.value_or(axis.size), 1);
  if (upper < axis.size)
    end = builder.getI64IntegerAttr(upper);
  return gpu::IotaOp::create(at(axis.depth), loc, RankedTensorType::get({axis.size}, element), end);
}

TileValue BlockProgram::index(unsigned id) {
  Axis &axis = axes[id];
  unsigned depth = axis.depth;
  auto &memo = scopes[depth].indices;
  if (auto known = memo.find(id); known != memo.end())
    return known->second;
  TileValue result{axis.start, {}, depth};
  if (axis.isScalar) {
    if (!axis.start)
      result.value = indexConstant(0, depth);
  } else {
    result = {numbersAlong(axis, builder.getIndexType()), {id}, depth};
    if (axis.start) {
      Value start = broadcast({axis.start, {}, depth}, {id}, depth).value;
      result.value = arith::AddIOp::create(at(depth), named(axis.name, loc), start, result.value);
    }
  }
  return scopes[depth].indices[id] = result;
}

/// An index along a tile as floats, where f32 holds all of its values: where it begins, converted,
/// and the place in the tile. Nothing if `conversion` is of another kind.
std::optional<TileValue> BlockProgram::convertedIndex(arith::SIToFPOp conversion) {
  auto cast = conversion.getIn().getDefiningOp<arith::IndexCastOp>();
  auto known = cast ? axisOf.find(cast.getIn()) : axisOf.end();
  if (known == axisOf.end() || isMerged(cast.getIn()) || axes[known->second].isScalar ||
      !gpu::hasMode(conversion, gpu::MathMode::Exact))
    return std::nullopt;
  unsigned id = known->second;
  Axis &axis = axes[id];
  TileValue result{numbersAlong(axis, conversion.getType()), {id}, axis.depth};
  if (axis.start) {
    Value start =
        arith::IndexCastOp::create(at(axis.depth), loc, conversion.getIn().getType(), axis.start);
    start = arith::SIToFPOp::create(at(axis.depth), loc, conversion.getType(), start);
    start = broadcast({start, {}, axis.depth}, {id}, axis.depth).value;
    result.value = arith::AddFOp::create(at(axis.depth), loc, start, result.value);
  }
  return result;
}

TileValue BlockProgram::compare(arith::CmpIPredicate predicate, TileValue a, TileValue b) {
  Axes all = unite(a.axes, b.axes);
  unsigned depth = std::max(a.depth, b.depth);
  a = broadcast(a, all, depth);
  b = broadcast(b, all, depth);
  return {arith::CmpIOp::create(at(depth), loc, predicate, a.value, b.value), all, depth};
}

/// Where index values along an axis are inside the bounds that hold for all; none if all are.
std::optional<TileValue> BlockProgram::limitMask(unsigned id) {
  if (!axes[id].limit)
    return std::nullopt;
  unsigned depth = axes[id].depth;
  auto &memo = scopes[depth].limitMasks;
  if (auto known = memo.find(id); known != memo.end())
    return known->second;
  TileValue limit{axes[id].limit, {}, depth};
  TileValue mask = axes[id].limitIsAll
                       ? compare(arith::CmpIPredicate::sgt, limit, {indexConstant(0, depth), {}, 0})
                       : compare(arith::CmpIPredicate::slt, index(id), limit);
  return scopes[depth].limitMasks[id] = mask;
}

/// Where index values along an axis are not before the range; none if no tile begins there.
std::optional<TileValue> BlockProgram::beginMask(unsigned id) {
  if (!axes[id].endsWithRange)
    return std::nullopt;
  return compare(arith::CmpIPredicate::sge, index(id), {indexConstant(0, axes[id].depth), {}, 0});
}

/// Where index values along an axis are inside the bounds, which may depend on other axes. It is
/// computed in scope `minDepth` or further in.
std::optional<TileValue> BlockProgram::exactMask(unsigned id, unsigned minDepth) {
  std::optional<TileValue> lower = axes[id].lower, upper = axes[id].upper;
  if (!lower && !upper)
    return limitMask(id);
  SmallVector<TileValue> masks;
  TileValue position = index(id);
  position.depth = std::max(position.depth, minDepth);
  if (lower)
    masks.push_back(compare(arith::CmpIPredicate::sge, position, *lower));
  if (upper)
    masks.push_back(compare(arith::CmpIPredicate::slt, position, *upper));
  else if (std::optional<TileValue> mask = limitMask(id))
    masks.push_back(*mask);
  return andMasks(masks);
}

/// Masks for an access whose address depends on `tileAxes`.
void BlockProgram::addSafetyMasks(ArrayRef<unsigned> tileAxes, SmallVectorImpl<TileValue> &masks) {
  for (unsigned id : tileAxes) {
    auto meets = [&](const std::optional<TileValue> &bound) {
      return bound && llvm::any_of(bound->axes, [&](unsigned axis) {
               return llvm::is_contained(tileAxes, axis);
             });
    };
    std::optional<TileValue> mask =
        meets(axes[id].lower) || meets(axes[id].upper) ? exactMask(id) : limitMask(id);
    for (const std::optional<TileValue> &bound : {mask, beginMask(id)})
      if (bound)
        masks.push_back(*bound);
  }
}

/// The greatest number that `value` may be, if it is known to be at least 0, too: it is so by its
/// bits, whatever is loaded.
static std::optional<int64_t> mostOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (std::optional<int64_t> number = getConstantIndex(value))
    return *number >= 0 ? number : std::nullopt;
  if (isa_and_nonnull<arith::AndIOp>(op))
    for (Value bits : op->getOperands())
      if (std::optional<int64_t> most = mostOf(bits))
        return most;
  if (isa_and_nonnull<arith::IndexCastOp>(op))
    return mostOf(op->getOperand(0));
  if (isa_and_nonnull<arith::ExtUIOp, arith::IndexCastUIOp>(op))
    if (auto bits = dyn_cast<IntegerType>(op->getOperand(0).getType());
        bits && bits.getWidth() < 32)
      return (int64_t(1) << bits.getWidth()) - 1;
  return std::nullopt;
}

/// Is an index value known to be at least 0? With `inRange`, where indices are within their ranges.
bool BlockProgram::isNonNegative(Value value, bool inRange) {
  if (std::optional<int64_t> number = getConstantIndex(value))
    return *number >= 0;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto axis = axisOf.find(value);
    if (axis == axisOf.end())
      return arg.getOwner()->getParentOp() == kernel && arg.getArgNumber() < kernel.getNumDims();
    auto reduction = dyn_cast<tk::ReduceOp>(arg.getOwner()->getParentOp());
    if (!reduction)
      return inRange || !axes[axis->second].endsWithRange;
    return isNonNegative(reduction.getLower()[arg.getArgNumber()], inRange);
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::AddIOp, arith::MulIOp, tk::FloorDivOp, arith::MaxSIOp, arith::MinSIOp>(op))
    return isNonNegative(op->getOperand(0), inRange) && isNonNegative(op->getOperand(1), inRange);
  if (isa<tk::FloorModOp>(op))
    return isNonNegative(op->getOperand(1), inRange);
  return mostOf(value).has_value();
}

/// Is a range that ends at `end` known to stay within `extent`: is that its end, or of the lesser
/// of it and another?
static bool endsWithin(Value end, Value extent) {
  if (auto least = end.getDefiningOp<arith::MinSIOp>())
    return endsWithin(least.getLhs(), extent) || endsWithin(least.getRhs(), extent);
  std::optional<int64_t> constant = getConstantIndex(end);
  return end == extent || (constant && constant == getConstantIndex(extent));
}

/// Masks of an access that may be out of bounds. An index that is a bare axis over the extent at
/// which it stands needs no comparison but the axis's own.
void BlockProgram::addPadMasks(ArrayRef<Value> places, ArrayRef<TileValue> indices,
                               ArrayRef<Value> extents, SmallVectorImpl<TileValue> &masks) {
  for (auto [d, value] : llvm::enumerate(places)) {
    auto axis = axisOf.find(value);
    if (axis != axisOf.end()) {
      const Axis &info = axes[axis->second];
      Value end = isMerged(value) ? mergedExtents.lookup(value) : info.rangeEnd;
      if (endsWithin(end, extents[d]) && isNonNegative(value)) {
        addSafetyMasks(isMerged(value) ? Axes{axis->second} : indices[d].axes, masks);
        continue;
      }
    }
    if (!isNonNegative(value))
      masks.push_back(compare(arith::CmpIPredicate::sge, indices[d], {indexConstant(0), {}, 0}));
    const std::optional<int64_t> most = mostOf(value), extent = getConstantIndex(extents[d]);
    if (!most || !extent || *most >= *extent)
      masks.push_back(compare(arith::CmpIPredicate::slt, indices[d], get(extents[d])));
  }
}

/// The product of two extents: an extent of the compute op that equals it, if there is one.
Value BlockProgram::productOfExtents(Value outer, Value inner) {
  OpBuilder host(compute);
  Value product = host.createOrFold<arith::MulIOp>(compute.getLoc(), outer, inner);
  for (Value extent : compute.getExtents())
    if (isSameExtent(extent, product))
      return extent;
  return product;
}

/// Where a load reads its tensor. Axes that lie side by side and are read at `e / W` and `e % W`
/// count as one axis that is read at `e`. They stay two in a contraction: a tensor map has the axes
/// of the tensor.
BlockProgram::Place BlockProgram::readPlaceOf(LoadOp op) {
  ScalarEquality equality;
  SmallVector<Value> extents = getExtents(kernel, op.getTensor());
  SmallVector<Value> steps = strides(op.getTensor(), extents);
  const gpu::PlanFamily family = gpu::getPlan(compute).family;
  const bool mayJoin = family != gpu::PlanFamily::Gemm && family != gpu::PlanFamily::FusedGemm &&
                       !getStrideAxes(kernel, op.getTensor());
  Place place;
  for (auto [index, extent, step] : llvm::zip_equal(op.getIndices(), extents, steps)) {
    auto inner = index.getDefiningOp<FloorModOp>();
    auto outer = inner && mayJoin && !place.indices.empty()
                     ? place.indices.back().getDefiningOp<FloorDivOp>()
                     : FloorDivOp();
    if (outer && isSameExtent(inner->getOperand(1), extent) &&
        isSameExtent(outer->getOperand(1), extent) &&
        equality.equal(inner->getOperand(0), outer->getOperand(0))) {
      place.indices.back() = inner->getOperand(0);
      place.extents.back() = productOfExtents(place.extents.back(), extent);
      place.strides.back() = step;
      continue;
    }
    place.indices.push_back(index);
    place.extents.push_back(extent);
    place.strides.push_back(step);
  }
  return place;
}

TileValue BlockProgram::load(LoadOp op) {
  Value buffer = kernelValue(op.getTensor());
  const auto [places, extents, steps] = readPlaceOf(op);
  SmallVector<TileValue> indices, masks;
  Axes all;
  unsigned depth = 0;
  auto include = [&](const TileValue &value) {
    all = unite(all, value.axes);
    depth = std::max(depth, value.depth);
  };
  for (Value value : places) {
    indices.push_back(get(value));
    include(indices.back());
  }
  if (op.getPad() || needsTerms(op, extents)) {
    addPadMasks(places, indices, extents, masks);
    for (unsigned axis : all)
      if (std::optional<TileValue> end = limitMask(axis);
          end && axes[axis].endsByValue && unseen.contains(op.getResult()) &&
          llvm::none_of(masks, [&](const TileValue &mask) { return mask.value == end->value; }))
        masks.push_back(*end);
  } else {
    addSafetyMasks(addCoveringMasks(op, places, all, extents, masks), masks);
  }
  addUnseenMasks(op.getResult(), masks);
  for (const TileValue &mask : masks)
    include(mask);
  Type element = op.getResult().getType();
  Value other;
  if (op.getPad()) {
    TileValue pad = get(op.getPad());
    include(pad);
    other = pad.axes.empty() ? pad.value : broadcast(pad, all, depth).value;
  } else if (!masks.empty()) {
    other = constant(cast<TypedAttr>(builder.getZeroAttr(element)), depth);
  }
  auto split = [&](ArrayRef<TileValue> values, SmallVectorImpl<Value> &plain) {
    SmallVector<Attribute> lists;
    for (const TileValue &value : values) {
      SmallVector<int64_t> dims;
      for (unsigned axis : value.axes)
        dims.push_back(llvm::find(all, axis) - all.begin());
      plain.push_back(value.value);
      lists.push_back(builder.getDenseI64ArrayAttr(dims));
    }
    return builder.getArrayAttr(lists);
  };
  SmallVector<Value> plainIndices, plainMasks;
  ArrayAttr indexDims = split(indices, plainIndices), maskDims = split(masks, plainMasks);
  Value result = gpu::LoadOp::create(at(depth), op.getLoc(), tileType(all, element), buffer,
                                     plainIndices, steps, plainMasks, other, indexDims, maskDims);
  Attribute otherValue;
  if (other && matchPattern(other, m_Constant(&otherValue)) &&
      otherValue == builder.getZeroAttr(element))
    for (unsigned axis : all)
      if (std::optional<TileValue> mask = limitMask(axis))
        if (llvm::is_contained(plainMasks, mask->value))
          zeroOutside[result].push_back(axis);
  return {result, all, depth};
}
