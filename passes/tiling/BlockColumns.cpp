//===- BlockColumns.cpp - what blocks carry from tile to tile -------------===//
//
// Where a result is what the tiles of an index are reduced to together (TileReduction::isCarried),
// there are as many blocks as that result has elements, and each goes through tiles:
//   1. The grid has the blocks in the place of the tiles. A block begins with the tile of its own
//      number.
//   2. All that depends on the tile's number, or is stored, goes into a loop over it, in steps of
//      the blocks' number.
//   3. The loop carries the tile that is to be reduced, element by element: threads join what they
//      have once, behind it, and store it at the block's number.
//
//   %r = program_id x                             %b = program_id x
//   %x = load x[%r, ..]; .. store ..      →       %s = for %r = %b to %rows step %blocks
//                                                        iter_args(%sum = 0) {
//                                                   %x = load x[%r, ..]; .. store ..
//                                                   yield %sum + %x
//                                                 }
//                                                 store (reduce %s), partial[%b, ..]
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/TileLoops.h"
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tk;

/// The index of the statement that counts the blocks which go through tiles of index `p`, if they
/// do.
std::optional<unsigned> BlockProgram::counterOfBlocks(unsigned p) {
  for (unsigned r = 0; r < compute.getNumResults(); ++r)
    if (std::optional<TileReduction> reduction = getTileReduction(compute, r);
        reduction && reduction->isCarried && reduction->axes.front().index == p)
      return reduction->axes.front().counter;
  return std::nullopt;
}

/// The number of the tile along `axis` that the block has, of those that it goes through from the
/// one of its own number, `block`, on: until there is a loop, that one.
Value BlockProgram::beginTiles(unsigned axis, Value block) {
  firstTile = block;
  endOfTiles = kernelValue(axes[axis].rangeEnd);
  if (axes[axis].size != 1) {
    Value round = arith::AddIOp::create(at(0), loc, endOfTiles, indexConstant(axes[axis].size - 1));
    endOfTiles = arith::DivSIOp::create(at(0), loc, round, indexConstant(axes[axis].size));
  }
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (std::optional<unsigned> counter = counterOfBlocks(p))
      numBlocks = kernelValue(compute.getExtents()[*counter]);
  tileOfLoop = arith::AddIOp::create(at(0), loc, block, indexConstant(0));
  return tileOfLoop;
}

/// Puts what is there so far into the loop over the block's tiles, and behind it what that carries
/// for `stores`.
void BlockProgram::carryThroughTiles(ArrayRef<Store *> stores, ValueRange buffers) {
  auto storeReduced = [&](Store *store, Value tile, Value buffer) {
    TileValue value{tile, store->value.axes, 0};
    for (const TileReduction::Axis &reduced : llvm::reverse(store->carried->axes))
      value =
          reduceTile(value, axisOf.lookup(compute.getIndex(reduced.index)), store->carried->kind);
    addStore(*store, value.value, buffer);
  };
  // Where one tile holds the index, there is one block, which has nothing to carry.
  if (!firstTile) {
    for (auto [store, buffer] : llvm::zip_equal(stores, buffers))
      storeReduced(store, store->value.value, buffer);
    return;
  }
  SmallVector<Value> initial;
  for (Store *store : stores) {
    TileValue identity{constant(identityOf(store->carried->kind,
                                           getElementTypeOrSelf(store->value.value.getType()))),
                       {},
                       0};
    initial.push_back(broadcast(identity, store->value.axes, 0).value);
  }
  auto loop = scf::ForOp::create(at(0), loc, firstTile, endOfTiles, numBlocks, initial);
  OpBuilder body = OpBuilder::atBlockEnd(loop.getBody());
  auto yield = scf::YieldOp::create(body, loc, loop.getRegionIterArgs());
  Operation *first = tileOfLoop.getDefiningOp();
  tileOfLoop.replaceAllUsesWith(loop.getInductionVar());
  first->erase();
  moveIntoLoop(func, loop);
  body.setInsertionPoint(yield);
  for (auto [n, store] : llvm::enumerate(stores))
    yield.setOperand(n, createCombination(body, loc, store->carried->kind, loop.getRegionIterArg(n),
                                          store->value.value));
  for (auto [n, store] : llvm::enumerate(stores))
    storeReduced(store, loop.getResult(n), buffers[n]);
  gpu::changePlan(func, [](gpu::KernelPlan &plan) { plan.carriesTiles = true; });
}
