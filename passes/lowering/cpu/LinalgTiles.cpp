//===- LinalgTiles.cpp - linalg operations over a tile --------------------===//
//
// A value over some indices of a tile becomes one linalg.generic. Of what its body reads,
//  * a tile, and a load whose every index is one index of the tile plus something that is the same
//    in all of the tile, are inputs: slices, indexed by a projected permutation;
//  * a load, or an element of a tile, that is the same in all of the tile is read before the
//    operation;
//  * anything else (gathers, padded accesses) is a tensor.extract in the body.
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/LinalgEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Whether `offsets` and `sizes` are known to span all of a tensor.
static bool isWhole(RankedTensorType type, ArrayRef<OpFoldResult> offsets,
                    ArrayRef<OpFoldResult> sizes) {
  for (auto [axis, size] : llvm::enumerate(sizes))
    if (!isConstantIntValue(offsets[axis], 0) || type.isDynamicDim(axis) ||
        !isConstantIntValue(size, type.getDimSize(axis)))
      return false;
  return true;
}

Value LinalgEmitter::extractSlice(Value tensor, ArrayRef<OpFoldResult> offsets,
                                  ArrayRef<OpFoldResult> sizes, ArrayRef<bool> keptAxes) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape;
  for (auto [size, isKept] : llvm::zip(sizes, keptAxes))
    if (isKept)
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  if (int64_t(shape.size()) == type.getRank() && isWhole(type, offsets, sizes))
    return tensor;
  // Upstream's slices begin within an axis: of one that is known to be empty there is none.
  if (llvm::is_contained(type.getShape(), 0)) {
    SmallVector<OpFoldResult> kept;
    for (auto [size, isKept] : llvm::zip(sizes, keptAxes))
      if (isKept)
        kept.push_back(size);
    return tensor::EmptyOp::create(b, loc, kept, type.getElementType());
  }
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, RankedTensorType::get(shape, type.getElementType()),
                                        tensor, offsets, sizes, strides);
}

Value LinalgEmitter::insertSlice(Value part, Value tensor, ArrayRef<OpFoldResult> offsets,
                                 ArrayRef<OpFoldResult> sizes) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (part.getType() == type && isWhole(type, offsets, sizes))
    return part;
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, loc, part, tensor, offsets, sizes, strides);
}

Value LinalgEmitter::emptyTile(Type element, ArrayRef<unsigned> ids) {
  SmallVector<int64_t> shape;
  for (unsigned id : ids)
    shape.push_back(analysis.tileOf(id));
  return tensor::EmptyOp::create(b, loc, shape, storageType(element));
}

Value LinalgEmitter::currentPart(Value tensor, ArrayRef<unsigned> ids) {
  SmallVector<OpFoldResult> offsets, sizes;
  for (unsigned id : ids) {
    offsets.push_back(state[id].first);
    sizes.push_back(state[id].current);
  }
  return extractSlice(tensor, offsets, sizes, SmallVector<bool>(ids.size(), true));
}

