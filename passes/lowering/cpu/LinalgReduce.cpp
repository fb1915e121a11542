//===- LinalgReduce.cpp - reductions over a tile --------------------------===//
//
// A reduction whose terms need no tiles of their own is one linalg.generic over all of its range.
// Any other is an scf.for over chunks of the range that carries its accumulators:
//
//   for each accumulator k
//     1. the tiles that its terms need, by prepare;
//     2. what it has so far times the factor that makes up for the change of the accumulators
//        before it (an online reduction's);
//     3. plus the chunk: a matrix product (LinalgContraction.cpp), or a linalg.generic.
//
// Where bounds differ between the points of a tile, the loop over chunks covers the range of all of
// them, and what of a chunk is in a point's range is taken point by point; products take all of the
// chunk, and terms outside the range are 0.
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/LinalgEmitter.h"
#include "passes/lowering/cpu/ScalarExpand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

//===----------------------------------------------------------------------===//
// What is needed before a value can be evaluated
//===----------------------------------------------------------------------===//

void LinalgEmitter::prepare(Value value, IndexMask open) {
  Operation *op = value.getDefiningOp();
  if (!op || !compute->isProperAncestor(op) || tiles.contains(value))
    return;
  prepareOp(op, open);
  if (analysis.isBuffered(value) && !isa<ReduceOp, ScanOp>(op) &&
      (analysis.maskOf(value) & ~open) == 0 && !tiles.contains(value))
    materialise(value);
}

void LinalgEmitter::prepareOp(Operation *op, IndexMask open) {
  for (Value operand : op->getOperands())
    prepare(operand, open);
  bool ready = (liveMask(op) & ~open) == 0;
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    if (ready) {
      prepareCaptured(reduce, open);
      return emitReduce(reduce, open);
    }
    for (auto [k, term] : llvm::enumerate(reduce.getYield().getValues()))
      if (live.contains(reduce.getResult(k)))
        prepare(term, open);
    if (!reduce.getRescale().empty())
      for (Value factor : reduce.getRescale().front().getTerminator()->getOperands())
        prepare(factor, open);
  } else if (auto scan = dyn_cast<ScanOp>(op)) {
    prepare(scan.getYield().getValues()[0], open);
    if (ready && !analysis.isRunningScan(scan))
      materialise(scan.getResult());
  }
}

/// What only the terms use of the values around a reduction (a row's mean, in its variance) would
/// be computed again for each term.
void LinalgEmitter::prepareCaptured(ReduceOp reduce, IndexMask open) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(reduce->getRegions(), captured);
  for (Value value : captured)
    if (live.contains(value))
      prepare(value, open);
}

void LinalgEmitter::materialise(Value value) {
  Ids ids = analysis.tiledIds(analysis.maskOf(value));
  tiles[value] = emitTiles(ids, {value}, {value.getType()}, [&] { return Values{eval(value)}; })[0];
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

bool LinalgEmitter::boundsVary(ReduceOp reduce) const {
  IndexMask mask = 0;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    mask |= analysis.maskOf(reduce.getLower()[i]) | analysis.maskOf(reduce.getUpper()[i]);
  return !analysis.tiledIds(mask).empty();
}

/// The values of the tiles that a loop over chunks carries.
SmallVector<Value> LinalgEmitter::accumulators(ReduceOp reduce) {
  Values values;
  for (Value result : reduce.getResults()) {
    if (!live.contains(result))
      continue;
    values.push_back(tiles[result].value);
    if (auto it = companions.find(result); it != companions.end())
      values.push_back(it->second.value);
  }
  return values;
}

void LinalgEmitter::setAccumulators(ReduceOp reduce, ValueRange values) {
  for (auto [k, result] : llvm::enumerate(reduce.getResults())) {
    if (!live.contains(result))
      continue;
    tiles[result].value = values.front();
    values = values.drop_front();
    if (auto it = companions.find(result); it != companions.end()) {
      it->second.value = values.front();
      values = values.drop_front();
    }
    if (k + 1 < reduce.getNumAccumulators()) {
      Tile running = tiles[result];
      tiles[reduce.getRunning(k)] = running;
    }
  }
  memo.clear();
}

void LinalgEmitter::emitReduce(ReduceOp reduce, IndexMask open) {
  for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k) {
    Value result = reduce.getResult(k), term = reduce.getYield().getValues()[k];
    if (!live.contains(result))
      continue;
    SmallVector<Type> types = {result.getType()};
    if (isArgReduction(reduce.getKind(k)))
      types.insert(types.begin(), term.getType());
    SmallVector<Tile> start = emitTiles(analysis.tiledIds(analysis.maskOf(result)), {}, types, [&] {
      return reductionIdentity(b, loc, reduce.getKind(k), term.getType(), result.getType(),
                               isUnsignedTerm(term));
    });
    tiles[result] = start.back();
    if (start.size() > 1)
      companions[result] = start.front();
  }
  if (analysis.isChunked(reduce))
    return emitChunks(reduce, 0, open);
  auto saved = state;
  if (!boundsVary(reduce))
    openRange(reduce);
  accumulate(reduce, 0);
  state = std::move(saved);
}

