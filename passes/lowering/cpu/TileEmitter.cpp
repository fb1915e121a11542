//===- TileEmitter.cpp - loops for one statement --------------------------===//
//
// 1. The indices of the statement become loops, outermost first: over tiles where BodyAnalysis
//    tiles the index, else over single values.
// 2. Behind each loop stand the values that depend on the open indices only and are used over more:
//    reductions and expensive factors, each computed once for the tile into a buffer with one axis
//    for each tiled index it depends on. So a row's mean stands behind the loop over rows, and a
//    matrix product behind the loops over its tiles.
// 3. A reduction around others runs over chunks of its own indices, which are then open as well;
//    rule 2 applies inside. An online reduction corrects its accumulators between chunks.
// 4. Everything else is evaluated at a point, in scalar code that LLVM vectorises over the
// innermost
//    index of the loop nest around it.
// 5. The outermost loops, as far as no value stands between them, are one parallel loop.
//
//   y[r, c] = (x[r, c] - mean(r)) * g[c]     parallel for r
//                                              m = sum of x[r, :] / C
//                                              for tiles of c
//                                                for c in tile: y[r, c] = (x[r, c] - m) * g[c]
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

static IndexMask bit(unsigned id) { return IndexMask(1) << id; }

SmallVector<SmallVector<unsigned>> TileEmitter::groupResults(ComputeOp compute,
                                                             const BodyAnalysis &analysis) {
  // A result joins the first group if its indices are the outermost ones of the nest and the loops
  // inside are over tiles, which run once even for an extent of 0.
  SmallVector<SmallVector<unsigned>> groups(1);
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    SmallVector<unsigned> indices = compute.getIndicesOf(r);
    bool joins = true;
    for (auto [position, id] : llvm::enumerate(analysis.order())) {
      bool has = llvm::is_contained(indices, id);
      joins &= has == (position < indices.size());
      joins &= has || analysis.tileOf(id) > 1;
    }
    if (joins)
      groups.front().push_back(r);
    else
      groups.push_back({r});
  }
  if (groups.front().empty())
    groups.erase(groups.begin());
  return groups;
}

TileEmitter::TileEmitter(ModuleOp module, KernelLayout &layout, Frame &entry, OpBuilder builder,
                         ComputeOp compute, const BodyAnalysis &analysis, const CpuMachine &machine,
                         ArrayRef<unsigned> results, unsigned &parts, unsigned &slots)
    : module(module), layout(layout), entry(entry), frame(&entry), b(builder),
      loc(compute.getLoc()), compute(compute), analysis(analysis), machine(machine),
      results(results), parts(parts), slots(slots), state(64) {
  IndexMask used = 0;
  for (unsigned r : results)
    for (unsigned i : compute.getIndicesOf(r))
      used |= bit(i);
  for (unsigned id : analysis.order())
    if (used & bit(id))
      order.push_back(id);
  for (unsigned r : results)
    findLive(compute.getYield().getValues()[r]);
}

//===----------------------------------------------------------------------===//
// What is needed, and where
//===----------------------------------------------------------------------===//

void TileEmitter::findLive(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op) {
    auto argument = cast<BlockArgument>(value);
    if (auto reduce = dyn_cast<ReduceOp>(argument.getOwner()->getParentOp()))
      if (argument.getOwner() == reduce.getBlock() &&
          argument.getArgNumber() >= reduce.getNumIndices())
        findLive(reduce.getResult(argument.getArgNumber() - reduce.getNumIndices()));
    return;
  }
  if (!compute->isProperAncestor(op) || !live.insert(value).second)
    return;
  if (analysis.isBuffered(value))
    liveOps.insert(op);
  for (Value operand : op->getOperands())
    findLive(operand);
  if (auto reduce = dyn_cast<ReduceOp>(op))
    findLiveReduce(reduce, cast<OpResult>(value).getResultNumber());
  else if (auto scan = dyn_cast<ScanOp>(op))
    findLive(scan.getYield().getValues()[0]);
}

void TileEmitter::findLiveReduce(ReduceOp reduce, unsigned k) {
  findLive(reduce.getYield().getValues()[k]);
  if (k == 0)
    return;
  Block &block = reduce.getRescale().front();
  Value factor = block.getTerminator()->getOperand(k - 1);
  SetVector<Operation *> slice;
  SmallVector<Value> worklist = {factor};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == &block)
        findLive(reduce.getResult(argument.getArgNumber() % (reduce.getNumAccumulators() - 1)));
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (op->getBlock() != &block)
      findLive(value);
    else if (slice.insert(op))
      llvm::append_range(worklist, op->getOperands());
  }
}

IndexMask TileEmitter::liveMask(Operation *op) const {
  IndexMask mask = 0;
  for (Value result : op->getResults())
    if (live.contains(result))
      mask |= analysis.maskOf(result);
  return mask;
}

