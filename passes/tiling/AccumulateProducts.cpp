//===- AccumulateProducts.cpp - sums of products ---------------------------===//
//
// Where scores are the sum of two products (keys of which a part is shared between heads, say), the
// second begins with the first one's sums:
//
//   %x = dot %a, %b, 0;  %y = dot %c, %d, 0;  addf %x, %y
//     →  %x = dot %a, %b, 0;  dot %c, %d, %x
//
// It is one sum over both ranges, added up in another order, with one tile of sums instead of two
// and no additions behind it. Products of 8-bit floats would cut off bits of what they add to.
//
//===----------------------------------------------------------------------===//
#include "passes/tiling/AccumulateProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

static bool isZero(Value tile) {
  if (auto broadcast = tile.getDefiningOp<gpu::BroadcastOp>())
    tile = broadcast.getSource();
  return matchPattern(tile, m_AnyZeroFloat()) || matchPattern(tile, m_Zero());
}

/// Is `value` a product in `block` that is of no other use?
static gpu::DotOp productOf(Value value, Block *block) {
  auto dot = value.getDefiningOp<gpu::DotOp>();
  return dot && dot->getBlock() == block && dot->hasOneUse() ? dot : gpu::DotOp();
}

/// Are no bits of `sum` lost where `dot` adds to it? The matrix unit cuts off what it adds products
/// of 8-bit floats to.
static bool keepsSum(gpu::DotOp dot, gpu::DotOp sum) {
  auto element = cast<RankedTensorType>(dot.getA().getType()).getElementType();
  bool isNarrow = isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
  return !isNarrow && dot.getPrecision() == sum.getPrecision();
}

void tk::accumulateProducts(gpu::FuncOp func) {
  SmallVector<Operation *> sums;
  func.walk([&](Operation *op) {
    if (isa<arith::AddFOp, arith::AddIOp>(op) && isa<RankedTensorType>(op->getResult(0).getType()))
      sums.push_back(op);
  });
  for (Operation *sum : sums) {
    gpu::DotOp first = productOf(sum->getOperand(0), sum->getBlock());
    gpu::DotOp second = productOf(sum->getOperand(1), sum->getBlock());
    if (!first || !second || first == second)
      continue;
    if (second->isBeforeInBlock(first))
      std::swap(first, second);
    if (!isZero(second.getAcc()) || !keepsSum(second, first))
      continue;
    second.getAccMutable().assign(first.getResult());
    sum->getResult(0).replaceAllUsesWith(second.getResult());
    sum->erase();
  }
}
