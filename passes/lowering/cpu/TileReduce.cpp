//===- TileReduce.cpp - reductions over a tile ----------------------------===//
#include "passes/lowering/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

bool tk::cpu::isUnsignedTerm(Value term) {
  auto load = term.getDefiningOp<LoadOp>();
  return load &&
         cast<RankedTensorType>(load.getTensor().getType()).getElementType().isUnsignedInteger();
}

//===----------------------------------------------------------------------===//
// Identities and steps
//===----------------------------------------------------------------------===//

static bool isArg(ReduceKind kind) {
  return kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin;
}

SmallVector<Value> TileEmitter::identity(ReduceKind kind, Type type, bool isUnsigned) {
  ScalarBuilder s(b, loc);
  auto extremum = [&](bool lowest) -> Value {
    if (isa<FloatType>(type)) {
      double infinity = std::numeric_limits<double>::infinity();
      return s.real(lowest ? -infinity : infinity, type);
    }
    unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    APInt value =
        isUnsigned ? (lowest ? APInt::getMinValue(width) : APInt::getMaxValue(width))
                   : (lowest ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  };
  auto number = [&](int64_t value) {
    return isa<FloatType>(type) ? s.real(double(value), type) : s.integer(value, type);
  };
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Any:
    return {number(0)};
  case ReduceKind::Prod:
    return {number(1)};
  case ReduceKind::All:
    return {s.integer(type.isInteger(1) ? -1 : 1, type)};
  case ReduceKind::Max:
    return {extremum(true)};
  case ReduceKind::Min:
    return {extremum(false)};
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin:
    // An index of -1 marks that nothing was seen; it is replaced by the first term.
    return {extremum(kind == ReduceKind::ArgMax), s.integer(-1, b.getI32Type())};
  }
  llvm_unreachable("kind of reduction");
}

SmallVector<Value> TileEmitter::combine(ReduceKind kind, ValueRange old, Value term, Value at,
                                        bool isUnsigned) {
  bool isFloat = isa<FloatType>(term.getType());
  auto fast = arith::FastMathFlags::reassoc;
  switch (kind) {
  case ReduceKind::Sum:
    if (isFloat)
      return {arith::AddFOp::create(b, loc, old[0], term, fast)};
    return {arith::AddIOp::create(b, loc, old[0], term)};
  case ReduceKind::Prod:
    if (isFloat)
      return {arith::MulFOp::create(b, loc, old[0], term, fast)};
    return {arith::MulIOp::create(b, loc, old[0], term)};
  case ReduceKind::Any:
    return {arith::OrIOp::create(b, loc, old[0], term)};
  case ReduceKind::All:
    return {arith::AndIOp::create(b, loc, old[0], term)};
  case ReduceKind::Max:
    if (isFloat)
      return {arith::MaximumFOp::create(b, loc, old[0], term)};
    if (isUnsigned)
      return {arith::MaxUIOp::create(b, loc, old[0], term)};
    return {arith::MaxSIOp::create(b, loc, old[0], term)};
  case ReduceKind::Min:
    if (isFloat)
      return {arith::MinimumFOp::create(b, loc, old[0], term)};
    if (isUnsigned)
      return {arith::MinUIOp::create(b, loc, old[0], term)};
    return {arith::MinSIOp::create(b, loc, old[0], term)};
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin: {
    ScalarBuilder s(b, loc);
    bool isMax = kind == ReduceKind::ArgMax;
    Value x = isMax ? old[0] : term, y = isMax ? term : old[0];
    Value better;
    if (isFloat) {
      // A NaN is the extremum, as it is the value of max; the first one stays.
      Value isNew = arith::AndIOp::create(
          b, loc, s.isNan(term),
          arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, old[0], old[0]));
      better = s.bitOr(s.less(x, y), isNew);
    } else {
      auto predicate = isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
      better = arith::CmpIOp::create(b, loc, predicate, x, y);
    }
    Value none = s.equal(old[1], s.integer(-1, b.getI32Type()));
    better = s.bitOr(better, none);
    Value at32 = arith::IndexCastOp::create(b, loc, b.getI32Type(), at);
    return {s.select(better, term, old[0]), s.select(better, at32, old[1])};
  }
  }
  llvm_unreachable("kind of reduction");
}