IndexMask TileEmitter::openMask(unsigned level) const {
  IndexMask mask = 0;
  for (unsigned id : ArrayRef(order).take_front(level))
    mask |= bit(id);
  return mask;
}

/// How many loops must be open for values over `mask`; one more than there are if it has others.
unsigned TileEmitter::levelOf(IndexMask mask) const {
  for (unsigned level = 0; level <= order.size(); ++level)
    if ((mask & ~openMask(level)) == 0)
      return level;
  return order.size() + 1;
}

unsigned TileEmitter::storeLevel(unsigned result) {
  IndexMask mask = 0;
  for (unsigned i : compute.getIndicesOf(result))
    mask |= bit(i);
  // Behind the buffers that the value is made of.
  SmallVector<Value> worklist = {compute.getYield().getValues()[result]};
  DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !compute->isProperAncestor(op) || !seen.insert(value).second)
      continue;
    if (analysis.isBuffered(value))
      mask |= liveMask(op);
    else
      llvm::append_range(worklist, op->getOperands());
  }
  return levelOf(mask);
}

unsigned TileEmitter::countParallelLevels() {
  unsigned levels = order.size();
  for (Operation *op : liveOps)
    if (unsigned level = levelOf(liveMask(op)); level > 0)
      levels = std::min(levels, level);
  for (unsigned r : results)
    if (unsigned level = storeLevel(r); level > 0)
      levels = std::min(levels, level);
  if (auto sequential = analysis.sequentialId())
    for (unsigned level = 0; level < levels; ++level)
      if (order[level] == *sequential)
        levels = level;
  return levels;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value TileEmitter::extentOf(unsigned id) { return frame->get(compute.getExtents()[id]); }

Value TileEmitter::tileCount(unsigned id) {
  int64_t tile = analysis.tileOf(id);
  if (tile == 1)
    return extentOf(id);
  Value padded = arith::AddIOp::create(b, loc, extentOf(id), index(tile - 1));
  Value count = arith::DivUIOp::create(b, loc, padded, index(tile));
  bool everywhere = llvm::all_of(
      results, [&](unsigned r) { return llvm::is_contained(compute.getIndicesOf(r), id); });
  return everywhere ? count : maxOf(count, index(1));
}

void TileEmitter::openTile(unsigned id, Value number) {
  int64_t tile = analysis.tileOf(id);
  IndexState &own = state[id];
  if (tile == 1) {
    own.global = own.base = number;
    return;
  }
  own.base = arith::MulIOp::create(b, loc, number, index(tile));
  Value rest = arith::SubIOp::create(b, loc, extentOf(id), own.base);
  own.current = minOf(index(tile), rest);
}

void TileEmitter::emitStores(unsigned level) {
  SmallVector<std::pair<SmallVector<unsigned>, SmallVector<unsigned>>> groups; // ids, results
  for (unsigned r : results) {
    if (storeLevel(r) != level)
      continue;
    SmallVector<unsigned> ids;
    for (unsigned i : compute.getIndicesOf(r))
      if (analysis.tileOf(i) > 1)
        ids.push_back(i);
    auto it = llvm::find_if(groups, [&](auto &group) { return group.first == ids; });
    if (it == groups.end())
      groups.push_back({ids, {r}});
    else
      it->second.push_back(r);
  }
  for (auto &[ids, members] : groups)
    forEach(ids, [&, &members = members] {
      for (unsigned r : members) {
        SmallVector<Value> position;
        for (unsigned i : compute.getIndicesOf(r))
          position.push_back(state[i].global);
        Value value = toStorage(eval(compute.getYield().getValues()[r]));
        memref::StoreOp::create(b, loc, value, frame->memref(compute.getResult(r)), position);
      }
    });
}

void TileEmitter::emitLevel(unsigned level) {
  IndexMask open = openMask(level);
  if (level > 0 && analysis.sequentialId() == order[level - 1])
    for (Operation *op : llvm::reverse(liveOps.getArrayRef()))
      if (auto scan = dyn_cast<ScanOp>(op); scan && analysis.isRunningScan(scan)) {
        prepare(scan.getYield().getValues()[0], open);
        updateScan(scan);
      }
  for (unsigned r : results)
    prepare(compute.getYield().getValues()[r], open);
  bool isSequential = level < order.size() && analysis.sequentialId() == order[level];
  if (isSequential)
    for (Operation *op : liveOps)
      if (auto scan = dyn_cast<ScanOp>(op); scan && analysis.isRunningScan(scan)) {
        Value term = scan.getYield().getValues()[0];
        Buffer carry =
            makeBuffer(scan.getType(), analysis.tiledIds(analysis.maskOf(scan.getResult())));
        buffers[scan.getResult()] = carry;
        forEach(carry.ids, [&] {
          storeTo(carry, identity(scan.getKind(), term.getType(), isUnsignedTerm(term))[0]);
        });
      }
  emitStores(level);
  if (level == order.size())
    return;
  unsigned id = order[level];
  forLoop(index(0), tileCount(id), index(1), [&](Value number) {
    openTile(id, number);
    emitLevel(level + 1);
  });
}

//===----------------------------------------------------------------------===//
// The parallel loop
//===----------------------------------------------------------------------===//

/// So many iterations that handing them to another thread pays: about 2^16 scalar steps.
Value TileEmitter::grain(Value count) {
  ScalarBuilder s(b, loc);
  Type f64 = b.getF64Type();
  auto real = [&](Value extent) -> Value {
    Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), extent);
    return arith::SIToFPOp::create(b, loc, f64, wide);
  };
  DenseMap<unsigned, Value> trips;
  for (auto [i, extent] : llvm::enumerate(compute.getExtents()))
    trips[i] = real(frame->get(extent));
  compute.walk([&](ReduceOp reduce) {
    for (unsigned i = 0; i < reduce.getNumIndices(); ++i) {
      Value lower = reduce.getLower()[i], upper = reduce.getUpper()[i];
      bool known = !analysis.maskOf(lower) && !analysis.maskOf(upper) &&
                   !(lower.getDefiningOp() && compute->isAncestor(lower.getDefiningOp())) &&
                   !(upper.getDefiningOp() && compute->isAncestor(upper.getDefiningOp()));
      trips[analysis.idOf(reduce.getIndex(i))] =
          known ? s.sub(real(frame->get(upper)), real(frame->get(lower))) : s.real(256, f64);
    }
  });
  Value work = s.real(1, f64);
  auto addProduct = [&](IndexMask mask, double steps) {
    Value product = s.real(steps, f64);
    for (unsigned id = 0; id < 64; ++id)
      if (auto it = trips.find(id); (mask & bit(id)) && it != trips.end())
        product = s.mul(product, it->second);
    work = s.add(work, product);
  };
  for (Value value : compute.getYield().getValues())
    addProduct(openMask(order.size()) & analysis.maskOf(value), 4);
  for (unsigned r : results)
    addProduct(openMask(levelOf(analysis.maskOf(compute.getYield().getValues()[r]))), 4);
  for (Operation *op : liveOps)
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      IndexMask mask = liveMask(op);
      for (unsigned i = 0; i < reduce.getNumIndices(); ++i)
        mask |= bit(analysis.idOf(reduce.getIndex(i)));
      addProduct(mask, 1);
    }
  Value share = arith::DivFOp::create(b, loc, s.mul(real(count), s.real(65536, f64)), work);
  Value limited = arith::MinNumFOp::create(b, loc, share, s.real(1e15, f64));
  Value whole = arith::FPToSIOp::create(b, loc, b.getI64Type(), limited);
  return maxOf(arith::IndexCastOp::create(b, loc, b.getIndexType(), whole), index(1));
}

