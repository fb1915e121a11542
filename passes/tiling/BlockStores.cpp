//===- BlockStores.cpp - what a block stores, and where -------------------===//
#include "passes/analysis/ChangedElements.h"
#include "passes/tiling/BlockProgram.h"
#include "passes/tiling/PartLocations.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace tk;

/// Does index `p` only count the tiles of another?
bool BlockProgram::countsTiles(unsigned p) {
  return llvm::any_of(llvm::seq(compute.getNumResults()), [&](unsigned r) {
    std::optional<TileReduction> reduction = getTileReduction(compute, r);
    return reduction && llvm::any_of(reduction->axes, [&](const TileReduction::Axis &axis) {
             return axis.counter == p;
           });
  });
}

/// The indices that the value yielded for result `r` is over.
SmallVector<unsigned> BlockProgram::indicesInTile(unsigned r) {
  SmallVector<unsigned> positions = compute.getIndicesOf(r);
  if (std::optional<TileReduction> reduction = getTileReduction(compute, r))
    for (const TileReduction::Axis &axis : reduction->axes)
      llvm::replace(positions, axis.counter, axis.index);
  return positions;
}

/// Which of the tiles along an axis the block has.
Value BlockProgram::tileNumber(unsigned axis) {
  if (!axes[axis].start)
    return indexConstant(0);
  return arith::DivUIOp::create(at(0), loc, axes[axis].start, indexConstant(axes[axis].size));
}

/// `value` reduced over an axis of its tile, or over parts of that; what is outside the index's
/// range counts as nothing.
TileValue BlockProgram::reduceInTile(TileValue value, const TileReduction::Axis &reduced,
                                     ReduceKind kind) {
  const unsigned id = axisOf.lookup(compute.getIndex(reduced.index));
  if (std::optional<TileValue> mask = exactMask(id))
    value = select(*mask, value, identityOf(kind, getElementTypeOrSelf(value.value.getType())));
  if (reduced.size >= axes[id].size)
    return reduceTile(value, id, kind);
  const unsigned parts = axisOfParts(reduced);
  unsigned *axis = llvm::find(value.axes, id);
  *axis = parts;
  Type type = tileType(value.axes, getElementTypeOrSelf(value.value.getType()));
  value.value = gpu::ReduceRunsOp::create(at(value.depth), loc, type, value.value, kind,
                                          axis - value.axes.begin());
  return value;
}

/// The least of `places`, of a tile, where `value` is the tile's extremum.
TileValue BlockProgram::findInTile(TileValue value, const TileValue &places,
                                   const TileReduction &reduction) {
  const unsigned id = axisOf.lookup(compute.getIndex(reduction.axes.front().index));
  Type element = getElementTypeOrSelf(value.value.getType());
  if (std::optional<TileValue> mask = exactMask(id))
    value = select(*mask, value, identityOf(reduction.kind, element));
  unsigned *axis = llvm::find(value.axes, id);
  const int64_t position = axis - value.axes.begin();
  Axes rest = value.axes;
  rest.erase(rest.begin() + position);
  auto found =
      gpu::ArgReduceOp::create(at(value.depth), loc, tileType(rest, element),
                               tileType(rest, getElementTypeOrSelf(places.value.getType())),
                               value.value, places.value, reduction.kind, position);
  return {found.getIndex(), rest, value.depth};
}

/// The axis along which a block has parts of one of its tile's axes.
unsigned BlockProgram::axisOfParts(const TileReduction::Axis &reduced) {
  const Value counter = compute.getIndex(reduced.counter);
  if (auto known = axisOf.find(counter); known != axisOf.end())
    return known->second;
  const unsigned whole = axisOf.lookup(compute.getIndex(reduced.index));
  const int64_t count = axes[whole].size / reduced.size;
  const unsigned id =
      newAxis(cast<StringAttr>(compute.getIndexNames()[reduced.counter]).getValue(), count, whole);
  axisOf[counter] = id;
  axes[id].rangeEnd = compute.getExtents()[reduced.counter];
  axes[id].isWhole = axes[whole].isWhole;
  if (axes[whole].start)
    axes[id].start = arith::MulIOp::create(at(0), loc, tileNumber(whole), indexConstant(count));
  if (axes[whole].limit)
    axes[id].limit = kernelValue(axes[id].rangeEnd);
  return id;
}

