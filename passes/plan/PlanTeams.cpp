//===- PlanTeams.cpp - when each warpgroup has a tile of its own (pingpong) ===//
//
// With pingpong scheduling the epilogue of one warpgroup's tile runs under the other one's
// contraction. The gain grows with the cost of the epilogue relative to the length of the sum. But
// pingpong reads more: each of two tiles of 64 rows loads the columns' operand for itself. That
// costs little if a launch is long enough for the clock rate to fall.
//
// Measured on an H200 in bf16 (8192 x 8192, and 4096 x 4096 to 16384 x 16384 with k = 4096), in
// units of the time of one element of k: pingpong gains 130 by storing the results in the meantime,
// about 100 for each exp, erf or quotient, and 50 for a tile that is read. It loses 1.5 % and, in
// launches with few elements in all,
// 1300. Several contractions, and tiles that are read besides, lose more.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/Costs.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"
#include "passes/machine/limits/Products.h"
#include "passes/plan/Planner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tk;

namespace {

using namespace limits::plan_teams;

} // namespace

/// Is `op` one that takes a thread many instructions?
static bool isFunction(Operation *op) {
  return isa<arith::DivFOp>(op) ||
         isa<math::ErfOp, math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log2Op,
             math::Log1pOp, math::PowFOp, math::RsqrtOp, math::SqrtOp, math::TanhOp, math::SinOp,
             math::CosOp>(op);
}

/// Is `op` a load of an element for each of the product's results?
static bool isLoadOfTile(Operation *op, Contraction &product) {
  auto load = dyn_cast<LoadOp>(op);
  auto follows = [&](Value index) {
    return llvm::any_of(load.getIndices(), [&](Value at) { return runsOneByOne(at, index); });
  };
  return load && follows(product.m) && follows(product.n);
}

/// Is a tile read besides the product's factors?
static bool isAnyTileRead(ComputeOp compute, Contraction &product) {
  return llvm::any_of(*compute.getBlock(),
                      [&](Operation &op) { return isLoadOfTile(&op, product); });
}

int64_t Planner::groupOfTeams(Contraction &product) {
  return isAnyTileRead(shape.compute, product) ? rowsBesideTile : rowsTogether;
}

bool Planner::areTeamsFaster(Contraction &product, const WarpgroupTile &shared, int64_t tiles) {
  bool isMeasured = (product.operand.isBF16() || product.operand.isF16()) &&
                    product.op.getPrecision() != Precision::Blocked;
  bool isAsked = block.consumers || block.cluster || block.persistent ||
                 block.tiles.contains(product.m) || block.tiles.contains(product.n);
  int64_t terms = shape.upperOf(product.k).value_or(assumedExtent);
  // Smaller tiles are for results that do not fill the machine.
  bool isWhole = shared.m * shared.n * int64_t(shape.contractions.size()) == 128 * 256;
  bool areTogether = llvm::all_of(shape.contractions, [&](Contraction &other) {
    return other.m == product.m && other.n == product.n && other.k == product.k;
  });
  // Teams know where each other's tiles begin in the stages.
  Value end = shape.endOf(product.k);
  bool isEqual = shape.startsAtZero(product.k) &&
                 !shape.compute->isAncestor(end.getParentRegion()->getParentOp());
  if (!isMeasured || !isEqual || isAsked || !isWhole || !areTogether ||
      terms < cost::pingPongLeastTerms)
    return false;
  double hidden = cost::pingPongHidesStore;
  for (Operation &op : *shape.compute.getBlock())
    hidden += isFunction(&op)              ? cost::pingPongHidesFunction
              : isLoadOfTile(&op, product) ? cost::pingPongHidesTile
                                           : 0;
  // Several sums take as much longer as they have fewer results in a tile.
  hidden /= double(shape.contractions.size());
  double lost = cost::pingPongLosesShare +
                (isAnyTileRead(shape.compute, product) ? cost::pingPongLosesBesideTile : 0) +
                (shape.contractions.size() > 1 ? cost::pingPongLosesBesideSums : 0);
  double waves = double(tiles) / double(target.getProcessors());
  return hidden / double(terms) > lost + cost::pingPongLoses / (waves * double(terms));
}

int64_t Planner::chooseTeams(Contraction &product, const WarpgroupTile &shared, int64_t tiles) {
  if (isWideForFewRows(product))
    return 1;
  // Of rows that straddle lines of the second-level cache, teams ask it for too many: 0.75 to 0.95
  // of the rate at 8000 x 8016 x 1040.
  bool isPlain = areFactorsStored(product) && !isMisaligned(product, lineBytes);
  return block.teams.value_or(isPlain && areTeamsFaster(product, shared, tiles) ? 2 : 1);
}