void TileEmitter::emitParallel(unsigned levels) {
  // Scalars computed once for all iterations reach the body through slots.
  for (unsigned r : results)
    prepare(compute.getYield().getValues()[r], 0);
  emitStores(0);
  Value count = index(1);
  for (unsigned id : ArrayRef(order).take_front(levels))
    count = arith::MulIOp::create(b, loc, count, tileCount(id));
  std::string name = (layout.kernel.getSymName() + ".part" + Twine(parts++)).str();
  Frame body = Frame::createBody(module, layout, name);
  DenseMap<Value, Buffer> shared;
  for (auto &[value, buffer] : buffers) {
    // Those with an axis belong to the inside of a reduction that is complete by now.
    if (!live.contains(value) || !buffer.ids.empty())
      continue;
    unsigned slot = entry.firstFreeSlot() + slots++;
    entry.publish(b, slot, buffer.memref);
    shared[value] = {body.published(slot, cast<MemRefType>(buffer.memref.getType())), {}};
  }
  entry.callParallelFor(b, count, grain(count), name);

  buffers = std::move(shared);
  memo.clear();
  frame = &body;
  OpBuilder outside = b;
  b = OpBuilder::atBlockEnd(&body.function.getBody().front());
  forLoop(body.begin, body.end, index(1), [&](Value iteration) {
    Value rest = iteration;
    for (unsigned level = levels; level-- > 0;) {
      unsigned id = order[level];
      Value number = rest;
      if (level > 0) {
        Value tiles = tileCount(id);
        number = arith::RemUIOp::create(b, loc, rest, tiles);
        rest = arith::DivUIOp::create(b, loc, rest, tiles);
      }
      openTile(id, number);
    }
    emitLevel(levels);
  });
  body.finish(b);
  b = outside;
  frame = &entry;
}

void TileEmitter::emit() {
  unsigned levels = countParallelLevels();
  if (levels == 0)
    return emitLevel(0);
  emitParallel(levels);
}
