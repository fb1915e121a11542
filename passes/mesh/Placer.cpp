//===- Placer.cpp - one compute op, rewritten for a rank ------------------===//
//
// In the body an index that an axis divides counts a rank's own elements. It stays so where it
// selects from a share. Everywhere else its global value stands: that plus where the share begins.
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/Placer.h"

#include "passes/analysis/Notes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace tk::mesh {

static constexpr llvm::StringLiteral passName = "tk-place-collectives";

Value Placer::shareOf(Value extent, int axis) {
  if (axis == noShard)
    return extent;
  Value &share = shares[{extent, axis}];
  if (share)
    return share;
  const int64_t size = axes[axis].size;
  Location loc = extent.getLoc();
  if (std::optional<int64_t> number = getConstantIntValue(extent))
    return share = arith::ConstantIndexOp::create(builder, loc, *number / size);
  Value ranks = arith::ConstantIndexOp::create(builder, loc, size);
  return share = FloorDivOp::create(builder, loc, extent.getType(), extent, ranks).getResult();
}

Value Placer::offsetOf(Value extent, int axis) {
  Value &offset = offsets[{extent.getAsOpaquePointer(), axis}];
  if (offset)
    return offset;
  Value &rank = ranks[axis];
  if (!rank)
    rank = RankOp::create(builder, extent.getLoc(), builder.getIndexType(), axes[axis].name);
  return offset = arith::MulIOp::create(builder, extent.getLoc(), rank, shareOf(extent, axis));
}

Value Placer::allGather(Location loc, const Placed &from, unsigned dim) {
  const int axis = from.sharding[dim];
  auto type = cast<RankedTensorType>(from.tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  if (!ShapedType::isDynamic(shape[dim]))
    shape[dim] *= axes[axis].size;
  return AllGatherOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()),
                             from.tensor, axes[axis].name, dim);
}

Value Placer::allToAll(Location loc, const Placed &from, unsigned dim, unsigned to) {
  const int axis = from.sharding[dim];
  auto type = cast<RankedTensorType>(from.tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  if (!ShapedType::isDynamic(shape[dim]))
    shape[dim] *= axes[axis].size;
  if (!ShapedType::isDynamic(shape[to]))
    shape[to] /= axes[axis].size;
  shareOf(from.extents[to], axis); // has to be divisible
  return AllToAllOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()),
                            from.tensor, axes[axis].name, dim, to);
}

/// How a note names a tensor of the old kernel.
static std::string tensorName(Value tensor) {
  if (auto compute = tensor.getDefiningOp<ComputeOp>())
    return "'" + cast<StringAttr>(compute.getNames()[0]).getValue().str() + "'";
  auto argument = cast<BlockArgument>(tensor);
  auto kernel = cast<KernelOp>(argument.getOwner()->getParentOp());
  return "'" + kernel.getParam(argument.getArgNumber() - kernel.getNumDims()).getName().str() + "'";
}

Placer::Placed Placer::versionFor(const TensorUse &use, ArrayRef<BlockArgument> carriers) {
  Value key = use.load.getTensor();
  Placed placed = tensors[key];
  for (auto [number, carrier] : llvm::enumerate(carriers)) {
    const int axis = static_cast<int>(number);
    unsigned to = 0;
    const Movement movement = movementOf(use, placed.sharding, axis, carrier, &to);
    if (movement == Movement::none)
      continue;
    const unsigned dim = llvm::find(placed.sharding, axis) - placed.sharding.begin();
    Sharding next = placed.sharding;
    next[dim] = noShard;
    if (movement == Movement::allToAll)
      next[to] = axis;
    Value &version =
        versions[{key.getAsOpaquePointer(), std::vector<int>(next.begin(), next.end())}];
    if (!version) {
      const std::string axisName = "'" + axes[axis].name.str() + "'";
      version = movement == Movement::allToAll ? allToAll(use.load.getLoc(), placed, dim, to)
                                               : allGather(use.load.getLoc(), placed, dim);
      const char *what = movement == Movement::allToAll
                             ? " another index of it is divided here: all-to-all over "
                             : " this reads all of it: all-gather over ";
      note(version.getDefiningOp(), passName, Verdict::Derived,
           axisName + " shards dimension " + Twine(dim) + " of " + tensorName(key) + ", and" +
               what + axisName);
    }
    placed = {version, next, placed.extents};
  }
  return placed;
}

void Placer::useGlobalIndex(BlockArgument index, Value offset,
                            const llvm::SmallPtrSetImpl<OpOperand *> &local) {
  SmallVector<OpOperand *> others;
  for (OpOperand &use : index.getUses())
    if (!local.contains(&use))
      others.push_back(&use);
  if (others.empty())
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(index.getOwner());
  Value global = arith::AddIOp::create(builder, index.getLoc(), index, offset);
  for (OpOperand *use : others)
    use->set(global);
}

