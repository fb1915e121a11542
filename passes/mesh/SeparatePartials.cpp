//===- SeparatePartials.cpp - reductions that leave partial results -------===//
//
// The ranks combine what a reduction leaves before anything else is done with it, so the reduction
// becomes a compute op over the indices that it depends on.
//
//   %y = tk.compute ["m", "n"] {%s = tk.reduce [sum] ["k"] {…}; gelu(%s)}
//     =>
//   %p = tk.compute ["m", "n"] {tk.reduce [sum] ["k"] {…}}
//   %y = tk.compute ["m", "n"] {gelu(p[m, n])}
//
// A gather from a sharded dimension is one, too: each rank reads what it has, 0 otherwise, and the
// sum over the ranks is what was to be read. A gather inside a reduction stays: its result would be
// larger than the tensor that it reads.
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/SeparatePartials.h"

#include "passes/analysis/ScalarExpr.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tk::mesh {

/// Whether an index of the reduction stands at a sharded dimension.
static bool isOverShards(ReduceOp reduce, ArrayRef<TensorUse> uses,
                         llvm::function_ref<Sharding(Value)> shardingOf) {
  if (reduce.isOnline() || !combinesOverRanks(reduce.getKind(0)))
    return false;
  return llvm::any_of(uses, [&](const TensorUse &use) {
    const Sharding sharding = shardingOf(use.load.getTensor());
    for (auto [axis, subscript] : llvm::zip(sharding, use.subscripts))
      if (axis != noShard && subscript.index &&
          subscript.index.getOwner()->getParentOp() == reduce.getOperation())
        return true;
    return false;
  });
}

/// The indices of `compute` on which a value in its body depends.
static SmallVector<unsigned> indicesBelow(Value value, ComputeOp compute) {
  SmallVector<unsigned> indices;
  for (unsigned i = 0; i < compute.getNumIndices(); ++i)
    if (Dependence(ValueRange{compute.getIndex(i)}).on(value))
      indices.push_back(i);
  return indices;
}

/// Whether a loaded subscript selects from a sharded dimension.
static bool isFromShards(const TensorUse &use, const Sharding &sharding) {
  return llvm::any_of(llvm::zip(sharding, use.subscripts), [](auto pair) {
    return std::get<0>(pair) != noShard && std::get<1>(pair).isLoaded;
  });
}

ComputeOp separate(Operation *op, StringRef suffix, ComputeOp compute) {
  Value result = op->getResult(0);
  SmallVector<unsigned> indices = indicesBelow(result, compute);
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  for (unsigned i : indices) {
    names.push_back(cast<StringAttr>(compute.getIndexNames()[i]).getValue());
    extents.push_back(compute.getExtents()[i]);
  }
  const std::string name =
      (cast<StringAttr>(compute.getNames()[0]).getValue() + "." + suffix).str();
  OpBuilder builder(compute);
  auto made =
      ComputeOp::create(builder, op->getLoc(), names, extents, ArrayRef<Type>{result.getType()},
                        ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                        [&](OpBuilder &inner, Location loc, ValueRange arguments) {
                          IRMapping mapping;
                          for (auto [argument, i] : llvm::zip(arguments, indices))
                            mapping.map(compute.getIndex(i), argument);
                          Value value = cloneSlice(inner, result, compute.getBlock(), mapping);
                          YieldOp::create(inner, loc, ValueRange{value});
                        });
  builder.setInsertionPoint(op);
  SmallVector<Value> position;
  for (unsigned i : indices)
    position.push_back(compute.getIndex(i));
  Value read =
      LoadOp::create(builder, op->getLoc(), made.getResult(0), position, Value()).getResult();
  result.replaceAllUsesWith(read);
  op->erase();
  return made;
}

SmallVector<ComputeOp> separatePartials(ComputeOp compute,
                                        llvm::function_ref<Sharding(Value)> shardingOf) {
  SmallVector<ComputeOp> made;
  if (compute.getNumResults() != 1)
    return made;
  if (!isGather(compute))
    for (const TensorUse &use : usesOf(compute))
      if (use.load->getBlock() == compute.getBlock() &&
          isFromShards(use, shardingOf(use.load.getTensor())))
        made.push_back(separate(use.load, "row", compute));
  for (ReduceOp reduce : llvm::make_early_inc_range(compute.getBlock()->getOps<ReduceOp>())) {
    if (reduce == soleReduction(compute) || !isOverShards(reduce, usesOf(compute), shardingOf))
      continue;
    made.push_back(separate(reduce, stringifyReduceKind(reduce.getKind(0)), compute));
  }
  return made;
}

} // namespace tk::mesh
