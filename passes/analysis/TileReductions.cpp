//===- TileReductions.cpp - compute ops that reduce a tile's results ------===//
#include "passes/analysis/TileReductions.h"

#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

namespace {

/// The results of a statement that is made anew with more of them, or fewer.
struct Results {
  SmallVector<Type> types;
  SmallVector<Attribute> lists, names, entries;
  SmallVector<Value> values; ///< of the old statement's body

  void add(Type type, ArrayRef<int64_t> positions, Attribute name, Attribute entry, Value value) {
    types.push_back(type);
    lists.push_back(DenseI64ArrayAttr::get(type.getContext(), positions));
    names.push_back(name);
    entries.push_back(entry);
    values.push_back(value);
  }
  /// What `compute` has as result `r`.
  void add(ComputeOp compute, unsigned r) {
    ArrayAttr known = gpu::getPlan(compute).tileReductions;
    add(compute.getResult(r).getType(), llvm::to_vector_of<int64_t>(compute.getIndicesOf(r)),
        compute.getNames()[r], known ? known[r] : UnitAttr::get(compute.getContext()),
        compute.getYield().getValues()[r]);
  }
};

} // namespace

/// The statement `compute` with `results` and `tiles`, and with more indices behind its own, if so
/// many are given. The old one has no body then.
static ComputeOp recreate(ComputeOp compute, const Results &results, gpu::ScheduleAttr tiles,
                          ArrayRef<Attribute> indexNames, ValueRange extents) {
  OpBuilder builder(compute);
  auto made = ComputeOp::create(
      builder, compute.getLoc(), results.types, builder.getArrayAttr(indexNames), extents,
      builder.getArrayAttr(results.lists), builder.getArrayAttr(results.names));
  made->setDiscardableAttrs(compute->getDiscardableAttrDictionary());
  gpu::changePlan(made, [&](gpu::KernelPlan &plan) {
    plan.tiles = tiles;
    plan.tileReductions = builder.getArrayAttr(results.entries);
  });
  made.getBody().takeBody(compute.getBody());
  while (made.getBlock()->getNumArguments() < extents.size())
    made.getBlock()->addArgument(builder.getIndexType(), compute.getLoc());
  made.getYield().getValuesMutable().assign(results.values);
  return made;
}

ComputeOp tk::addTileReduction(ComputeOp compute, const AddedReduction &added, StringRef name) {
  OpBuilder builder(compute);
  auto schedule = gpu::getTiles(compute);
  // The counters stand where the indices do, so that neighbours stay neighbours.
  SmallVector<int64_t> positions, counters(added.reduced.size()), tile(schedule.getTile()),
      step(schedule.getStep());
  SmallVector<Attribute> indexNames(compute.getIndexNames().getValue());
  SmallVector<Value> extents(compute.getExtents());
  for (unsigned index : added.positions) {
    const unsigned *at = llvm::find(added.reduced, index);
    if (at == added.reduced.end()) {
      positions.push_back(index);
      continue;
    }
    const bool countsBlocks = added.blocks && at == added.reduced.begin();
    Value count = added.blocks;
    if (!countsBlocks) {
      Value size = arith::ConstantIndexOp::create(builder, compute.getLoc(),
                                                  added.sizes[at - added.reduced.begin()]);
      count = builder.createOrFold<arith::CeilDivSIOp>(compute.getLoc(), extents[index], size);
    }
    const auto counter = static_cast<int64_t>(extents.size());
    counters[at - added.reduced.begin()] = counter;
    positions.push_back(counter);
    extents.push_back(count);
    indexNames.push_back(builder.getStringAttr((countsBlocks ? "blocks_" : "tiles_") +
                                               cast<StringAttr>(indexNames[index]).getValue()));
    tile.push_back(1);
    if (!step.empty())
      step.push_back(1);
  }
  SmallVector<int64_t> shape;
  for (int64_t position : positions)
    shape.push_back(getConstantIntValue(extents[position]).value_or(ShapedType::kDynamic));
  Results results;
  for (unsigned r = 0; r < compute.getNumResults(); ++r)
    results.add(compute, r);
  auto entry = gpu::TileReductionAttr::get(
      builder.getContext(), ReduceKindAttr::get(builder.getContext(), added.kind),
      builder.getDenseI64ArrayAttr(counters),
      builder.getDenseI64ArrayAttr(llvm::to_vector_of<int64_t>(added.reduced)),
      builder.getDenseI64ArrayAttr(added.sizes), /*carried=*/bool(added.blocks));
  results.add(RankedTensorType::get(shape, added.value.getType()), positions,
              builder.getStringAttr(name), entry, added.value);
  auto tiles = gpu::ScheduleAttr::get(
      builder.getContext(), tile, schedule.getReduce(), schedule.getLoop(), schedule.getWarps(),
      schedule.getPerThread(), schedule.getVector(), schedule.getStages(), schedule.getGroup(),
      schedule.getPersistent(), schedule.getCluster(), step, schedule.getTeams());
  ComputeOp result = recreate(compute, results, tiles, indexNames, extents);
  compute->replaceAllUsesWith(result->getResults().drop_back());
  compute->erase();
  return result;
}

void tk::dropUnusedResults(ComputeOp compute) {
  auto isUnused = [](Value result) { return result.use_empty(); };
  if (!gpu::getPlan(compute).tileReductions || llvm::none_of(compute->getResults(), isUnused))
    return;
  Results results;
  SmallVector<Value> kept;
  for (OpResult result : compute->getResults())
    if (!isUnused(result)) {
      results.add(compute, result.getResultNumber());
      kept.push_back(result);
    }
  ComputeOp rest = recreate(compute, results, gpu::getTiles(compute),
                            compute.getIndexNames().getValue(), compute.getExtents());
  for (auto [old, result] : llvm::zip_equal(kept, rest->getResults()))
    old.replaceAllUsesWith(result);
  compute->erase();
}
