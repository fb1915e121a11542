//===- TileValues.cpp - the value of a scalar at a point ------------------===//
#include "passes/lowering/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value TileEmitter::index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
Value TileEmitter::minOf(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
Value TileEmitter::maxOf(Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); }

void TileEmitter::forLoop(Value lower, Value upper, Value step, function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, lower, upper, step);
  OpBuilder outside = b;
  auto savedMemo = std::exchange(memo, DenseMap<Value, Value>());
  b = OpBuilder::atBlockTerminator(loop.getBody());
  body(loop.getInductionVar());
  memo = std::move(savedMemo);
  b = outside;
}

SmallVector<Value>
TileEmitter::carryLoop(Value lower, Value upper, ValueRange inits,
                       function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(b, loc, lower, upper, index(1), inits);
  OpBuilder outside = b;
  auto savedMemo = std::exchange(memo, DenseMap<Value, Value>());
  b = OpBuilder::atBlockEnd(loop.getBody());
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, loc, next);
  memo = std::move(savedMemo);
  b = outside;
  return SmallVector<Value>(loop.getResults());
}

void TileEmitter::forEach(ArrayRef<unsigned> ids, Body body) {
  if (ids.empty()) {
    auto savedMemo = std::exchange(memo, DenseMap<Value, Value>());
    body();
    memo = std::move(savedMemo);
    return;
  }
  unsigned id = ids.front();
  forLoop(index(0), state[id].current, index(1), [&](Value iv) {
    IndexState saved = state[id];
    state[id].local = iv;
    state[id].global = arith::AddIOp::create(b, loc, state[id].base, iv);
    forEach(ids.drop_front(), body);
    state[id] = saved;
  });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value TileEmitter::toStorage(Value value) {
  Type type = value.getType();
  if (type.isInteger(1))
    return arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  Type storage = storageType(type);
  return storage == type ? value : arith::BitcastOp::create(b, loc, storage, value).getResult();
}

Value TileEmitter::fromStorage(Value value, Type type) {
  if (type == value.getType())
    return value;
  if (type.isInteger(1)) {
    Value zero = arith::ConstantIntOp::create(b, loc, 0, 8);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
  }
  return arith::BitcastOp::create(b, loc, type, value);
}

Value TileEmitter::evalBuffer(const Buffer &buffer) {
  SmallVector<Value> position;
  for (unsigned id : buffer.ids)
    position.push_back(state[id].local);
  return memref::LoadOp::create(b, loc, buffer.memref, position);
}

void TileEmitter::storeTo(const Buffer &buffer, Value value) {
  SmallVector<Value> position;
  for (unsigned id : buffer.ids)
    position.push_back(state[id].local);
  memref::StoreOp::create(b, loc, toStorage(value), buffer.memref, position);
}

Value TileEmitter::eval(Value value) {
  if (Value bound = bindings.lookup(value))
    return bound;
  if (auto it = buffers.find(value); it != buffers.end()) {
    if (Value known = memo.lookup(value))
      return known;
    return memo[value] = fromStorage(evalBuffer(it->second), value.getType());
  }
  Operation *op = value.getDefiningOp();
  bool isInside = op ? compute->isProperAncestor(op)
                     : compute->isAncestor(cast<BlockArgument>(value).getOwner()->getParentOp());
  if (!isInside)
    return frame->get(value);
  if (!op)
    return state[analysis.idOf(value)].global;
  if (Value known = memo.lookup(value))
    return known;
  Value result;
  if (auto load = dyn_cast<LoadOp>(op)) {
    result = evalLoad(load);
  } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
    result = evalReduce(reduce, cast<OpResult>(value).getResultNumber());
  } else if (auto scan = dyn_cast<ScanOp>(op)) {
    result = evalScan(scan);
  } else {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(eval(operand));
    result = expandScalar(b, op, operands);
  }
  return memo[value] = result;
}

