//===- LinalgValues.cpp - the value of a scalar at a point ----------------===//
#include "passes/lowering/cpu/LinalgEmitter.h"
#include "passes/lowering/cpu/ScalarExpand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

Type tk::cpu::storageType(Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer || (integer.isSignless() && integer.getWidth() >= 8))
    return element;
  return IntegerType::get(element.getContext(), std::max(8u, integer.getWidth()));
}

//===----------------------------------------------------------------------===//
// Index arithmetic and loops
//===----------------------------------------------------------------------===//

Value LinalgEmitter::index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
Value LinalgEmitter::asValue(OpFoldResult value) {
  return getValueOrCreateConstantIndexOp(b, loc, value);
}
Value LinalgEmitter::add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(loc, x, y); }
Value LinalgEmitter::subtract(Value x, Value y) { return b.createOrFold<arith::SubIOp>(loc, x, y); }
Value LinalgEmitter::multiply(Value x, Value y) { return b.createOrFold<arith::MulIOp>(loc, x, y); }
Value LinalgEmitter::minOf(Value x, Value y) { return b.createOrFold<arith::MinSIOp>(loc, x, y); }
Value LinalgEmitter::maxOf(Value x, Value y) { return b.createOrFold<arith::MaxSIOp>(loc, x, y); }
Value LinalgEmitter::ceilDivide(Value x, int64_t y) {
  return b.createOrFold<arith::DivUIOp>(loc, add(x, index(y - 1)), index(y));
}

SmallVector<Value> LinalgEmitter::forLoop(Value lower, Value upper, int64_t step, ValueRange inits,
                                          LoopBody body) {
  auto savedMemo = std::exchange(memo, decltype(memo)());
  auto savedTiles = tiles, savedCompanions = companions;
  auto savedState = state;
  Values after;
  std::optional<int64_t> first = getConstantIntValue(lower), last = getConstantIntValue(upper);
  if (first && last && *first < *last && *last - *first <= step) {
    after = body(lower, inits);
  } else {
    auto loop = scf::ForOp::create(b, loc, lower, upper, index(step), inits);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
    if (!inits.empty())
      scf::YieldOp::create(b, loc, next);
    after.assign(loop.getResults().begin(), loop.getResults().end());
  }
  memo = std::move(savedMemo);
  tiles = std::move(savedTiles);
  companions = std::move(savedCompanions);
  state = std::move(savedState);
  return after;
}

SmallVector<Value> LinalgEmitter::forPoints(ArrayRef<unsigned> ids, ValueRange inits,
                                            PointBody body) {
  if (ids.empty())
    return body(inits);
  unsigned id = ids.front();
  return forLoop(index(0), asValue(state[id].current), 1, inits, [&](Value iv, ValueRange carried) {
    state[id].local = iv;
    state[id].global = add(state[id].base, iv);
    return forPoints(ids.drop_front(), carried, body);
  });
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// What a tensor's elements are read from. The parameter that the results replace is read from what
/// has become of it so far: every element of it is read only where it is written.
Value LinalgEmitter::sourceOf(Value tensor) {
  return tensor == replaced ? outputs.front() : kernelValues.lookup(tensor);
}

bool LinalgEmitter::partBegins(Value tensor, unsigned id) const {
  return tensor == replaced && (outputsBeginAtTile & bit(id));
}

SmallVector<Value> LinalgEmitter::extentsOf(Value tensor) {
  Values extents;
  if (auto producer = tensor.getDefiningOp<ComputeOp>()) {
    for (unsigned i : producer.getIndicesOf(cast<OpResult>(tensor).getResultNumber()))
      extents.push_back(kernelValues.lookup(producer.getExtents()[i]));
  } else if (BindOp bind = compute->getParentOfType<KernelOp>().getBind(tensor)) {
    for (Value extent : bind.getExtents())
      extents.push_back(kernelValues.lookup(extent));
  }
  return extents;
}

Value LinalgEmitter::toStorage(Value value) {
  Type storage = storageType(value.getType());
  return storage == value.getType() ? value
                                    : arith::ExtUIOp::create(b, loc, storage, value).getResult();
}

Value LinalgEmitter::fromStorage(Value value, Type type) {
  if (type == value.getType())
    return value;
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 8); // bool is the only type that differs
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
}

Value LinalgEmitter::evalTile(const Tile &tile, Type type) {
  if (tile.ids.empty())
    return tile.value;
  Values position;
  for (unsigned id : tile.ids)
    position.push_back(state[id].local);
  return fromStorage(tensor::ExtractOp::create(b, loc, tile.value, position), type);
}

/// Where a load stands along an axis; inside the tensor where that is in doubt.
Value LinalgEmitter::loadPosition(LoadOp load, unsigned axis) {
  Value original = load.getIndices()[axis], at = eval(original);
  if (clampLoads && !load.getPad()) {
    Value last = subtract(extentsOf(load.getTensor())[axis], index(1));
    at = maxOf(minOf(at, last), index(0));
  }
  if (isa<BlockArgument>(original) && partBegins(load.getTensor(), analysis.idOf(original)))
    at = subtract(at, state[analysis.idOf(original)].base);
  return at;
}