//===----------------------------------------------------------------------===//
// What is needed before a value can be evaluated
//===----------------------------------------------------------------------===//

TileEmitter::Buffer TileEmitter::makeBuffer(Type element, ArrayRef<unsigned> ids) {
  SmallVector<int64_t> shape;
  for (unsigned id : ids)
    shape.push_back(analysis.tileOf(id));
  return {frame->allocate(MemRefType::get(shape, storageType(element))),
          SmallVector<unsigned>(ids)};
}

void TileEmitter::prepare(Value value, IndexMask open) {
  Operation *op = value.getDefiningOp();
  if (!op || !compute->isProperAncestor(op) || buffers.contains(value))
    return;
  prepareOp(op, open);
  if (analysis.isBuffered(value) && !isa<ReduceOp, ScanOp>(op) &&
      (analysis.maskOf(value) & ~open) == 0 && !buffers.contains(value))
    materialise(value);
}

void TileEmitter::prepareOp(Operation *op, IndexMask open) {
  for (Value operand : op->getOperands())
    prepare(operand, open);
  bool ready = (liveMask(op) & ~open) == 0;
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    if (ready)
      return emitReduce(reduce, open);
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

void TileEmitter::materialise(Value value) {
  Buffer buffer = makeBuffer(value.getType(), analysis.tiledIds(analysis.maskOf(value)));
  forEach(buffer.ids, [&] { storeTo(buffer, eval(value)); });
  buffers[value] = buffer;
}

void TileEmitter::updateScan(ScanOp scan) {
  // The carry was set to the identity before the loop over the positions.
  Buffer carry = buffers.lookup(scan.getResult());
  Value term = scan.getYield().getValues()[0];
  unsigned position = *analysis.sequentialId();
  forEach(carry.ids, [&] {
    ScalarBuilder s(b, loc);
    Value at = state[position].global;
    state[analysis.idOf(scan.getBlock()->getArgument(0))].global = at;
    Value isIn = arith::AndIOp::create(
        b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, at, eval(scan.getLower())),
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at, eval(scan.getUpper())));
    bool saved = std::exchange(clampLoads, true);
    Value old = fromStorage(evalBuffer(carry), term.getType());
    Value next = combine(scan.getKind(), {old}, eval(term), at, isUnsignedTerm(term))[0];
    storeTo(carry, s.select(isIn, next, old));
    clampLoads = saved;
  });
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

bool TileEmitter::boundsVary(ReduceOp reduce) const {
  IndexMask mask = 0;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    mask |= analysis.maskOf(reduce.getLower()[i]) | analysis.maskOf(reduce.getUpper()[i]);
  return !analysis.tiledIds(mask).empty();
}

void TileEmitter::emitReduce(ReduceOp reduce, IndexMask open) {
  unsigned n = reduce.getNumAccumulators();
  for (unsigned k = 0; k < n; ++k) {
    Value result = reduce.getResult(k), term = reduce.getYield().getValues()[k];
    if (!live.contains(result))
      continue;
    SmallVector<unsigned> ids = analysis.tiledIds(analysis.maskOf(result));
    Buffer buffer = makeBuffer(result.getType(), ids);
    buffers[result] = buffer;
    if (isArg(reduce.getKind(k)))
      companions[result] = makeBuffer(term.getType(), ids);
    forEach(ids, [&] {
      SmallVector<Value> init = identity(reduce.getKind(k), term.getType(), isUnsignedTerm(term));
      storeTo(buffer, init.back());
      if (init.size() > 1)
        storeTo(companions[result], init.front());
    });
    if (k + 1 < n)
      buffers[reduce.getRunning(k)] = buffer;
  }
  if (analysis.isChunked(reduce))
    return emitChunks(reduce, 0, open);
  for (unsigned i = 0; i < reduce.getNumIndices() && !boundsVary(reduce); ++i) {
    IndexState &own = state[analysis.idOf(reduce.getIndex(i))];
    own.base = eval(reduce.getLower()[i]);
    own.current = arith::SubIOp::create(b, loc, eval(reduce.getUpper()[i]), own.base);
  }
  accumulate(reduce, 0);
}

