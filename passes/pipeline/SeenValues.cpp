//===- SeenValues.cpp - values that are not finite, for rows that see them ===//
//
// Behind a tile's loops, threads go through the keys of all steps again. Of each key they load the
// values from global memory, a column each thread's own. If one of them is not finite, the mask
// says which rows see the key, and the value is added to their sums.
//
//   for %j in steps { for %k = 0 to the step's keys {
//     %v = load v[%j + %k]; %x = %v is finite ? 0 : %v
//     if any %x: %o += %row sees %j + %k ? %x : 0
//   }}
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/SeenValues.h"

#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

static Value index(OpBuilder &builder, Location loc, int64_t number) {
  return arith::ConstantIndexOp::create(builder, loc, number);
}

Value SeenValues::splat(OpBuilder &builder, RankedTensorType type, float number) {
  return arith::ConstantOp::create(
      builder, product.load.getLoc(),
      DenseElementsAttr::get(type, cast<Attribute>(builder.getF32FloatAttr(number))));
}

/// The axis of the map along which the box has the stage's keys.
static std::optional<unsigned> axisOfKeys(TensorMapOp map, int64_t keys) {
  std::optional<unsigned> found;
  for (auto [axis, side] : llvm::enumerate(map.getBox().drop_back()))
    if (side > 1) {
      if (found || side != keys)
        return std::nullopt;
      found = axis;
    }
  return found;
}

/// The map that the launch passes for an argument; null if `value` is something else.
static TensorMapOp mapOf(LaunchOp launch, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getArgNumber() < launch.getArgs().size()
             ? launch.getArgs()[argument.getArgNumber()].getDefiningOp<TensorMapOp>()
             : TensorMapOp();
}

/// The map of the values, or the one that begins with the tensor if there is one before it.
bool SeenValues::findMap(LaunchOp launch) {
  Value value = product.load.getMap();
  if (auto select = value.getDefiningOp<arith::SelectOp>()) {
    TensorMapOp other = mapOf(launch, select.getTrueValue());
    value = select.getFalseValue();
    if (!other || other.getBefore() == 0)
      return false;
    before = other.getBefore(), isBefore = select.getCondition();
  }
  map = mapOf(launch, value);
  return map && map.getBefore() == 0;
}

bool SeenValues::analyse(LaunchArguments &arguments) {
  LaunchOp launch = arguments.getLaunch();
  if (!findMap(launch))
    return false;
  SharedType type = product.load.getTarget().getType();
  if (!map.getTensor() || !map.getPlaces().empty() || type.getInterleave() > 1 ||
      type.getShape().size() != 2 || map.getBox().size() != product.load.getCoordinates().size())
    return false;
  Block *block = product.load->getParentOfType<FuncOp>().getBlock();
  for (auto [place, passed] : llvm::enumerate(launch.getArgs()))
    if (passed == map.getTensor() && isa<BufferType>(block->getArgument(place).getType()))
      buffer = block->getArgument(place);
  if (!buffer)
    return false;
  // Keys are the rows of the values as the product takes them: axis 0.
  const bool areColumnsLast = type.getAxisOrder()[0] == 1;
  std::optional<unsigned> other = axisOfKeys(map, type.getShape()[areColumnsLast ? 0 : 1]);
  if (!other)
    return false;
  const unsigned last = map.getBox().size() - 1;
  keysAxis = areColumnsLast ? *other : last, columnsAxis = areColumnsLast ? last : *other;
  if (isBefore) {
    // The rows of the window are those of an axis further out.
    for (unsigned axis = 0; axis < keysAxis; ++axis)
      if (isEqualConstantIntOrValue(map.getStrides()[axis], map.getStrides()[keysAxis]))
        rowsAxis = axis;
    if (!rowsAxis || !areColumnsLast)
      return false;
  }
  IRMapping known;
  for (scf::ForOp loop : {product.steps, product.masked, product.producer.tiles})
    known.map(loop.getInductionVar(), loop.getInductionVar());
  SmallVector<Value> wanted(product.load.getCoordinates());
  llvm::append_range(wanted, product.conditions);
  if (isBefore)
    wanted.push_back(isBefore);
  llvm::append_values(wanted, product.steps.getLowerBound(), product.steps.getUpperBound(),
                      product.steps.getStep());
  Operation *behind = product.sums.getDefiningOp()->getNextNode();
  if (!llvm::all_of(wanted, [&](Value value) { return computeAt(nullptr, behind, value, known); }))
    return false;
  layout = getLayout(product.sums.getType());
  scores = getLayout(product.conditions.front().getType());
  const auto sums = cast<RankedTensorType>(product.sums.getType());
  return layout && scores && sums.getRank() == 2 && sums.getDimSize(1) == type.getShape()[1] &&
         sliceLayout(layout, 1) == sliceLayout(scores, 1);
}

