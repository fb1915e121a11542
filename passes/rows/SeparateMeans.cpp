//===- SeparateMeans.cpp - sums about a mean without the mean -------------===//
//
// The gradient of a norm sums f * (x - c) over a row, where c is the row's mean: f is the gradient
// of the normalised element. The blocks of a cluster exchange that sum after the mean's, and
// nothing else runs meanwhile. Both have one exchange, if the sum does without c.
//
//   1. A product of tiles and scalars is divided into these. One tile is the difference of the row
//      from a scalar c that a reduction of the row gives. The product of the others is f.
//   2. f must not follow from a reduction.
//   3. The sum becomes that of f * x, less c times the sum of f.
//
// The rewrite takes rows that are loaded with 16 or 8 bits an element: a mean is then at most some
// thousand times as large as the spread of elements that differ, and the f32 sums have as many bits
// more than the results.
//
// Before: %mean, %squares = moments %x; %s = reduce <sum> %f; %t = reduce <sum> (%f * (%x - %c))
// After:  %mean, %squares = moments %x; %s = reduce <sum> %f; %u = reduce <sum> (%f * %x);
//         %t = %u - %c * %s
//
//===----------------------------------------------------------------------===//
#include "passes/layout/TileComponents.h"
#include "passes/rows/OverlapExchanges.h"

#include "dialects/tkgpu/TkGpuPrivateOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

#include <algorithm>

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

/// Tiles and scalars whose product a tile is.
struct Factors {
  SmallVector<Value> tiles, scalars;

  explicit Factors(Value product) { collect(product); }

private:
  void collect(Value value) {
    auto spread = value.getDefiningOp<BroadcastOp>();
    if (auto product = value.getDefiningOp<arith::MulFOp>()) {
      collect(product.getLhs());
      collect(product.getRhs());
    } else if (spread && !isTile(spread.getSource())) {
      scalars.push_back(spread.getSource());
    } else {
      tiles.push_back(value);
    }
  }
};

} // namespace

/// Does `value` follow from what its block reduces?
static bool needsReduction(Value value, Block *block) {
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == block &&
         (isReduction(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
            return needsReduction(operand, block);
          }));
}

/// The scalar that `tile` has the differences of a narrow row from, if a reduction gives it.
static Value scalarOfDifference(Value tile) {
  auto sub = tile.getDefiningOp<arith::SubFOp>();
  auto row = sub ? sub.getLhs().getDefiningOp<arith::ExtFOp>() : arith::ExtFOp();
  auto spread = sub ? sub.getRhs().getDefiningOp<BroadcastOp>() : BroadcastOp();
  if (!row || !row.getIn().getDefiningOp<PrivateLoadOp>() || !spread ||
      !spread.getSource().getType().isF32() ||
      !needsReduction(spread.getSource(), tile.getParentBlock()))
    return {};
  return spread.getSource();
}

static Value multiply(OpBuilder &builder, Location loc, Value value, ArrayRef<Value> factors) {
  for (Value factor : factors)
    value = arith::MulFOp::create(builder, loc, value, factor);
  return value;
}

/// Takes a sum of products with differences from a scalar apart.
static bool separate(gpu::ReduceOp reduce) {
  Factors factors(reduce.getSource());
  Value scalar, row;
  for (Value &tile : factors.tiles) {
    scalar = scalarOfDifference(tile);
    if (!scalar)
      continue;
    row = tile.getDefiningOp<arith::SubFOp>().getLhs();
    factors.tiles.erase(&tile);
    break;
  }
  if (!scalar || factors.tiles.empty() || llvm::any_of(factors.tiles, [&](Value tile) {
        return needsReduction(tile, reduce->getBlock());
      }))
    return false;
  OpBuilder builder(reduce);
  const Location loc = reduce.getLoc();
  auto sum = [&](Value tile) -> Value {
    return gpu::ReduceOp::create(builder, loc, reduce.getType(), tile, ReduceKind::Sum,
                                 reduce.getAxis());
  };
  Value tile = multiply(builder, loc, factors.tiles.front(), ArrayRef(factors.tiles).drop_front());
  Value about = sum(arith::MulFOp::create(builder, loc, tile, row));
  Value all = sum(tile);
  Value shift = arith::MulFOp::create(builder, loc, scalar, all);
  Value result = arith::SubFOp::create(builder, loc, about, shift);
  reduce.getResult().replaceAllUsesWith(multiply(builder, loc, result, factors.scalars));
  // The sum of the same tiles is not reduced twice.
  for (auto other : llvm::to_vector(reduce->getBlock()->getOps<gpu::ReduceOp>())) {
    Factors own(other.getSource());
    if (!reduce->isBeforeInBlock(other) || other.getKind() != ReduceKind::Sum ||
        !std::is_permutation(own.tiles.begin(), own.tiles.end(), factors.tiles.begin(),
                             factors.tiles.end()) ||
        other.getType() != reduce.getType())
      continue;
    builder.setInsertionPoint(other);
    other.getResult().replaceAllUsesWith(multiply(builder, loc, all, own.scalars));
    other.erase();
  }
  reduce.erase();
  return true;
}

unsigned tk::separateMeans(FuncOp function) {
  unsigned count = 0;
  if (!exchangesAlone(function))
    return count;
  for (auto loop : function.getBlock()->getOps<scf::ForOp>()) {
    auto isSum = [](gpu::ReduceOp reduce) {
      return reduce.getKind() == ReduceKind::Sum && reduce.getType().isF32();
    };
    // A sum that is taken apart may be another's, which then is no more.
    auto separateOne = [&] {
      auto sums =
          llvm::to_vector(llvm::make_filter_range(loop.getBody()->getOps<gpu::ReduceOp>(), isSum));
      return llvm::any_of(sums, separate);
    };
    while (separateOne())
      ++count;
  }
  return count;
}
