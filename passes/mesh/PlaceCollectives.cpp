//===- PlaceCollectives.cpp - collectives from the index algebra ----------===//
//
// 1. Go through the compute ops in order, with what is known of how each tensor is sharded: that of
//    parameters is declared.
// 2. Give a reduction over a sharded dimension a compute op of its own (SeparatePartials.cpp).
// 3. Choose for each axis of the mesh the index of the compute op that its ranks divide
//    (ChooseCarrier.cpp). The axis then shards the result along that index.
// 4. Rewrite the compute op for a rank's share: operands that lie otherwise are gathered or
// exchanged
//    in front of it, and partial results are combined behind it (Placer.cpp).
// 5. Bring results into the sharding that the signature declares.
//
//   y[m @ tp, c] = sum[f](h[m, f @ tp] * w[f @ tp, c])
//     =>
//   %p = tk.compute ["m", "c"] {tk.reduce [sum] ["f"] from 0 to F / 2 {…}}
//   %q = tk.reduce_scatter <sum> %p over "tp" dim 0
//   %y = tk.compute ["m", "c"] in (M / 2, C) {q[m, c]}
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Notes.h"
#include "passes/mesh/MeshPasses.h"
#include "passes/mesh/Placer.h"
#include "passes/mesh/SeparatePartials.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tk {
#define GEN_PASS_DEF_PLACECOLLECTIVES
#include "passes/mesh/MeshPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

namespace tk::mesh {

Placer::Placer(KernelOp kernel, MeshCosts costs)
    : kernel(kernel), axes(meshOf(kernel)), costs(std::move(costs)), builder(kernel.getContext()) {}

/// How a parameter, or behind those a result, is declared to be sharded. An axis of one rank shards
/// nothing.
Sharding Placer::declaredSharding(unsigned number, int64_t rank) const {
  Sharding sharding = shardingOf(kernel, number, rank);
  for (int &axis : sharding)
    if (axis != noShard && axes[axis].size == 1)
      axis = noShard;
  return sharding;
}

Sharding Placer::requiredOf(unsigned result) const {
  KernelOp source = kernel;
  Value value = source.getReturn().getResults()[result];
  const int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  const unsigned declared = source.getResultNames().size();
  if (result < declared)
    return declaredSharding(source.getParams().size() + result, rank);
  // Behind the results are the new values of the inout parameters, in order.
  unsigned seen = declared;
  for (unsigned i = 0; i < source.getParams().size(); ++i)
    if (source.getParam(i).getInout() && seen++ == result)
      return declaredSharding(i, rank);
  return Sharding(rank, noShard);
}

/// How the result of a compute op should be sharded: as declared, else as its readers' results are
/// along the same indices.
Sharding Placer::desiredOf(Value tensor, bool &isRequired) {
  Sharding desired(cast<RankedTensorType>(tensor.getType()).getRank(), noShard);
  for (OpOperand &use : tensor.getUses())
    if (isa<ReturnOp>(use.getOwner())) {
      isRequired = true;
      return requiredOf(use.getOperandNumber());
    }
  for (OpOperand &use : tensor.getUses()) {
    auto reader = use.getOwner()->getParentOfType<ComputeOp>();
    if (!isa<LoadOp>(use.getOwner()) || !reader || reader.getNumResults() != 1)
      continue;
    bool ignored = false;
    const Sharding readers = desiredOf(reader.getResult(0), ignored);
    for (auto [dim, index] : llvm::enumerate(cast<LoadOp>(use.getOwner()).getIndices())) {
      auto argument = dyn_cast<BlockArgument>(index);
      if (!argument || argument.getOwner() != reader.getBlock() || desired[dim] != noShard ||
          !isSame(extentOf(argument), extentsOf(tensor)[dim]))
        continue;
      const int axis = readers[argument.getArgNumber()];
      if (axis != noShard && !llvm::is_contained(desired, axis))
        desired[dim] = axis;
    }
  }
  return desired;
}

RankedTensorType Placer::localType(RankedTensorType type, const Sharding &sharding) const {
  SmallVector<int64_t> shape(type.getShape());
  for (auto [extent, axis] : llvm::zip(shape, sharding))
    if (axis != noShard && !ShapedType::isDynamic(extent))
      extent /= axes[axis].size;
  return RankedTensorType::get(shape, type.getElementType());
}

void Placer::createKernel() {
  builder.setInsertionPoint(kernel);
  made = cast<KernelOp>(builder.insert(kernel->cloneWithoutRegions()));
  made->setAttr(placedAttr, builder.getUnitAttr());
  Block *block = builder.createBlock(&made.getBody());
  for (BlockArgument dim : kernel.getDimArguments())
    values.map(dim, block->addArgument(dim.getType(), dim.getLoc()));
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments())) {
    auto type = dyn_cast<RankedTensorType>(param.getType());
    if (!type) {
      values.map(param, block->addArgument(param.getType(), param.getLoc()));
      continue;
    }
    const Sharding sharding = declaredSharding(i, type.getRank());
    Value local = block->addArgument(localType(type, sharding), param.getLoc());
    tensors[param] = {local, sharding, {}};
  }
  builder.setInsertionPointToEnd(block);
}

