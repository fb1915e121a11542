//===- CutStores.cpp - long tiles are computed and stored in parts --------===//
//
// Of a tile that is stored, a thread may have more elements than registers. Written down as
// operations on the whole tile, each of them would have all of its results before the next begins.
//   1. In functions without products: stores of tiles of one axis, of which a thread has more
//      elements than fit its registers as f32.
//   2. The store, and what leads to nothing but stores, is done for a part of the tile at a time
//      (TilePieces.h): one of which registers also hold what is loaded beside it.
//
// Before: %f = extf %x; %y = %f * %s; store %y, y[%j]
// After:  %x0 = extract %x at 0; %f0 = extf %x0; %y0 = %f0 * %s; store %y0, y[extract %j at 0];
//         %x1 = extract %x at n / 2; ...
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/memory/TileComponents.h"
#include "passes/memory/TilePieces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_CUTSTORES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// So many of a tile's elements fit the registers of a thread that has 64, and so many leave room
/// for weights of columns and addresses.
static constexpr int64_t mostElements = 32, elementsOfPart = 16;

/// How many parts a stored tile is computed in.
static int64_t countParts(StoreOp store) {
  auto tile = dyn_cast<RankedTensorType>(store.getValue().getType());
  LayoutAttr layout = tile ? getLayout(tile) : LayoutAttr();
  if (!layout || tile.getRank() != 1 || layout.getHeld() != 0 ||
      layout.getNumRegisters() <= mostElements)
    return 1;
  return layout.getNumRegisters() / elementsOfPart;
}

/// Returns false, and leaves the store, where the parts are not registers of every thread.
static bool cutStore(StoreOp store, ArrayRef<Operation *> stores) {
  int64_t numParts = countParts(store);
  auto tile = cast<RankedTensorType>(store.getValue().getType());
  int64_t length = tile.getDimSize(0) / numParts;
  if (!partLayout(getLayout(tile), length))
    return false;
  SmallVector<std::pair<unsigned, TilePieces>> tiles; // operands that are cut, and their parts
  for (auto [number, operand] : llvm::enumerate(store->getOperands()))
    if (isTile(operand))
      tiles.emplace_back(number, TilePieces(operand, stores));
  OpBuilder builder(store);
  for (int64_t part = 0; part < numParts; ++part) {
    SmallVector<Value> operands(store->getOperands());
    for (auto &[number, pieces] : tiles) {
      pieces.clear();
      operands[number] = pieces.build(builder, store->getOperand(number), part * length, length);
    }
    builder.clone(*store)->setOperands(operands);
  }
  store.erase();
  return true;
}

namespace {

struct CutStores : tk::impl::CutStoresBase<CutStores> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (hasProducts(function))
        continue;
      SmallVector<Operation *> stores;
      function.walk([&](StoreOp store) {
        if (countParts(store) > 1)
          stores.push_back(store);
      });
      for (Operation *store : stores)
        numCut += cutStore(cast<StoreOp>(store), stores);
      function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
        if (isOpTriviallyDead(op))
          op->erase();
      });
    }
  }
};

} // namespace