/// The function's arguments for the tensor of the values, and for its extents and strides.
void SeenValues::addArguments(LaunchArguments &arguments, OpBuilder &builder) {
  auto passed = [&](Value atLaunch, StringRef name) -> Value {
    if (std::optional<int64_t> number = constantIndex(atLaunch))
      return index(builder, product.load.getLoc(), *number);
    return arguments.addIndex(atLaunch, name);
  };
  for (Value extent : map.getExtents())
    extents.push_back(passed(extent, "extent"));
  for (Value stride : map.getStrides())
    strides.push_back(passed(stride, "stride"));
}

/// The values of `key` of the step, in f32: a number that is finite, or is none, is 0.
Value SeenValues::valuesOf(OpBuilder &builder, Value key) {
  Location loc = product.load.getLoc();
  const int64_t columns = cast<RankedTensorType>(product.sums.getType()).getDimSize(1);
  auto tile = [&](Type element) {
    return RankedTensorType::get({columns}, element, sliceLayout(layout, 0));
  };
  SmallVector<Value> indices, masks;
  SmallVector<Attribute> indexDims, maskDims;
  for (unsigned axis = 0; axis < coordinates.size(); ++axis) {
    Value at = coordinates[axis], extent = extents[axis];
    SmallVector<int64_t> dims;
    if (axis == keysAxis || axis == rowsAxis)
      at = arith::AddIOp::create(builder, loc, at, key);
    if (axis == rowsAxis) {
      at = arith::AddIOp::create(builder, loc, at, coordinates[keysAxis]);
      at = arith::SubIOp::create(builder, loc, at, shift);
    }
    if (axis == columnsAxis) {
      dims = {0};
      auto type = tile(builder.getIndexType());
      auto spread = [&](Value value) -> Value {
        return BroadcastOp::create(builder, loc, type, value, ArrayRef<int64_t>());
      };
      Value iota = IotaOp::create(builder, loc, type, nullptr);
      at = arith::AddIOp::create(builder, loc, iota, spread(at));
      extent = spread(extent);
    }
    indices.push_back(axis == keysAxis && rowsAxis ? index(builder, loc, 0) : at);
    indexDims.push_back(builder.getDenseI64ArrayAttr(dims));
    masks.push_back(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, at, extent));
    maskDims.push_back(builder.getDenseI64ArrayAttr(dims));
  }
  Type element = cast<BufferType>(buffer.getType()).getElementType();
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
  Value loaded =
      gpu::LoadOp::create(builder, loc, tile(element), buffer, indices, strides, masks, zero,
                          builder.getArrayAttr(indexDims), builder.getArrayAttr(maskDims));
  RankedTensorType wide = tile(builder.getF32Type());
  Value value = arith::ExtFOp::create(builder, loc, wide, loaded);
  Value size = math::AbsFOp::create(builder, loc, value);
  Value isFinite =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, size,
                            splat(builder, wide, std::numeric_limits<float>::infinity()));
  return arith::SelectOp::create(builder, loc, isFinite, splat(builder, wide, 0), value);
}

/// By row of the tile, whether it sees `key` of the step: above 0 if it does.
Value SeenValues::seenRows(OpBuilder &builder, Value key) {
  Location loc = product.load.getLoc();
  auto type = cast<RankedTensorType>(product.conditions.front().getType());
  Value seen;
  for (Value condition : product.conditions) {
    Value one = computeAt(&builder, builder.getInsertionBlock()->getParentOp(), condition, mapping);
    seen = seen ? arith::AndIOp::create(builder, loc, seen, one).getResult() : one;
  }
  auto keys =
      RankedTensorType::get({type.getDimSize(1)}, builder.getIndexType(), sliceLayout(scores, 0));
  Value iota = IotaOp::create(builder, loc, keys, nullptr);
  Value spread = BroadcastOp::create(builder, loc, keys, key, ArrayRef<int64_t>());
  Value isKey = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, iota, spread);
  Value ofAll = BroadcastOp::create(builder, loc, type, isKey, ArrayRef<int64_t>(1));
  seen = arith::AndIOp::create(builder, loc, seen, ofAll);
  auto numbers = RankedTensorType::get(type.getShape(), builder.getF32Type(), scores);
  Value marks = arith::SelectOp::create(builder, loc, seen, splat(builder, numbers, 1),
                                        splat(builder, numbers, 0));
  auto rows =
      RankedTensorType::get({type.getDimSize(0)}, builder.getF32Type(), sliceLayout(scores, 1));
  return gpu::ReduceOp::create(builder, loc, rows, marks, ReduceKind::Max, 1);
}