/// Where the whole dimension ends that the carrier selects from.
static Value dimensionOf(BlockArgument carrier, ArrayRef<TensorUse> uses) {
  if (Value extent = extentOf(carrier))
    return extent;
  for (const TensorUse &use : uses)
    for (auto [subscript, extent] : llvm::zip(use.subscripts, extentsOf(use.load.getTensor())))
      if (subscript.index == carrier)
        return extent;
  return {};
}

/// Makes a reduction run over the part of its range that is in the rank's share of a dimension.
void Placer::boundShare(ReduceOp reduce, unsigned index, bool isWhole, Value share, Value offset) {
  if (isWhole) {
    reduce.getUpperMutable()[index].set(share);
    return;
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(reduce);
  Location loc = reduce.getLoc();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value lower = arith::SubIOp::create(builder, loc, reduce.getLower()[index], offset);
  Value upper = arith::SubIOp::create(builder, loc, reduce.getUpper()[index], offset);
  reduce.getLowerMutable()[index].set(arith::MaxSIOp::create(builder, loc, lower, zero));
  reduce.getUpperMutable()[index].set(arith::MinSIOp::create(builder, loc, upper, share));
}

/// Lets a load of a share use the rank's own position; returns the operands that hold it.
void Placer::useShare(LoadOp load, unsigned dim, const Subscript &subscript, BlockArgument index,
                      llvm::SmallPtrSetImpl<OpOperand *> &local) {
  OpOperand &position = load.getIndicesMutable()[dim];
  if (!subscript.isQuotient) {
    local.insert(&position);
    return;
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(load);
  auto whole = position.get().getDefiningOp<FloorDivOp>();
  auto own = FloorDivOp::create(builder, load.getLoc(), index.getType(), index, whole.getRhs());
  position.set(own.getResult());
  local.insert(&own->getOpOperand(0));
  if (whole->use_empty())
    whole.erase();
}

Placer::Placed Placer::rewrite(ComputeOp compute, ArrayRef<TensorUse> uses,
                               ArrayRef<BlockArgument> carriers) {
  SmallVector<Placed> operands;
  for (const TensorUse &use : uses)
    operands.push_back(versionFor(use, carriers));
  Placed placed{{}, Sharding(compute.getNumIndices(), noShard), {}};
  SmallVector<Value> extents;
  for (auto [i, extent] : llvm::enumerate(compute.getExtents())) {
    const auto *carrier = llvm::find(carriers, compute.getIndex(i));
    if (carrier != carriers.end())
      placed.sharding[i] = static_cast<int>(carrier - carriers.begin());
    placed.extents.push_back(values.lookup(extent));
    extents.push_back(shareOf(placed.extents.back(), placed.sharding[i]));
  }
  SmallVector<std::tuple<unsigned, unsigned, Value>> loaded; // use, dimension, where shares begin
  for (auto [number, use] : llvm::enumerate(uses))
    for (auto [dim, subscript] : llvm::enumerate(use.subscripts))
      if (subscript.keepsShare) {
        Placed &table = tensors[use.load.getTensor()];
        loaded.emplace_back(number, dim, offsetOf(table.extents[dim], table.sharding[dim]));
      }
  SmallVector<std::pair<Value, Value>> bounds; // share and offset, of each axis
  for (auto [axis, carrier] : llvm::enumerate(carriers)) {
    if (!carrier) {
      bounds.emplace_back();
      continue;
    }
    Value whole = values.lookup(dimensionOf(carrier, uses));
    bounds.emplace_back(shareOf(whole, axis), offsetOf(whole, axis));
  }
  IRMapping mapping = values;
  auto local = cast<ComputeOp>(builder.clone(*compute, mapping));
  local->setOperands(extents);
  auto type = cast<RankedTensorType>(compute.getResult(0).getType());
  local.getResult(0).setType(localType(type, placed.sharding));
  placed.tensor = local.getResult(0);
  SmallVector<LoadOp> loads;
  local.walk([&](LoadOp load) { loads.push_back(load); });
  for (auto [load, operand] : llvm::zip(loads, operands))
    load.getTensorMutable().set(operand.tensor);
  for (auto [number, dim, offset] : loaded) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loads[number]);
    OpOperand &position = loads[number].getIndicesMutable()[dim];
    position.set(arith::SubIOp::create(builder, loads[number].getLoc(), position.get(), offset));
  }
  for (auto [axis, carrier] : llvm::enumerate(carriers)) {
    if (!carrier)
      continue;
    const unsigned number = carrier.getArgNumber();
    ReduceOp reduction;
    if (carrier.getOwner() != compute.getBlock())
      reduction = soleReduction(local);
    BlockArgument index = reduction ? reduction.getIndex(number) : local.getIndex(number);
    llvm::SmallPtrSet<OpOperand *, 8> own;
    for (auto [use, operand, load] : llvm::zip(uses, operands, loads))
      for (auto [dim, subscript] : llvm::enumerate(use.subscripts))
        if (subscript.index == carrier && operand.sharding[dim] == static_cast<int>(axis))
          useShare(load, dim, subscript, index, own);
    auto [share, offset] = bounds[axis];
    if (reduction)
      boundShare(reduction, number, static_cast<bool>(extentOf(carrier)), share, offset);
    useGlobalIndex(index, offset, own);
  }
  return placed;
}