Value LinalgEmitter::evalLoad(LoadOp load) {
  Values extents = extentsOf(load.getTensor()), position;
  Value inside;
  for (unsigned axis = 0; axis < load.getIndices().size(); ++axis) {
    position.push_back(loadPosition(load, axis));
    if (!load.getPad())
      continue;
    Value ok =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, position.back(), extents[axis]);
    inside = inside ? arith::AndIOp::create(b, loc, inside, ok).getResult() : ok;
  }
  if (inside) // some element is read in any case
    for (Value &at : position)
      at = arith::SelectOp::create(b, loc, inside, at, index(0));
  Value raw = tensor::ExtractOp::create(b, loc, sourceOf(load.getTensor()), position);
  Value element = fromStorage(raw, load.getType());
  if (!inside)
    return element;
  return arith::SelectOp::create(b, loc, inside, element, eval(load.getPad()));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value LinalgEmitter::eval(Value value) {
  if (Value bound = bindings.lookup(value))
    return bound;
  if (auto it = tiles.find(value); it != tiles.end() && it->second.ids.empty())
    return it->second.value;
  if (Value known = memo.lookup(value))
    return known;
  if (auto it = tiles.find(value); it != tiles.end())
    return memo[value] = evalTile(it->second, value.getType());
  Operation *op = value.getDefiningOp();
  bool isInside = op ? compute->isProperAncestor(op)
                     : compute->isAncestor(cast<BlockArgument>(value).getOwner()->getParentOp());
  if (!isInside)
    return kernelValues.lookup(value);
  if (!op)
    return state[analysis.idOf(value)].global;
  Value result;
  if (auto load = dyn_cast<LoadOp>(op)) {
    result = evalLoad(load);
  } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
    result = evalReduce(reduce, cast<OpResult>(value).getResultNumber());
  } else if (auto scan = dyn_cast<ScanOp>(op)) {
    result = evalScan(scan);
  } else {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, eval(operand));
    result = b.clone(*op, mapping)->getResult(0);
  }
  return memo[value] = result;
}

/// One result of a reduction at one point, all in scalars: what every other way to compute it must
/// equal. Accumulators that depend on further indices cannot be part of it, and have no value here.
Value LinalgEmitter::evalReduce(ReduceOp reduce, unsigned wanted) {
  unsigned n = reduce.getNumAccumulators();
  IndexMask known = analysis.maskOf(reduce.getResult(wanted));
  Values inits, lower, upper;
  SmallVector<unsigned> starts;
  for (unsigned k = 0; k < n; ++k) {
    starts.push_back(inits.size());
    Value term = reduce.getYield().getValues()[k];
    llvm::append_range(inits,
                       reductionIdentity(b, loc, reduce.getKind(k), term.getType(),
                                         reduce.getResult(k).getType(), isUnsignedTerm(term)));
  }
  starts.push_back(inits.size());
  auto resultOf = [&](ValueRange carried, unsigned k) { return carried[starts[k + 1] - 1]; };
  auto step = [&](ValueRange carried, Value at) {
    Values next(carried);
    for (unsigned k = 0; k <= wanted; ++k) {
      if (analysis.maskOf(reduce.getResult(k)) & ~known)
        continue;
      ReduceKind kind = reduce.getKind(k);
      Value term = reduce.getYield().getValues()[k];
      Values mine(carried.slice(starts[k], starts[k + 1] - starts[k]));
      if (k > 0 && kind == ReduceKind::Sum) {
        Block &block = reduce.getRescale().front();
        for (unsigned j = 0; j < k; ++j) {
          bindings[block.getArgument(j)] = resultOf(carried, j);
          bindings[block.getArgument(j + n - 1)] = resultOf(next, j);
        }
        Value factor = eval(block.getTerminator()->getOperand(k - 1));
        mine[0] = ScalarBuilder(b, loc).mul(mine[0], factor);
      }
      mine = reductionStep(b, loc, kind, mine, evalTerm(reduce, k), at, isUnsignedTerm(term));
      llvm::copy(mine, next.begin() + starts[k]);
      if (k + 1 < n)
        bindings[reduce.getRunning(k)] = resultOf(next, k);
    }
    return next;
  };
  for (unsigned i = 0; i < reduce.getNumIndices(); ++i) {
    lower.push_back(eval(reduce.getLower()[i]));
    upper.push_back(eval(reduce.getUpper()[i]));
  }
  auto nest = [&](auto &self, unsigned axis, ValueRange carried) -> Values {
    return forLoop(lower[axis], upper[axis], 1, carried, [&](Value iv, ValueRange inner) {
      state[analysis.idOf(reduce.getIndex(axis))].global = iv;
      if (axis + 1 < reduce.getNumIndices())
        return self(self, axis + 1, inner);
      return step(inner, iv);
    });
  };
  auto saved = bindings;
  Values carried = nest(nest, 0, inits);
  bindings = std::move(saved);
  return resultOf(carried, wanted);
}

Value LinalgEmitter::evalScan(ScanOp scan) {
  Value term = scan.getYield().getValues()[0];
  bool isUnsigned = isUnsignedTerm(term);
  BlockArgument argument = scan.getBlock()->getArgument(0);
  Value end = minOf(add(eval(scan.getPosition()), index(1)), eval(scan.getUpper()));
  Values inits =
      reductionIdentity(b, loc, scan.getKind(), term.getType(), scan.getType(), isUnsigned);
  return forLoop(eval(scan.getLower()), end, 1, inits, [&](Value iv, ValueRange carried) {
    state[analysis.idOf(argument)].global = iv;
    return reductionStep(b, loc, scan.getKind(), carried, eval(term), iv, isUnsigned);
  })[0];
}