/// The range that covers the ranges of all points of the tile.
std::pair<Value, Value> TileEmitter::chunkRange(ReduceOp reduce, unsigned axis) {
  Value lower = reduce.getLower()[axis], upper = reduce.getUpper()[axis];
  SmallVector<unsigned> ids = analysis.tiledIds(analysis.maskOf(lower) | analysis.maskOf(upper));
  if (ids.empty())
    return {eval(lower), eval(upper)};
  auto nest = [&](auto &self, ArrayRef<unsigned> rest, ValueRange carried) -> SmallVector<Value> {
    if (rest.empty())
      return {minOf(carried[0], eval(lower)), maxOf(carried[1], eval(upper))};
    IndexState saved = state[rest.front()];
    auto result = carryLoop(index(0), saved.current, carried, [&](Value iv, ValueRange inner) {
      state[rest.front()].local = iv;
      state[rest.front()].global = arith::AddIOp::create(b, loc, saved.base, iv);
      return self(self, rest.drop_front(), inner);
    });
    state[rest.front()] = saved;
    return result;
  };
  Value low = index(std::numeric_limits<int64_t>::max()), high = index(0);
  SmallVector<Value> range = nest(nest, ids, {low, high});
  return {range[0], range[1]};
}

void TileEmitter::emitChunks(ReduceOp reduce, unsigned axis, IndexMask open) {
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
  forLoop(lower, upper, index(tile), [&, upper = upper](Value iv) {
    IndexState &own = state[id];
    own.base = iv;
    own.global = iv;
    own.local = {};
    own.current = tile == 1
                      ? index(1)
                      : minOf(index(tile), arith::SubIOp::create(b, loc, upper, iv).getResult());
    emitChunks(reduce, axis + 1, open);
  });
}

void TileEmitter::emitChunkBody(ReduceOp reduce, IndexMask open) {
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    open |= IndexMask(1) << analysis.idOf(reduce.getIndex(i));
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
    if (k + 1 < n) {
      Buffer old = makeBuffer(result.getType(), buffers[result].ids);
      forEach(old.ids, [&] { storeTo(old, eval(result)); });
      buffers[rescaleBlock->getArgument(k)] = old;
      buffers[rescaleBlock->getArgument(k + n - 1)] = buffers[result];
    }
    if (k > 0)
      rescale(reduce, k);
    if (!emitContraction(reduce, k))
      accumulate(reduce, k);
  }
  // Values that depend on running ones are to be computed anew wherever they are used again.
}

void TileEmitter::rescale(ReduceOp reduce, unsigned k) {
  Value factor = reduce.getRescale().front().getTerminator()->getOperand(k - 1);
  if (reduce.getKind(k) != ReduceKind::Sum || matchPattern(factor, m_OneFloat()) ||
      matchPattern(factor, m_One()))
    return;
  Value result = reduce.getResult(k);
  SmallVector<unsigned> outer = analysis.tiledIds(analysis.maskOf(factor)), inner;
  for (unsigned id : buffers[result].ids)
    if (!llvm::is_contained(outer, id))
      inner.push_back(id);
  forEach(outer, [&] {
    Value scale = eval(factor);
    forEach(inner,
            [&] { storeTo(buffers[result], ScalarBuilder(b, loc).mul(eval(result), scale)); });
  });
}

