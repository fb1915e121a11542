//===- FitTiles.cpp - tiles that fit registers and shared memory ----------===//
//
// After the plan of a compute op, its tiles are halved until they fit: the operands of CUDA cores
// in registers, chains on CUDA cores in shared memory. If a kernel has exceeded shared memory, the
// plan is made again with a part of it, and the tiles of rows and scans follow that part.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/WarpGrid.h"
#include "passes/machine/limits/Products.h"
#include "passes/plan/Planner.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace tk;

namespace {

using namespace limits::fit_tiles;

} // namespace

/// On CUDA cores a thread holds a slice of k of its outputs' rows and columns. Where there is one
/// warp, because tiles are narrow or the program says how many outputs a thread has, its lanes
/// share out 4 and 8 of them at least, where there are so many; either side may become the rows.
/// Slices that are too long for its registers become shorter, but those that the program asks for.
void Planner::limitOperands() {
  auto isOnMatrixUnits = [](Contraction &product) {
    return usesMatrixUnits(product) &&
           llvm::all_of(product.op.getYield().getValues(), [](Value term) {
             Operation *factors = term.getDefiningOp();
             return !factors || factors->getNumOperands() != 2 ||
                    withoutExtension(factors->getOperand(0)).getType() ==
                        withoutExtension(factors->getOperand(1)).getType();
           });
  };
  // How lanes lie may follow from other products, too: with less a thread the plan is made again,
  // half of it the first time and of that each time, as the part of shared memory says.
  const double part = double(target.getShared()) / double(getWholeTarget(shape.kernel).getShared());
  const int64_t most =
      llvm::bit_floor<uint64_t>(std::max<int64_t>(double(mostOperands) * part * part, 1));
  for (Contraction &product : shape.contractions) {
    int64_t m = tileOf(product.m), n = tileOf(product.n), side = std::max(m, n);
    if (isOnMatrixUnits(product) && (warps > 1 || std::min(m, n) >= 16))
      continue;
    if (warps > 1) {
      while (!block.tiles.contains(product.k) && tileOf(product.k) > 1 &&
             tileOf(product.k) * sideOfThread(m, n, warps) > most)
        tiles[product.k] /= 2;
      continue;
    }
    int64_t outputs = std::max<int64_t>(m * n / 32, 1);
    int64_t rows = std::clamp<int64_t>(outputs / 4, 1, std::max<int64_t>(side / 4, 1));
    int64_t columns = std::clamp<int64_t>(outputs, 1, std::max<int64_t>(side / 8, 4));
    while (tileOf(product.k) > 1 && tileOf(product.k) * std::max(rows, columns) > most)
      tiles[product.k] /= 2;
  }
}

/// A chain on CUDA cores has its rows' slice, one of the second factor and the weights in two
/// layouts in shared memory at a time: fewer terms of the outer sum where there is no room.
void Planner::fitChains() {
  constexpr int64_t leastTerms = 16;
  for (Contraction &outer : shape.contractions) {
    if (!outer.isOuter || usesMatrixUnits(outer) || block.tiles.contains(outer.k))
      continue;
    for (Contraction &inner : shape.contractions) {
      if (!outer.op->isProperAncestor(inner.op))
        continue;
      auto elements = [&] {
        int64_t m = tileOf(outer.m), k = tileOf(outer.k);
        return m * tileOf(inner.k) + k * tileOf(outer.n) + 2 * m * k;
      };
      while (elements() * outer.operand.getIntOrFloatBitWidth() / 8 > target.getShared() &&
             tileOf(outer.k) > leastTerms)
        tiles[outer.k] /= 2;
    }
  }
}

/// Do the tiles of a block take so little that another compute op of the kernel must have exceeded
/// shared memory or registers? Small rows stay as they are then.
static bool areRowsSmall(StatementShape &shape, llvm::function_ref<int64_t(Value)> tileOf) {
  // Of a term at most, and the part of shared memory that rows must exceed to be planned for less:
  // registers and exchanges take no more than that.
  constexpr int64_t bytesOfTerm = 8, partOfSmallRows = 4;
  int64_t rows = 1, terms = 0;
  for (Value index : shape.compute.getBlock()->getArguments())
    rows *= tileOf(index);
  for (Operation *op : shape.reductions) {
    int64_t own = 1;
    for (BlockArgument index : op->getRegion(0).front().getArguments())
      if (index.getType().isIndex())
        own *= tileOf(index);
    terms += own;
  }
  return rows * std::max<int64_t>(terms, 1) * bytesOfTerm <=
         getWholeTarget(shape.kernel).getShared() / partOfSmallRows;
}

/// Rows and scans that needed more shared memory, or more registers, than there are: their tiles
/// are half as large the first time, and half of that each time, as the part of shared memory says.
/// First the rows that a block has beside each other, then what it takes of a row at a time.
void Planner::fitRows() {
  if (!isForLess() || !shape.contractions.empty() ||
      areRowsSmall(shape, [&](Value index) { return tileOf(index); }))
    return;
  const double part = double(target.getShared()) / double(getWholeTarget(shape.kernel).getShared());
  int64_t halves = std::llround(std::log(part) / std::log(partOfEachTime));
  SmallVector<Value> rows, terms;
  auto isTogether = [&](Value index) { // with a reduction or a scan along the same row
    return llvm::any_of(shape.reductions, [&](Operation *op) {
      return llvm::any_of(op->getRegion(0).front().getArguments(), [&](BlockArgument other) {
        return other.getType().isIndex() && shape.endOf(other) == shape.endOf(index);
      });
    });
  };
  for (Value index : shape.compute.getBlock()->getArguments())
    if (!isTogether(index))
      rows.push_back(index);
  for (Operation *op : shape.reductions)
    if (auto reduction = dyn_cast<ReduceOp>(op))
      for (unsigned n = 0; n < reduction.getNumIndices(); ++n)
        terms.push_back(reduction.getIndex(n));
  auto longest = [&](ArrayRef<Value> indices) {
    int64_t most = 1;
    for (Value index : indices)
      most = std::max(most, block.tiles.contains(index) ? 1 : tileOf(index));
    return most;
  };
  for (; halves > 0; --halves) {
    ArrayRef<Value> among = longest(rows) > 1 ? rows : terms;
    const int64_t most = longest(among);
    for (Value index : among)
      if (most > 1 && tileOf(index) == most && !block.tiles.contains(index))
        halve(index);
  }
}

/// Halves the tile along `index`. An output along the same row is stepped through then.
void Planner::halve(Value index) {
  tiles[index] /= 2;
  for (unsigned p = 0; p < shape.compute.getNumIndices(); ++p) {
    Value other = shape.compute.getIndex(p);
    if (other == index || shape.endOf(other) != shape.endOf(index) ||
        tileOf(other) != 2 * tileOf(index))
      continue;
    tiles[other] = tileOf(index);
    loop = p;
  }
}