KernelOp Placer::run() {
  createKernel();
  findSoftmaxes();
  SmallVector<Operation *> body;
  for (Operation &op : kernel.getBody().front())
    body.push_back(&op);
  for (Operation *op : body) {
    if (auto compute = dyn_cast<ComputeOp>(op)) {
      if (placeLog(compute))
        continue;
      for (ComputeOp sum : separated.lookup(compute))
        place(sum);
      auto sharding = [&](Value tensor) { return tensors.lookup(tensor).sharding; };
      for (ComputeOp partial : separatePartials(compute, sharding))
        place(partial);
      place(compute);
    } else if (auto bind = dyn_cast<BindOp>(op)) {
      Placed &param = tensors[bind.getTensor()];
      SmallVector<Value> local;
      for (auto [extent, axis] : llvm::zip(bind.getExtents(), param.sharding)) {
        param.extents.push_back(values.lookup(extent));
        local.push_back(shareOf(param.extents.back(), axis));
      }
      BindOp::create(builder, bind.getLoc(), param.tensor, local);
    } else if (!isa<ReturnOp>(op)) {
      builder.clone(*op, values);
    }
  }
  if (failed || !placeResults()) {
    made.erase();
    return {};
  }
  addDivisibility();
  eraseUnused();
  return made;
}

void Placer::place(ComputeOp compute) {
  if (compute.getNumResults() > 0 && tensors.contains(compute.getResult(0)))
    return; // ahead of its turn
  if (auto softmax = softmaxOf.find(compute); softmax != softmaxOf.end())
    decide(*softmax->second);
  else if (placeByExchange(compute))
    return;
  SmallVector<TensorUse> uses = usesOf(compute);
  bool isRequired = false;
  const Sharding desired = desiredOf(compute.getResult(0), isRequired);
  placeWith(compute, uses, desired, isRequired, noShard);
}

/// `slotAxis` divides the first index, whatever that costs.
void Placer::placeWith(ComputeOp compute, MutableArrayRef<TensorUse> uses, const Sharding &desired,
                       bool isRequired, int slotAxis) {
  auto sharding = [&](Value tensor) { return tensors.lookup(tensor).sharding; };
  const CarrierQuery query{compute, uses, sharding, desired, isRequired, &costs};
  SmallVector<BlockArgument> carriers;
  SmallVector<int> gathered; // axes whose ranks each read what they have of a table
  std::string reasons;
  for (auto [axis, info] : llvm::enumerate(axes)) {
    std::string why;
    if (static_cast<int>(axis) == slotAxis) {
      carriers.push_back(compute.getIndex(0));
      continue;
    }
    if (const auto known = forced.find({compute, static_cast<int>(axis)});
        known != forced.end() && (!known->second || !llvm::is_contained(carriers, known->second))) {
      carriers.push_back(known->second);
      reasons += (reasons.empty() ? "'" : "; '") + info.name.str() + "' " +
                 (carriers.back() ? "divides '" + nameOf(carriers.back()).str() + "' of "
                                  : std::string("divides nothing of ")) +
                 describe(compute) + ": " + softmaxOf.lookup(compute)->why;
      continue;
    }
    if (keepShares(compute, uses, axis)) {
      gathered.push_back(axis);
      carriers.push_back({});
      reasons += (reasons.empty() ? "each rank of '" : "; each rank of '") +
                 (info.name + "' reads its share of a table for " + describe(compute)).str();
      continue;
    }
    carriers.push_back(chooseCarrier(query, axis, info.size, carriers, why));
    const bool concerns = llvm::any_of(uses, [&](const TensorUse &use) {
      return llvm::is_contained(sharding(use.load.getTensor()), static_cast<int>(axis));
    });
    if (carriers.back())
      reasons += (reasons.empty() ? "" : "; ") + ("'" + info.name + "' divides '").str() +
                 nameOf(carriers.back()).str() + "' of " + describe(compute) + ": " + why;
    else if (concerns)
      reasons += (reasons.empty() ? "" : "; ") + ("each rank of '" + info.name).str() +
                 "' computes all of " + describe(compute) + ": " + why;
  }
  Placed placed = rewrite(compute, uses, carriers);
  if (!reasons.empty() && placed.tensor)
    note(placed.tensor.getDefiningOp(), "tk-place-collectives", Verdict::Derived, reasons);
  Softmax *state = stateOf(compute);
  combinePartials(placed, compute, carriers, query.desired, state ? state->axis : noShard);
  if (state)
    combineStates(*state, placed, compute, query.desired);
  const Type own = cast<RankedTensorType>(compute.getResult(0).getType()).getElementType();
  for (int axis : gathered) {
    const bool isBool =
        cast<RankedTensorType>(placed.tensor.getType()).getElementType().isInteger(1);
    combine(placed, isBool ? ReduceKind::Any : ReduceKind::Sum, describe(compute), axis,
            query.desired);
    convertElements(placed, own, cast<StringAttr>(compute.getNames()[0]).getValue());
  }
  tensors[compute.getResult(0)] = placed;
}