//===----------------------------------------------------------------------===//
// Accumulation of a chunk
//===----------------------------------------------------------------------===//

/// Whether more loads of the term are contiguous along the result's innermost index than along the
/// reduced ones: then the loop over the former is the inner one.
bool TileEmitter::prefersMemory(ReduceOp reduce, unsigned k) {
  Value result = reduce.getResult(k);
  SmallVector<unsigned> ids = analysis.tiledIds(analysis.maskOf(result));
  if (ids.empty() || isArg(reduce.getKind(k)) || boundsVary(reduce))
    return false;
  IndexMask inner = IndexMask(1) << ids.back();
  IndexMask own = IndexMask(1) << analysis.idOf(reduce.getIndex(reduce.getNumIndices() - 1));
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

void TileEmitter::accumulate(ReduceOp reduce, unsigned k) {
  if (prefersMemory(reduce, k))
    accumulateInMemory(reduce, k);
  else
    accumulateInRegisters(reduce, k);
}

void TileEmitter::accumulateInRegisters(ReduceOp reduce, unsigned k) {
  Value result = reduce.getResult(k), term = reduce.getYield().getValues()[k];
  ReduceKind kind = reduce.getKind(k);
  bool vary = boundsVary(reduce), isChunked = analysis.isChunked(reduce);
  forEach(buffers[result].ids, [&] {
    SmallVector<Value> inits;
    if (isArg(kind))
      inits.push_back(fromStorage(evalBuffer(companions[result]), term.getType()));
    inits.push_back(fromStorage(evalBuffer(buffers[result]), result.getType()));
    SmallVector<std::pair<Value, Value>> bounds;
    for (unsigned i = 0; i < reduce.getNumIndices(); ++i) {
      IndexState &own = state[analysis.idOf(reduce.getIndex(i))];
      if (vary && !isChunked) { // local positions are the indices themselves
        own.base = index(0);
        bounds.push_back({eval(reduce.getLower()[i]), eval(reduce.getUpper()[i])});
      } else if (vary) {
        Value low = arith::SubIOp::create(b, loc, eval(reduce.getLower()[i]), own.base);
        Value high = arith::SubIOp::create(b, loc, eval(reduce.getUpper()[i]), own.base);
        bounds.push_back({maxOf(low, index(0)), minOf(high, own.current)});
      } else {
        bounds.push_back({index(0), own.current});
      }
    }
    auto nest = [&](auto &self, unsigned axis, ValueRange carried) -> SmallVector<Value> {
      unsigned id = analysis.idOf(reduce.getIndex(axis));
      IndexState saved = state[id];
      auto out = carryLoop(
          bounds[axis].first, bounds[axis].second, carried, [&](Value iv, ValueRange inner) {
            state[id].local = iv;
            state[id].global = arith::AddIOp::create(b, loc, saved.base, iv);
            if (axis + 1 < reduce.getNumIndices())
              return self(self, axis + 1, inner);
            return combine(kind, inner, eval(term), state[id].global, isUnsignedTerm(term));
          });
      state[id] = saved;
      return out;
    };
    SmallVector<Value> sums = nest(nest, 0, inits);
    storeTo(buffers[result], sums.back());
    if (isArg(kind))
      storeTo(companions[result], sums.front());
  });
}

void TileEmitter::accumulateInMemory(ReduceOp reduce, unsigned k) {
  Value result = reduce.getResult(k), term = reduce.getYield().getValues()[k];
  SmallVector<unsigned> own;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
    own.push_back(analysis.idOf(reduce.getIndex(i)));
  forEach(own, [&] {
    forEach(buffers[result].ids, [&] {
      SmallVector<Value> old = {fromStorage(evalBuffer(buffers[result]), result.getType())};
      storeTo(buffers[result],
              combine(reduce.getKind(k), old, eval(term), {}, isUnsignedTerm(term))[0]);
    });
  });
}
