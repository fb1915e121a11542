//===- TileBoxes.cpp - tiles of operands as TMA boxes ---------------------===//
//
// Reads how the indices of an access follow the tiled indices. TMA takes runs along one of them,
// and aligned groups of rows at one place each, such as those that a table names.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/TileBoxes.h"

#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

int64_t tk::rowAlignment(StatementShape &shape, LoadOp load) {
  size_t rank = load.getIndices().size();
  return rank < 2 || rank > 5 ? 0 : getRowAlignment(shape.kernel, load);
}

bool tk::isBulkLoadable(StatementShape &shape, Value factor) {
  auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
  return load && rowAlignment(shape, load) >= boxAlignment;
}

bool tk::isBoxOfRows(StatementShape &shape, Contraction &product, LoadOp load) {
  auto isTiled = [&](Value index) {
    return index == product.m || index == product.n || index == product.k;
  };
  return rowAlignment(shape, load) >= boxAlignment &&
         llvm::any_of(getIterationIndices(load.getIndices().back()), isTiled);
}

bool tk::isContiguousAlong(Value factor, Value k) {
  auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
  return load && runsOneByOne(load.getIndices().back(), k);
}

bool tk::isRunOfBox(StatementShape &shape, Value index, ArrayRef<Value> tiled) {
  auto isTiled = [&](Value value) {
    return llvm::any_of(getIterationIndices(value),
                        [&](Value argument) { return llvm::is_contained(tiled, argument); });
  };
  Operation *op = index.getDefiningOp();
  if (!op || !isTiled(index))
    return true;
  Value first = op->getOperand(0);
  if (isa<arith::AddIOp>(op))
    return isTiled(first) != isTiled(op->getOperand(1)) &&
           isRunOfBox(shape, isTiled(first) ? first : op->getOperand(1), tiled);
  auto row = dyn_cast<BlockArgument>(first);
  if (!isa<FloorDivOp, FloorModOp>(op) || !row || row.getOwner() != shape.compute.getBlock())
    return false;
  // Masks of partial tiles would be of the row, not of its group or place.
  Value extent = shape.compute.getExtents()[row.getArgNumber()];
  std::optional<int64_t> size = getSizeFact(shape.kernel, op->getOperand(1)).exact;
  return size && *size > 0 && rowsOfWarpgroup % *size == 0 &&
         getSizeFact(shape.kernel, extent).divisor % rowsOfWarpgroup == 0;
}

namespace {
/// How `indices` of an access follow the tiled ones: aligned groups of so many neighbours have the
/// same value, or count.
struct Neighbours {
  static constexpr int64_t all = int64_t(1) << 30;
  int64_t equal = all, counted = 1;
};
} // namespace

static Neighbours neighboursOf(StatementShape &shape, Value index, ArrayRef<Value> tiled) {
  if (llvm::is_contained(tiled, index))
    return {1, Neighbours::all};
  Operation *op = index.getDefiningOp();
  auto isTiled = [&](Value value) {
    return llvm::any_of(getIterationIndices(value),
                        [&](Value argument) { return llvm::is_contained(tiled, argument); });
  };
  if (!op || !isTiled(index))
    return {};
  auto operand = [&](unsigned n) { return neighboursOf(shape, op->getOperand(n), tiled); };
  if (isa<arith::AddIOp>(op)) {
    Neighbours a = operand(0), b = operand(1);
    return {std::min(a.equal, b.equal),
            std::max(std::min(a.counted, b.equal), std::min(a.equal, b.counted))};
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return operand(0);
  if (isa<FloorDivOp, FloorModOp>(op)) {
    std::optional<int64_t> size = getSizeFact(shape.kernel, op->getOperand(1)).exact;
    bool isPower = size && *size > 0 && llvm::isPowerOf2_64(*size);
    // What is added is where a part of the range begins: whole tiles before it.
    int64_t group = isPower ? std::min(operand(0).counted, *size) : 1;
    return isa<FloorDivOp>(op) ? Neighbours{group, 1} : Neighbours{1, group};
  }
  bool isPlain = isa<LoadOp>(op) || op->hasTrait<OpTrait::Elementwise>();
  Neighbours result{isPlain ? Neighbours::all : 1, 1};
  for (Value value :
       isa<LoadOp>(op) ? ValueRange(cast<LoadOp>(op).getIndices()) : ValueRange(op->getOperands()))
    result.equal = std::min(result.equal, neighboursOf(shape, value, tiled).equal);
  return result;
}

bool tk::followsTable(Value index, ArrayRef<Value> tiled) {
  Operation *op = index.getDefiningOp();
  if (isa_and_nonnull<LoadOp>(op))
    return llvm::any_of(getIterationIndices(index),
                        [&](Value own) { return llvm::is_contained(tiled, own); });
  return op && op->hasTrait<OpTrait::Elementwise>() &&
         llvm::any_of(op->getOperands(), [&](Value of) { return followsTable(of, tiled); });
}

bool tk::areRowsGathered(StatementShape &shape, LoadOp load, ArrayRef<Value> tiled, int64_t least) {
  unsigned counting = 0;
  for (Value index : load.getIndices().drop_back()) {
    Neighbours along = neighboursOf(shape, index, tiled);
    if (std::max(along.equal, along.counted) < least)
      return false;
    counting += along.counted > along.equal;
  }
  return counting == 1 && isRunOfBox(shape, load.getIndices().back(), tiled);
}