/// Makes the indices of a reduction stand for all of its range, or what of it is in the chunk.
void LinalgEmitter::openRange(ReduceOp reduce) {
  bool isChunked = analysis.isChunked(reduce);
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i) {
    Value lower = eval(reduce.getLower()[i]), upper = eval(reduce.getUpper()[i]);
    IndexState &own = state[analysis.idOf(reduce.getIndex(i))];
    if (isChunked) {
      lower = maxOf(lower, own.base);
      upper = minOf(upper, add(own.base, asValue(own.current)));
    } else {
      own.base = lower;
    }
    own.first = getAsOpFoldResult(subtract(lower, own.base));
    own.current = getAsOpFoldResult(maxOf(subtract(upper, lower), index(0)));
  }
}

/// The range that covers the ranges of all points of the tile. No further than the tensors go that
/// are read along the index itself: positions outside belong to no point's range.
std::pair<Value, Value> LinalgEmitter::chunkRange(ReduceOp reduce, unsigned axis) {
  Value lower = reduce.getLower()[axis], upper = reduce.getUpper()[axis];
  Ids ids = analysis.tiledIds(analysis.maskOf(lower) | analysis.maskOf(upper));
  if (ids.empty())
    return {eval(lower), eval(upper)};
  Values none = {index(std::numeric_limits<int64_t>::max()), index(0)};
  Values range = forPoints(ids, none, [&](ValueRange carried) -> Values {
    return {minOf(carried[0], eval(lower)), maxOf(carried[1], eval(upper))};
  });
  Value low = maxOf(range[0], index(0)), high = range[1];
  reduce.getBody().walk([&](LoadOp load) {
    Values extents = extentsOf(load.getTensor());
    for (auto [extent, at] : llvm::zip(extents, load.getIndices()))
      if (at == reduce.getIndex(axis) && !load.getPad())
        high = minOf(high, extent);
  });
  return {low, high};
}

void LinalgEmitter::emitChunks(ReduceOp reduce, unsigned axis, IndexMask open) {
  if (axis == reduce.getNumIndices()) {
    bool saved = clampLoads;
    clampLoads |= boundsVary(reduce);
    emitChunkBody(reduce, open);
    clampLoads = saved;
    return;
  }
  unsigned id = analysis.idOf(reduce.getIndex(axis));
  int64_t tile = analysis.tileOf(id);
  auto [lower, upper] = chunkRange(reduce, axis);
  Values after = forLoop(
      lower, upper, tile, accumulators(reduce), [&, upper = upper](Value iv, ValueRange carried) {
        setAccumulators(reduce, carried);
        IndexState &own = state[id];
        own.base = own.global = iv;
        own.first = b.getIndexAttr(0);
        own.current = tile == 1 ? OpFoldResult(b.getIndexAttr(1))
                                : getAsOpFoldResult(minOf(index(tile), subtract(upper, iv)));
        emitChunks(reduce, axis + 1, open);
        return accumulators(reduce);
      });
  setAccumulators(reduce, after);
}