bool Placer::placeResults() {
  auto ret = kernel.getReturn();
  SmallVector<Value> results;
  for (auto [i, value] : llvm::enumerate(ret.getResults())) {
    Placed result = tensors[value];
    const std::string name =
        i < kernel.getResultNames().size()
            ? cast<StringAttr>(kernel.getResultNames()[i]).getValue().str()
            : cast<StringAttr>(cast<ComputeOp>(value.getDefiningOp()).getNames()[0]).str();
    convert(result, requiredOf(i), name);
    results.push_back(result.tensor);
  }
  ReturnOp::create(builder, ret.getLoc(), results);
  return !failed;
}

/// The launch checks that the axes divide the extents that they shard.
void Placer::addDivisibility() {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(made.getReturn());
  for (auto &[key, share] : shares) {
    Value extent = key.first;
    if (divided.contains(extent))
      continue;
    const MeshAxisInfo &axis = axes[key.second];
    std::optional<int64_t> number = getConstantIntValue(extent);
    if (number && *number % axis.size == 0)
      continue;
    Location loc = made.getLoc();
    Value size = arith::ConstantIndexOp::create(builder, loc, axis.size);
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value rest = FloorModOp::create(builder, loc, extent.getType(), extent, size).getResult();
    Value divides = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rest, zero);
    StringRef dim = made.getDimName(extent);
    std::string name = number ? std::to_string(*number) : dim.str();
    const std::string text = (name.empty() ? "a sharded extent" : name) + " % " +
                             std::to_string(axis.size) + " == 0 (axis '" + axis.name.str() +
                             "' of the mesh)";
    auto check =
        AssumeOp::create(builder, loc, divides, builder.getStringAttr(text), /*bounds=*/false);
    check->setAttr(dividesAttr, builder.getUnitAttr());
  }
}

/// Sizes and positions that no share needed, and rows that nobody reads by their numbers.
void Placer::eraseUnused() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(made.getBody().front())))
    if (op.use_empty() && (isa<RankOp, arith::MulIOp, arith::ConstantOp, FloorDivOp, ComputeOp,
                               ExchangeOp, AllGatherOp>(op)))
      op.erase();
}

} // namespace tk::mesh

KernelOp tk::placeCollectives(KernelOp kernel) {
  if (failed(verifyMesh(kernel)))
    return {};
  if (llvm::any_of(meshOf(kernel), [](const MeshAxisInfo &axis) { return axis.size < 1; })) {
    kernel.emitError("expected the sizes of the mesh's axes in ") << meshSizesAttr;
    return {};
  }
  llvm::Expected<mesh::MeshCosts> costs = mesh::MeshCosts::of(kernel);
  if (!costs) {
    kernel.emitError("the network of the mesh: ") << llvm::toString(costs.takeError());
    return {};
  }
  KernelOp made = mesh::Placer(kernel, std::move(*costs)).run();
  if (made)
    kernel.erase();
  return made;
}

namespace {
struct PlaceCollectivesPass : tk::impl::PlaceCollectivesBase<PlaceCollectivesPass> {
  void runOnOperation() override {
    for (KernelOp kernel : llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (kernel->hasAttr(meshAttr) && !kernel->hasAttr(placedAttr) && !placeCollectives(kernel))
        return signalPassFailure();
  }
};
} // namespace