/// The one product of a statement, if CUDA cores form it. It comes first, in whichever order the
/// statement says what happens to its sums: a tile of what they are added to, loaded before the
/// loop over the terms, would be held all through it beside as many sums as a thread has room for.
static ReduceOp onlyWideProduct(ComputeOp compute) {
  auto reduces = llvm::to_vector(compute.getBlock()->getOps<ReduceOp>());
  if (reduces.size() != 1 || reduces[0].isOnline() || !isMatrixProduct(reduces[0]))
    return {};
  Operation *multiply = reduces[0].getYield().getValues()[0].getDefiningOp();
  Type operand = withoutExtension(multiply->getOperand(0)).getType();
  return isWideProduct(operand, getSumPrecision(reduces[0])) ? reduces[0] : ReduceOp();
}

/// Reduces what is stored to result `r`, a tile over `own`, if it is, or leaves that to the blocks'
/// tiles that carry it; the axes of what is stored.
Axes BlockProgram::reduceStored(unsigned r, const Axes &own, Store &store) {
  std::optional<TileReduction> reduction = getTileReduction(compute, r);
  if (reduction && reduction->isCarried) {
    Axes all = store.value.axes;
    store.carried = reduction;
    for (const TileReduction::Axis &axis : reduction->axes) {
      const unsigned id = axisOf.lookup(compute.getIndex(axis.index));
      if (std::optional<TileValue> mask = exactMask(id))
        store.value =
            select(*mask, store.value,
                   identityOf(reduction->kind, getElementTypeOrSelf(store.value.value.getType())));
      llvm::erase(all, id);
    }
    return all;
  }
  if (reduction && isArgReduction(reduction->kind)) {
    TileValue extremum = get(compute.getYield().getValues()[r - 1]);
    store.value = findInTile(broadcast(extremum, own, store.depth), store.value, *reduction);
  } else if (reduction) {
    // The last index first: a thread has several values along it.
    for (const TileReduction::Axis &axis : llvm::reverse(reduction->axes))
      store.value = reduceInTile(store.value, axis, reduction->kind);
  }
  return store.value.axes;
}

/// An element in place that is what it was is not stored: `x = if c then v else x` stores `v` where
/// `c` holds. Gives `c`, and `v` as `value`; null if the value is no such choice.
static Value keptElements(KernelOp kernel, ComputeOp compute, unsigned r, Value &value) {
  std::optional<ChangedElement> changed = getChangedElement(kernel, compute, r);
  if (!changed)
    return {};
  value = changed->choice.getTrueValue();
  if (changed->rounding) {
    OpBuilder inBody(compute.getYield());
    value = arith::TruncFOp::create(inBody, changed->rounding.getLoc(), changed->rounding.getType(),
                                    value);
  }
  return changed->choice.getCondition();
}