void LinalgEmitter::emitChunkBody(ReduceOp reduce, IndexMask open) {
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    open |= bit(analysis.idOf(reduce.getIndex(i)));
  unsigned n = reduce.getNumAccumulators();
  Block *rescaleBlock = reduce.getRescale().empty() ? nullptr : &reduce.getRescale().front();
  IndexMask runningBit =
      n > 1 ? analysis.maskOf(reduce.getRunning(0)) & ~analysis.maskOf(reduce.getResult(0)) : 0;
  for (unsigned k = 0; k < n; ++k) {
    Value result = reduce.getResult(k);
    if (!live.contains(result))
      continue;
    // Terms may use running values up to k - 1 only; those are updated by now.
    prepare(reduce.getYield().getValues()[k], k > 0 ? open | runningBit : open);
    if (Value condition = presentOf(reduce, k))
      prepare(condition, open);
    Tile old = tiles[result];
    if (k + 1 < n && !old.ids.empty()) // what factors need of it, so that it is updated in place
      old.value = bufferization::AllocTensorOp::create(
          b, loc, cast<RankedTensorType>(old.value.getType()), ValueRange(), old.value);
    if (k > 0)
      rescale(reduce, k);
    if (!emitContraction(reduce, k))
      accumulate(reduce, k);
    if (k + 1 < n) {
      Tile updated = tiles[result];
      tiles[rescaleBlock->getArgument(k)] = old;
      tiles[rescaleBlock->getArgument(k + n - 1)] = updated;
      tiles[reduce.getRunning(k)] = updated;
    }
    memo.clear();
  }
}

void LinalgEmitter::rescale(ReduceOp reduce, unsigned k) {
  Value factor = reduce.getRescale().front().getTerminator()->getOperand(k - 1);
  if (reduce.getKind(k) != ReduceKind::Sum || matchPattern(factor, m_OneFloat()) ||
      matchPattern(factor, m_One()))
    return;
  Value result = reduce.getResult(k);
  materialise(factor); // over fewer indices than the accumulator may have
  Tile sum = tiles[result];
  auto scaled = [&](Value old) { return ScalarBuilder(b, loc).mul(old, eval(factor)); };
  if (sum.ids.empty()) {
    tiles[result].value = scaled(sum.value);
    return;
  }
  Value part = currentPart(sum.value, sum.ids);
  Values products = emitGeneric(sum.ids, {}, factor, part, sum.ids,
                                [&](ValueRange old) { return Values{scaled(old[0])}; });
  tiles[result].value = insertPart(products[0], sum.value, sum.ids);
}

//===----------------------------------------------------------------------===//
// Accumulation of a chunk
//===----------------------------------------------------------------------===//

/// Whether more loads of the term are contiguous along the result's innermost index than along the
/// reduced ones: then the loop over the former is the inner one.
bool LinalgEmitter::prefersMemory(ReduceOp reduce, unsigned k) {
  Value result = reduce.getResult(k);
  SmallVector<unsigned> ids = analysis.tiledIds(analysis.maskOf(result));
  if (ids.empty() || isArgReduction(reduce.getKind(k)))
    return false;
  IndexMask inner = bit(ids.back());
  IndexMask own = bit(analysis.idOf(reduce.getIndex(reduce.getNumIndices() - 1)));
  int along = 0;
  reduce.getBody().walk([&](LoadOp load) {
    if (load.getIndices().empty())
      return;
    IndexMask mask = analysis.maskOf(load.getIndices().back());
    along += (mask & inner) ? 1 : 0;
    along -= (mask & own) ? 1 : 0;
  });
  return along > 0;
}

void LinalgEmitter::accumulate(ReduceOp reduce, unsigned k) {
  if (boundsVary(reduce))
    accumulateByPoints(reduce, k);
  else
    accumulateTile(reduce, k);
}

/// The condition under which a term of sum `k` exists; null where all do.
Value LinalgEmitter::presentOf(ReduceOp reduce, unsigned k) const {
  auto conditions = present.find(reduce);
  return conditions == present.end() ? Value() : conditions->second[k];
}

