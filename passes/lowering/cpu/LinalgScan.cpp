//===- LinalgScan.cpp - scans along the sequential index ------------------===//
//
// The loop over the positions of a scan carries a tile of what it has come to, over the other
// indices of the tile: the identity before the loop, one more term at each position.
//
//===----------------------------------------------------------------------===//
#include "passes/lowering/cpu/LinalgEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

SmallVector<ScanOp> LinalgEmitter::runningScans() const {
  SmallVector<ScanOp> scans;
  for (Operation *op : liveOps)
    if (auto scan = dyn_cast<ScanOp>(op); scan && analysis.isRunningScan(scan))
      scans.push_back(scan);
  return scans;
}

/// Tiles that hold the identity for each scan along the sequential index; returns their values.
SmallVector<Value> LinalgEmitter::startScans() {
  Values carried;
  for (ScanOp scan : runningScans()) {
    Value term = scan.getYield().getValues()[0];
    Ids ids = analysis.tiledIds(analysis.maskOf(scan.getResult()));
    Tile start = emitTiles(ids, {}, {scan.getType()}, [&] {
      return reductionIdentity(b, loc, scan.getKind(), term.getType(), scan.getType(),
                               isUnsignedTerm(term));
    })[0];
    tiles[scan.getResult()] = start;
    carried.push_back(start.value);
  }
  return carried;
}

void LinalgEmitter::updateScan(ScanOp scan) {
  Value result = scan.getResult(), term = scan.getYield().getValues()[0];
  Value at = state[*analysis.sequentialId()].global;
  Tile carry = tiles[result];
  state[analysis.idOf(scan.getBlock()->getArgument(0))].global = at;
  // Terms at positions outside the scan's range are evaluated as well, but not taken.
  bool saved = std::exchange(clampLoads, true);
  auto next = [&](Value old) {
    Value isIn = arith::AndIOp::create(
        b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, at, eval(scan.getLower())),
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at, eval(scan.getUpper())));
    Value taken =
        reductionStep(b, loc, scan.getKind(), {old}, eval(term), at, isUnsignedTerm(term))[0];
    return arith::SelectOp::create(b, loc, isIn, taken, old).getResult();
  };
  if (carry.ids.empty()) {
    tiles[result].value = next(carry.value);
  } else {
    Value part = currentPart(carry.value, carry.ids);
    Values stepped =
        emitGeneric(carry.ids, {}, {term, scan.getLower(), scan.getUpper()}, part, carry.ids,
                    [&](ValueRange old) {
                      return Values{toStorage(next(fromStorage(old[0], result.getType())))};
                    });
    tiles[result].value = insertPart(stepped[0], carry.value, carry.ids);
  }
  clampLoads = saved;
  memo.clear();
}