Value LinalgEmitter::insertPart(Value part, Value tensor, ArrayRef<unsigned> ids) {
  SmallVector<OpFoldResult> offsets, sizes;
  for (unsigned id : ids) {
    offsets.push_back(state[id].first);
    sizes.push_back(state[id].current);
  }
  return insertSlice(part, tensor, offsets, sizes);
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

static unsigned positionIn(ArrayRef<unsigned> loops, unsigned id) {
  return llvm::find(loops, id) - loops.begin();
}

/// Where a load begins along an axis whose index is that numbered `id` plus something without it.
std::optional<Value> LinalgEmitter::tileOffset(Value index, unsigned id) {
  auto uses = [&](Value value) { return (analysis.maskOf(value) & bit(id)) != 0; };
  Value at = index;
  while (Operation *op = at.getDefiningOp()) {
    bool left = op->getNumOperands() == 2 && uses(op->getOperand(0));
    bool right = op->getNumOperands() == 2 && uses(op->getOperand(1));
    if (left == right || !isa<arith::AddIOp, arith::SubIOp>(op) ||
        (right && isa<arith::SubIOp>(op)))
      return std::nullopt;
    at = op->getOperand(left ? 0 : 1);
  }
  IndexState saved = state[id];
  auto savedMemo = std::exchange(memo, decltype(memo)());
  state[id].global = add(saved.base, asValue(saved.first));
  Value offset = eval(index);
  state[id] = saved;
  memo = std::move(savedMemo);
  return offset;
}

/// A load as a slice, or as a scalar; none where an axis is not one index of the tile at most.
std::optional<LinalgEmitter::Leaf> LinalgEmitter::sliceLoad(LoadOp load, ArrayRef<unsigned> loops) {
  IndexMask mask = 0;
  for (unsigned id : loops)
    mask |= bit(id);
  if ((analysis.maskOf(load) & mask) == 0) {
    // Where a reduction has no terms, what its terms would read may lie outside.
    bool mayBeEmpty = (mask >> compute.getNumIndices()) != 0;
    llvm::SaveAndRestore clamped(clampLoads, clampLoads || mayBeEmpty);
    return Leaf{load, evalLoad(load), load.getType(), AffineMap()};
  }
  if (load.getPad())
    return std::nullopt;
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<bool> kept;
  SmallVector<AffineExpr> dims;
  for (auto [axis, at] : llvm::enumerate(load.getIndices())) {
    IndexMask varying = analysis.maskOf(at) & mask;
    kept.push_back(varying != 0);
    if (!varying) {
      offsets.push_back(getAsOpFoldResult(loadPosition(load, axis)));
      sizes.push_back(b.getIndexAttr(1));
      continue;
    }
    unsigned id = llvm::countr_zero(varying);
    if (varying & (varying - 1))
      return std::nullopt;
    if (isa<BlockArgument>(at)) {
      Value base = partBegins(load.getTensor(), id) ? index(0) : state[id].base;
      offsets.push_back(getAsOpFoldResult(add(base, asValue(state[id].first))));
    } else if (std::optional<Value> offset = clampLoads ? std::nullopt : tileOffset(at, id)) {
      offsets.push_back(getAsOpFoldResult(*offset));
    } else {
      return std::nullopt;
    }
    sizes.push_back(state[id].current);
    dims.push_back(b.getAffineDimExpr(positionIn(loops, id)));
  }
  Value slice = extractSlice(sourceOf(load.getTensor()), offsets, sizes, kept);
  return Leaf{load, slice, load.getType(), AffineMap::get(loops.size(), 0, dims, b.getContext())};
}

std::optional<LinalgEmitter::Leaf> LinalgEmitter::leafOf(Value value, ArrayRef<unsigned> loops) {
  if (auto it = tiles.find(value); it != tiles.end()) {
    const Tile tile = it->second;
    if (tile.ids.empty())
      return std::nullopt;
    auto isLooped = [&](unsigned id) { return llvm::is_contained(loops, id); };
    if (llvm::none_of(tile.ids, isLooped))
      return Leaf{value, evalTile(tile, value.getType()), value.getType(), AffineMap()};
    SmallVector<AffineExpr> dims;
    for (unsigned id : tile.ids) {
      if (!isLooped(id))
        return std::nullopt;
      dims.push_back(b.getAffineDimExpr(positionIn(loops, id)));
    }
    return Leaf{value, currentPart(tile.value, tile.ids), value.getType(),
                AffineMap::get(loops.size(), 0, dims, b.getContext())};
  }
  if (auto load = value.getDefiningOp<LoadOp>())
    return sliceLoad(load, loops);
  return std::nullopt;
}

void LinalgEmitter::collectLeaves(Value value, ArrayRef<unsigned> loops,
                                  SmallVectorImpl<Leaf> &leaves, DenseSet<Value> &seen) {
  if (!seen.insert(value).second || bindings.contains(value))
    return;
  Operation *op = value.getDefiningOp();
  bool isInside = op && compute->isProperAncestor(op);
  if (!tiles.contains(value) && !isInside)
    return;
  if (std::optional<Leaf> leaf = leafOf(value, loops)) {
    leaves.push_back(*leaf);
    return;
  }
  if (tiles.contains(value) || isa<ReduceOp, ScanOp>(op))
    return;
  for (Value operand : op->getOperands())
    if (!isa<RankedTensorType>(operand.getType()))
      collectLeaves(operand, loops, leaves, seen);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

SmallVector<Value> LinalgEmitter::emitGeneric(ArrayRef<unsigned> loops, ArrayRef<unsigned> reduced,
                                              ArrayRef<Value> roots, ValueRange inits,
                                              ArrayRef<unsigned> initIds,
                                              function_ref<Values(ValueRange)> body) {
  SmallVector<Leaf> leaves;
  DenseSet<Value> seen;
  for (Value root : roots)
    collectLeaves(root, loops, leaves, seen);
  auto savedBindings = bindings;
  SmallVector<Leaf> inputs;
  SmallVector<AffineMap> maps;
  Values tensors;
  for (const Leaf &leaf : leaves) {
    if (!leaf.map) { // the same scalar everywhere
      bindings[leaf.key] = leaf.tensor;
      continue;
    }
    inputs.push_back(leaf);
    tensors.push_back(leaf.tensor);
    maps.push_back(leaf.map);
  }
  // Each dimension needs an operand that says how large it is; one that no tensor is over gets a
  // tensor that nothing reads.
  for (auto [position, id] : llvm::enumerate(loops)) {
    auto isOver = [&, p = position](AffineMap map) { return map.isFunctionOfDim(p); };
    if (llvm::is_contained(initIds, id) || llvm::any_of(maps, isOver))
      continue;
    tensors.push_back(tensor::EmptyOp::create(b, loc, state[id].current, b.getI8Type()));
    maps.push_back(AffineMap::get(loops.size(), 0, b.getAffineDimExpr(position)));
  }
  SmallVector<AffineExpr> initDims;
  for (unsigned id : initIds)
    initDims.push_back(b.getAffineDimExpr(positionIn(loops, id)));
  maps.append(inits.size(), AffineMap::get(loops.size(), 0, initDims, b.getContext()));
  SmallVector<utils::IteratorType> iterators;
  SmallVector<std::string> names;
  for (unsigned id : loops) {
    iterators.push_back(llvm::is_contained(reduced, id) ? utils::IteratorType::reduction
                                                        : utils::IteratorType::parallel);
    names.push_back(analysis.nameOf(id).str());
  }
  auto savedState = state;
  auto savedMemo = std::exchange(memo, decltype(memo)());
  auto op = linalg::GenericOp::create(
      b, loc, inits.getTypes(), tensors, inits, maps, iterators, llvm::join(names, ", "),
      /*libraryCall=*/"", [&](OpBuilder &, Location, ValueRange arguments) {
        for (auto [position, id] : llvm::enumerate(loops)) {
          Value place = linalg::IndexOp::create(b, loc, position);
          state[id].local = add(asValue(state[id].first), place);
          state[id].global = add(state[id].base, state[id].local);
        }
        for (auto [leaf, argument] : llvm::zip_first(inputs, arguments))
          bindings[leaf.key] = fromStorage(argument, leaf.type);
        linalg::YieldOp::create(b, loc, body(arguments.take_back(inits.size())));
      });
  state = std::move(savedState);
  memo = std::move(savedMemo);
  bindings = std::move(savedBindings);
  return SmallVector<Value>(op.getResults());
}

SmallVector<LinalgEmitter::Tile> LinalgEmitter::emitTiles(ArrayRef<unsigned> ids,
                                                          ArrayRef<Value> roots,
                                                          ArrayRef<Type> types, Body body) {
  SmallVector<Tile> made;
  if (ids.empty()) {
    for (Value value : body())
      made.push_back({value, {}});
    return made;
  }
  Values wholes, parts;
  for (Type type : types) {
    wholes.push_back(emptyTile(type, ids));
    parts.push_back(currentPart(wholes.back(), ids));
  }
  Values filled = emitGeneric(ids, {}, roots, parts, ids, [&](ValueRange) {
    Values values = body();
    for (Value &value : values)
      value = toStorage(value);
    return values;
  });
  for (auto [part, whole] : llvm::zip(filled, wholes))
    made.push_back({insertPart(part, whole, ids), Ids(ids)});
  return made;
}
