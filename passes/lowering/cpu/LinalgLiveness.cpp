//===- LinalgLiveness.cpp - what a loop nest needs, and where -------------===//
//
// A nest computes some results of a statement. Needed is what those are made of; of this, tiles are
// made behind the outermost loop at which all indices that they depend on are open.
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/LinalgEmitter.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

void LinalgEmitter::findLive(Value value) {
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

void LinalgEmitter::findLiveReduce(ReduceOp reduce, unsigned k) {
  findLive(reduce.getYield().getValues()[k]);
  if (Value condition = presentOf(reduce, k))
    findLive(condition);
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

IndexMask LinalgEmitter::liveMask(Operation *op) const {
  IndexMask mask = 0;
  for (Value result : op->getResults())
    if (live.contains(result))
      mask |= analysis.maskOf(result);
  return mask;
}

IndexMask LinalgEmitter::openMask(unsigned level) const {
  IndexMask mask = 0;
  for (unsigned id : ArrayRef(order).take_front(level))
    mask |= bit(id);
  return mask;
}

/// How many loops must be open for values over `mask`; one more than there are if it has others.
unsigned LinalgEmitter::levelOf(IndexMask mask) const {
  for (unsigned level = 0; level <= order.size(); ++level)
    if ((mask & ~openMask(level)) == 0)
      return level;
  return order.size() + 1;
}

unsigned LinalgEmitter::storeLevel(unsigned result) {
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

unsigned LinalgEmitter::countParallelLevels() {
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