/// Whether a compute op is a gather from a dimension that the axis shards: each rank then reads its
/// share of that dimension.
bool Placer::keepShares(ComputeOp compute, MutableArrayRef<TensorUse> uses, int axis) {
  if (!isGather(compute))
    return false;
  for (TensorUse &use : uses)
    for (auto [own, subscript] : llvm::zip(tensors[use.load.getTensor()].sharding, use.subscripts))
      if (own == axis && subscript.isLoaded &&
          use.load.getResult() == compute.getYield().getValues()[0])
        return subscript.keepsShare = true;
  return false;
}

/// A rank's own part of a tensor that it has whole.
Value Placer::slice(const Placed &from, unsigned dim, int axis, StringRef name) {
  Value offset = offsetOf(from.extents[dim], axis);
  SmallVector<Value> extents;
  SmallVector<std::string> indices;
  for (auto [i, extent] : llvm::enumerate(from.extents)) {
    extents.push_back(shareOf(extent, i == dim ? axis : from.sharding[i]));
    indices.push_back("i" + std::to_string(i));
  }
  auto type = cast<RankedTensorType>(from.tensor.getType());
  auto made = ComputeOp::create(
      builder, from.tensor.getLoc(), SmallVector<StringRef>(indices.begin(), indices.end()),
      extents, ArrayRef<Type>{type.getElementType()}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &inner, Location loc, ValueRange arguments) {
        SmallVector<Value> position(arguments);
        position[dim] = arith::AddIOp::create(inner, loc, position[dim], offset);
        Value read = LoadOp::create(inner, loc, from.tensor, position, Value()).getResult();
        YieldOp::create(inner, loc, ValueRange{read});
      });
  return made.getResult(0);
}

/// Brings a result into its declared sharding: what is to be whole, or stands where another axis is
/// to stand, is gathered first.
void Placer::convert(Placed &result, const Sharding &wanted, StringRef name) {
  Location loc = result.tensor.getLoc();
  auto dimOf = [](const Sharding &sharding, int axis) {
    const auto *found = llvm::find(sharding, axis);
    return found == sharding.end() ? noShard : static_cast<int>(found - sharding.begin());
  };
  auto describeAxis = [&](int axis, int dim) {
    return "'" + axes[axis].name.str() + "' shards dimension " + std::to_string(dim) + " of '" +
           name.str() + "' as it is computed, ";
  };
  const int count = static_cast<int>(axes.size());
  for (int axis = 0; axis < count; ++axis) {
    const int from = dimOf(result.sharding, axis), to = dimOf(wanted, axis);
    if (from == noShard || from == to || (to != noShard && result.sharding[to] == noShard))
      continue;
    result.tensor = allGather(loc, result, from);
    result.sharding[from] = noShard;
    note(result.tensor.getDefiningOp(), passName, Verdict::Derived,
         describeAxis(axis, from) + "and the result is declared otherwise: all-gather");
  }
  for (int axis = 0; axis < count; ++axis) {
    const int from = dimOf(result.sharding, axis), to = dimOf(wanted, axis);
    if (from == to || from == noShard)
      continue;
    result.tensor = allToAll(loc, result, from, to);
    note(result.tensor.getDefiningOp(), passName, Verdict::Derived,
         describeAxis(axis, from) + "and dimension " + Twine(to) +
             " as it is declared: all-to-all");
    result.sharding[from] = noShard;
    result.sharding[to] = axis;
  }
  for (int axis = 0; axis < count; ++axis) {
    const int to = dimOf(wanted, axis);
    if (to == noShard || result.sharding[to] == axis)
      continue;
    result.tensor = slice(result, to, axis, name);
    result.sharding[to] = axis;
  }
}

} // namespace tk::mesh