/// The term at the current point; 0 where a mask leaves it out, whatever its factors are.
Value LinalgEmitter::evalTerm(ReduceOp reduce, unsigned k) {
  Value term = eval(reduce.getYield().getValues()[k]), condition = presentOf(reduce, k);
  if (!condition)
    return term;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(term.getType()));
  return arith::SelectOp::create(b, loc, eval(condition), term, zero);
}

/// Where the ranges of the points differ, point by point: together they may be far longer.
void LinalgEmitter::accumulateByPoints(ReduceOp reduce, unsigned k) {
  Value result = reduce.getResult(k);
  Ids ids = tiles[result].ids;
  SmallVector<std::pair<DenseMap<Value, Tile> *, Type>> kept = {{&tiles, result.getType()}};
  if (isArgReduction(reduce.getKind(k)))
    kept.push_back({&companions, reduce.getYield().getValues()[k].getType()});
  Values before;
  for (auto [map, type] : kept)
    before.push_back((*map)[result].value);
  Values after = forPoints(ids, before, [&](ValueRange carried) {
    openRange(reduce);
    Values position, next;
    for (unsigned id : ids)
      position.push_back(state[id].local);
    for (auto [entry, whole] : llvm::zip(kept, carried)) {
      Value element = tensor::ExtractOp::create(b, loc, whole, position);
      (*entry.first)[result] = {fromStorage(element, entry.second), {}};
    }
    accumulateTile(reduce, k);
    for (auto [entry, whole] : llvm::zip(kept, carried)) {
      Value element = toStorage((*entry.first)[result].value);
      next.push_back(tensor::InsertOp::create(b, loc, element, whole, position));
    }
    return next;
  });
  for (auto [entry, whole] : llvm::zip(kept, after))
    (*entry.first)[result].value = whole;
  memo.clear();
}

/// One linalg.generic over the tile and the reduction's indices.
void LinalgEmitter::accumulateTile(ReduceOp reduce, unsigned k) {
  Value result = reduce.getResult(k), term = reduce.getYield().getValues()[k];
  ReduceKind kind = reduce.getKind(k);
  bool isUnsigned = isUnsignedTerm(term), isArg = isArgReduction(kind);
  Tile sum = tiles[result];
  SmallVector<Type> types = {result.getType()};
  Values wholes = {sum.value}, roots = {term};
  if (Value condition = presentOf(reduce, k))
    roots.push_back(condition);
  if (isArg) {
    types.insert(types.begin(), term.getType());
    wholes.insert(wholes.begin(), companions[result].value);
  }
  Ids reduced, loops;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i) {
    unsigned id = analysis.idOf(reduce.getIndex(i));
    // An index that the loops over chunks step through one by one has no more than its range to
    // say; that may be nothing.
    if (!analysis.isChunked(reduce) || analysis.tileOf(id) > 1 || boundsVary(reduce))
      reduced.push_back(id);
  }
  bool inMemory = prefersMemory(reduce, k);
  loops = inMemory ? reduced : sum.ids;
  llvm::append_range(loops, inMemory ? sum.ids : reduced);
  Values parts;
  for (auto [whole, type] : llvm::zip(wholes, types))
    parts.push_back(sum.ids.empty() ? tensor::FromElementsOp::create(
                                          b, loc, RankedTensorType::get({}, storageType(type)),
                                          toStorage(whole))
                                          .getResult()
                                    : currentPart(whole, sum.ids));
  Value index0 = reduce.getIndex(0);
  Values stepped = emitGeneric(loops, reduced, roots, parts, sum.ids, [&](ValueRange stored) {
    Values old, next;
    for (auto [value, type] : llvm::zip(stored, types))
      old.push_back(fromStorage(value, type));
    next = reductionStep(b, loc, kind, old, evalTerm(reduce, k),
                         state[analysis.idOf(index0)].global, isUnsigned);
    for (Value &value : next)
      value = toStorage(value);
    return next;
  });
  for (auto [part, whole, type] : llvm::zip(stepped, wholes, types))
    whole = sum.ids.empty()
                ? fromStorage(tensor::ExtractOp::create(b, loc, part, ValueRange()), type)
                : insertPart(part, whole, sum.ids);
  tiles[result].value = wholes.back();
  if (isArg)
    companions[result].value = wholes.front();
}