/// Evaluates what is stored to result `r`, and where.
LogicalResult BlockProgram::planStore(unsigned r, Store &store) {
  store.where = locationOfPart(loc, compute.getYield().getValues()[r], r, compute.getNumResults());
  llvm::SaveAndRestore ofResult(loc, Location(store.where));
  llvm::SetVector<unsigned> set;
  SmallVector<TileValue> masks;
  SmallVector<unsigned> positions = indicesInTile(r);
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    if (countsTiles(p))
      continue;
    unsigned id = axisOf.lookup(compute.getIndex(p));
    if (llvm::is_contained(positions, p)) {
      if (!axes[id].isScalar)
        set.insert(id);
    } else if (axes[id].start && id != loopAxis) {
      // All blocks along an index that this result is not over have the same value.
      masks.push_back(
          compare(arith::CmpIPredicate::eq, {axes[id].start, {}, 0}, {indexConstant(0), {}, 0}));
    }
  }
  if (ReduceOp product = onlyWideProduct(compute))
    get(product.getResult(0));
  Value stored = compute.getYield().getValues()[r];
  if (Value changes = keptElements(kernel, compute, r, stored))
    masks.push_back(isPlace ? TileValue{isPlace, {}, 0} : get(changes));
  if (visited)
    masks.push_back(isOwnPlace());
  TileValue value = get(stored);
  for (unsigned axis : value.axes)
    if (!set.contains(axis))
      return compute.emitError("expected result ")
             << r << " to depend on its own indices only, got index " << axes[axis].name;
  store.depth = scopes.size() - 1;
  const Axes own = sorted(set);
  store.value = broadcast(value, own, store.depth);
  const Axes all = reduceStored(r, own, store);
  addSafetyMasks(all, masks);
  for (unsigned id : all) // the rest is the next tile's
    if (axes[id].step < axes[id].size)
      masks.push_back(
          compare(arith::CmpIPredicate::slt,
                  {numbersAlong(axes[id], builder.getIndexType()), {id}, axes[id].depth},
                  {indexConstant(axes[id].step), {}, 0}));
  auto dimsOf = [&](const TileValue &part) -> Attribute {
    SmallVector<int64_t> dims;
    for (unsigned axis : part.axes)
      dims.push_back(llvm::find(all, axis) - all.begin());
    return builder.getDenseI64ArrayAttr(dims);
  };
  for (const TileValue &mask : masks) {
    store.masks.push_back(mask.value);
    store.maskDims.push_back(dimsOf(mask));
  }
  SmallVector<Value> extents;
  for (auto [inTile, p] : llvm::zip_equal(positions, compute.getIndicesOf(r))) {
    // What counts parts of a tile has an axis; what counts tiles themselves has none.
    auto known = axisOf.find(compute.getIndex(p));
    TileValue position;
    if (known != axisOf.end())
      position = get(compute.getIndex(p));
    else if (store.carried && counterOfBlocks(inTile))
      position = {firstTile ? firstTile : indexConstant(0), {}, 0};
    else
      position = {tileNumber(axisOf.lookup(compute.getIndex(inTile))), {}, 0};
    store.indices.push_back(position.value);
    store.indexDims.push_back(dimsOf(position));
    extents.push_back(compute.getExtents()[p]);
  }
  store.strides = strides(compute.getResult(r), extents);
  return success();
}

/// Stores `value`, where `store` says.
void BlockProgram::addStore(Store &store, Value value, Value buffer) {
  gpu::StoreOp::create(at(store.depth), store.where, value, buffer, store.indices, store.strides,
                       store.masks, builder.getArrayAttr(store.indexDims),
                       builder.getArrayAttr(store.maskDims));
}

LogicalResult BlockProgram::addStores() {
  unsigned count = compute.getNumResults();
  std::vector<Store> stores(count);
  auto inLoop = [&](unsigned r) {
    return loopAxis && llvm::any_of(indicesInTile(r), [&](unsigned p) {
             return axisOf.lookup(compute.getIndex(p)) == *loopAxis;
           });
  };
  for (unsigned r = 0; r < count; ++r)
    if (!inLoop(r) && failed(planStore(r, stores[r])))
      return failure();
  openLoop();
  for (unsigned r = 0; r < count; ++r)
    if (inLoop(r) && failed(planStore(r, stores[r])))
      return failure();
  for (Value value : taken)
    kernelValue(value);
  planRows(stores.front());
  SmallVector<Store *> carried;
  SmallVector<Value> carriedTo;
  for (auto [r, store] : llvm::enumerate(stores)) {
    auto tensor = cast<RankedTensorType>(compute.getResult(r).getType());
    auto type = gpu::BufferType::get(kernel.getContext(), tensor.getElementType());
    std::string name = identifierOf(cast<StringAttr>(compute.getNames()[r]).getValue());
    while (llvm::is_contained(argumentNames, name))
      name += "_out";
    argumentNames.push_back(name);
    Value buffer = func.getBlock()->addArgument(type, store.where);
    if (store.carried) {
      carried.push_back(&store);
      carriedTo.push_back(buffer);
      continue;
    }
    addStore(store, store.value.value, buffer);
  }
  closeLoop();
  skipRows();
  if (!carried.empty())
    carryThroughTiles(carried, carriedTo);
  return success();
}
