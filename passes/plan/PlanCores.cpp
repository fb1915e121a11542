//===- PlanCores.cpp - tiles of f32 and f64 contractions ------------------===//
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/CoreTiles.h"
#include "passes/machine/TileFacts.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

/// At most how many values the indices of the statement's results other than those of `product`
/// have together; nothing if that is not known.
static std::optional<int64_t> countBesides(StatementShape &shape, Contraction &product) {
  int64_t count = 1;
  for (Value index : shape.compute.getBlock()->getArguments()) {
    if (index == product.m || index == product.n)
      continue;
    std::optional<int64_t> upper = shape.upperOf(index);
    if (!upper || llvm::MulOverflow(count, std::max<int64_t>(*upper, 1), count))
      return std::nullopt;
  }
  return count;
}

/// At most how many terms the sums of `product` have, or one of the parts that they are cut into.
static int64_t countTerms(StatementShape &shape, Contraction &product) {
  int64_t terms = shape.upperOf(product.k).value_or(assumedExtent), parts = 1;
  for (BlockArgument index : getIterationIndices(product.op.getLower()[0]))
    if (index.getOwner() == shape.compute.getBlock())
      parts *= std::max<int64_t>(shape.upperOf(index).value_or(1), 1);
  return llvm::divideCeil(terms, parts);
}

/// Takes the tile that needs the least time for so many rows and columns, of those with the sides
/// that the program has set; those of the plan stay where sizes are not known.
void Planner::chooseCoreTile(Contraction &product) {
  std::optional<int64_t> others = countBesides(shape, product), rows = shape.upperOf(product.m),
                         columns = shape.upperOf(product.n);
  if (!others || !rows || !columns)
    return;
  auto isAllowed = [&](Value index, int64_t side) {
    return !block.tiles.contains(index) || tileOf(index) == side;
  };
  const CoreTile *best = nullptr;
  double least = 0;
  int64_t terms = countTerms(shape, product);
  bool isF64 = product.operand.isF64();
  for (const CoreTile &tile : isF64 ? ArrayRef(coreTilesOfF64) : ArrayRef(coreTiles)) {
    double time = tile.timeOf(*others * tile.count(*rows, *columns), terms, target.getProcessors());
    if (isAllowed(product.m, tile.m) && isAllowed(product.n, tile.n) && (!best || time < least))
      best = &tile, least = time;
  }
  if (!best)
    return;
  tiles[product.m] = std::min(tileOf(product.m), best->m);
  tiles[product.n] = std::min(tileOf(product.n), best->n);
}