/// `sums` with the values of `key` of the step that are not finite.
Value SeenValues::addKey(OpBuilder &builder, Value sums, Value key) {
  Location loc = product.load.getLoc();
  Value values = valuesOf(builder, key);
  auto rowType = cast<RankedTensorType>(values.getType());
  Value zeros = splat(builder, rowType, 0);
  Value isZero = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, values, zeros);
  Value marks = arith::SelectOp::create(builder, loc, isZero, zeros, splat(builder, rowType, -1));
  Value none = NoneNegativeOp::create(builder, loc, marks);
  auto branch = scf::IfOp::create(builder, loc, sums.getType(), none, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, sums);
  builder.setInsertionPointToStart(branch.elseBlock());
  IRMapping outside(mapping);
  Value rows = seenRows(builder, key);
  mapping = outside;
  auto type = cast<RankedTensorType>(sums.getType());
  Value isSeen = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, rows,
                                       splat(builder, cast<RankedTensorType>(rows.getType()), 0));
  auto flags = RankedTensorType::get(type.getShape(), builder.getI1Type(), layout);
  Value ofAll = BroadcastOp::create(builder, loc, flags, isSeen, ArrayRef<int64_t>(0));
  Value spread = BroadcastOp::create(builder, loc, type, values, ArrayRef<int64_t>(1));
  Value added = arith::SelectOp::create(builder, loc, ofAll, spread, splat(builder, type, 0));
  scf::YieldOp::create(builder, loc, arith::AddFOp::create(builder, loc, sums, added).getResult());
  return branch.getResult(0);
}

void SeenValues::add(LaunchArguments &arguments, Value flag, Value cleared, Value isAgain) {
  Location loc = product.load.getLoc();
  Value sums = product.sums;
  OpBuilder builder(sums.getContext());
  builder.setInsertionPointAfterValue(sums);
  addArguments(arguments, builder);
  const float most = std::numeric_limits<float>::max();
  Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
  auto doubt = DoubtOp::create(builder, loc, flag, always, sums, builder.getF32FloatAttr(-most),
                               builder.getF32FloatAttr(most));
  auto branch = scf::IfOp::create(builder, loc, sums.getType(), isAgain, /*withElseRegion=*/true);
  llvm::SmallPtrSet<Operation *, 2> own = {doubt, branch};
  sums.replaceAllUsesExcept(branch.getResult(0), own);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, sums);
  builder.setInsertionPointToStart(branch.thenBlock());
  mapping.map(product.producer.tiles.getInductionVar(), product.consumer.tiles.getInductionVar());
  auto at = [&](Value value) { return computeAt(&builder, branch, value, mapping); };
  scf::ForOp steps = product.steps;
  Value lower = at(steps.getLowerBound()), upper = at(steps.getUpperBound());
  // Warps that meet in the loop must agree, while the producer may note values of a later tile.
  Value isAny = NotedOp::create(builder, loc, cleared);
  auto number = [&](float value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(value));
  };
  Value mark = arith::SelectOp::create(builder, loc, isAny, number(-1), number(0));
  auto row = RankedTensorType::get({cast<RankedTensorType>(sums.getType()).getDimSize(1)},
                                   builder.getF32Type(), sliceLayout(layout, 0));
  Value marks = BroadcastOp::create(builder, loc, row, mark, ArrayRef<int64_t>());
  Value none = NoneNegativeOp::create(builder, loc, marks);
  upper = arith::SelectOp::create(builder, loc, none, lower, upper);
  auto loop = scf::ForOp::create(builder, loc, lower, upper, at(steps.getStep()), sums);
  builder.setInsertionPointToStart(loop.getBody());
  mapping.map(steps.getInductionVar(), loop.getInductionVar());
  mapping.map(product.masked.getInductionVar(), loop.getInductionVar());
  for (Value coordinate : product.load.getCoordinates())
    coordinates.push_back(computeAt(&builder, loop, coordinate, mapping));
  if (isBefore)
    shift = arith::SelectOp::create(builder, loc, computeAt(&builder, loop, isBefore, mapping),
                                    index(builder, loc, before), index(builder, loc, 0));
  const int64_t keys = product.load.getTarget().getType().getShape()[0];
  auto one = scf::ForOp::create(builder, loc, index(builder, loc, 0), index(builder, loc, keys),
                                index(builder, loc, 1), loop.getRegionIterArg(0));
  scf::YieldOp::create(builder, loc, one.getResult(0));
  builder.setInsertionPointToStart(one.getBody());
  Value added = addKey(builder, one.getRegionIterArg(0), one.getInductionVar());
  scf::YieldOp::create(builder, loc, added);
  builder.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(builder, loc, loop.getResult(0));
}