Value TileEmitter::evalLoad(LoadOp load) {
  Value tensor = load.getTensor();
  SmallVector<Value> extents = layout.extentsOf(tensor);
  SmallVector<Value> indices;
  Value inside;
  for (auto [axis, original] : llvm::enumerate(load.getIndices())) {
    Value at = eval(original);
    if (load.getPad()) {
      Value extent = frame->get(extents[axis]);
      Value ok = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, extent);
      inside = inside ? arith::AndIOp::create(b, loc, inside, ok).getResult() : ok;
    } else if (clampLoads) {
      Value last = arith::SubIOp::create(b, loc, frame->get(extents[axis]), index(1));
      at = maxOf(minOf(at, last), index(0));
    }
    indices.push_back(at);
  }
  if (inside)
    for (Value &at : indices)
      at = arith::SelectOp::create(b, loc, inside, at, index(0));
  Value raw = memref::LoadOp::create(b, loc, frame->memref(tensor), indices);
  Value element = fromStorage(raw, load.getType());
  if (!inside)
    return element;
  return arith::SelectOp::create(b, loc, inside, element, eval(load.getPad()));
}

/// One result of a reduction at one point, all in scalars: what every other way to compute it must
/// equal. Accumulators that depend on further indices cannot be part of it, and have no value here.
Value TileEmitter::evalReduce(ReduceOp reduce, unsigned wanted) {
  unsigned n = reduce.getNumAccumulators();
  IndexMask known = analysis.maskOf(reduce.getResult(wanted));
  SmallVector<Value> inits;
  SmallVector<unsigned> starts;
  for (unsigned k = 0; k < n; ++k) {
    starts.push_back(inits.size());
    Value term = reduce.getYield().getValues()[k];
    llvm::append_range(inits, identity(reduce.getKind(k), term.getType(), isUnsignedTerm(term)));
  }
  starts.push_back(inits.size());
  auto resultOf = [&](ValueRange carried, unsigned k) { return carried[starts[k + 1] - 1]; };
  auto step = [&](ValueRange carried, Value at) {
    SmallVector<Value> next(carried);
    for (unsigned k = 0; k <= wanted; ++k) {
      if (analysis.maskOf(reduce.getResult(k)) & ~known)
        continue;
      ReduceKind kind = reduce.getKind(k);
      Value term = reduce.getYield().getValues()[k];
      SmallVector<Value> mine(carried.slice(starts[k], starts[k + 1] - starts[k]));
      if (k > 0 && kind == ReduceKind::Sum) {
        Block &block = reduce.getRescale().front();
        for (unsigned j = 0; j < k; ++j) {
          bindings[block.getArgument(j)] = resultOf(carried, j);
          bindings[block.getArgument(j + n - 1)] = resultOf(next, j);
        }
        Value factor = eval(block.getTerminator()->getOperand(k - 1));
        mine[0] = ScalarBuilder(b, loc).mul(mine[0], factor);
      }
      mine = combine(kind, mine, eval(term), at, isUnsignedTerm(term));
      llvm::copy(mine, next.begin() + starts[k]);
      if (k + 1 < n)
        bindings[reduce.getRunning(k)] = resultOf(next, k);
    }
    return next;
  };
  SmallVector<Value> lower, upper;
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i) {
    lower.push_back(eval(reduce.getLower()[i]));
    upper.push_back(eval(reduce.getUpper()[i]));
  }
  auto nest = [&](auto &self, unsigned axis, ValueRange carried) -> SmallVector<Value> {
    return carryLoop(lower[axis], upper[axis], carried, [&](Value iv, ValueRange inner) {
      state[analysis.idOf(reduce.getIndex(axis))].global = iv;
      if (axis + 1 < reduce.getNumIndices())
        return self(self, axis + 1, inner);
      return step(inner, iv);
    });
  };
  auto saved = bindings;
  SmallVector<Value> carried = nest(nest, 0, inits);
  bindings = std::move(saved);
  return resultOf(carried, wanted);
}

Value TileEmitter::evalScan(ScanOp scan) {
  Value term = scan.getYield().getValues()[0];
  bool isUnsigned = isUnsignedTerm(term);
  BlockArgument argument = scan.getBlock()->getArgument(0);
  Value end = arith::AddIOp::create(b, loc, eval(scan.getPosition()), index(1));
  end = minOf(end, eval(scan.getUpper()));
  SmallVector<Value> inits = identity(scan.getKind(), term.getType(), isUnsigned);
  return carryLoop(eval(scan.getLower()), end, inits, [&](Value iv, ValueRange carried) {
    state[analysis.idOf(argument)].global = iv;
    return combine(scan.getKind(), carried, eval(term), iv, isUnsigned);
  })[0];
}
