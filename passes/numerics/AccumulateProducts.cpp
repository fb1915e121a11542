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
// Where a loop carries both, each iteration adds to one tile:
//
//   %s:2 = for iter_args(%p = 0, %q = 0) {       %s:2 = for iter_args(%p = 0, %q = 0) {
//     %x = dot %a, %b, %p                     →    %x = dot %a, %b, %p
//     %y = dot %c, %d, %q                          %y = dot %c, %d, %x
//     yield %x, %y }                               yield %y, %q }
//   addf %s#0, %s#1                              (%s#0)
//
// What is subtracted is added to the sums' opposite, where threads have the sums at once: CUDA
// cores take the opposite of a sum that they add to.
//
//===----------------------------------------------------------------------===//
#include "passes/numerics/AccumulateProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

/// Of fewer outputs of the matrix unit two products have a tile each.
static constexpr int64_t leastOutputs = 128 * 64;

static bool isZero(Value tile) {
  if (auto broadcast = tile.getDefiningOp<gpu::BroadcastOp>())
    tile = broadcast.getSource();
  return matchPattern(tile, m_AnyZeroFloat()) || matchPattern(tile, m_Zero());
}

/// Is `value` a product in `block` that is of no other use?
static gpu::DotOp productOf(Value value, Block *block) {
  auto dot = value.getDefiningOp<gpu::DotOp>();
  bool isProduct = dot && !dot.hasTerm() && dot->getBlock() == block;
  return isProduct && dot->hasOneUse() ? dot : gpu::DotOp();
}

static Type elementOf(gpu::DotOp dot) {
  return cast<RankedTensorType>(dot.getA().getType()).getElementType();
}

/// Are no bits of `sum` lost where `dot` adds to it? The matrix unit cuts off what it adds products
/// of 8-bit floats to.
static bool keepsSum(gpu::DotOp dot, gpu::DotOp sum) {
  Type element = elementOf(dot);
  bool isNarrow = isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
  return !isNarrow && dot.getPrecision() == sum.getPrecision();
}

/// Lets the second of two products in a block begin with the first one's sums.
static bool joinInBlock(Operation *sum) {
  gpu::DotOp first = productOf(sum->getOperand(0), sum->getBlock());
  gpu::DotOp second = productOf(sum->getOperand(1), sum->getBlock());
  if (!first || !second || first == second)
    return false;
  if (second->isBeforeInBlock(first))
    std::swap(first, second);
  if (!isZero(second.getAcc()) || !keepsSum(second, first))
    return false;
  second.getAccMutable().assign(first.getResult());
  sum->getResult(0).replaceAllUsesWith(second.getResult());
  return true;
}

/// Are the factors as they are stored? Threads that compute one have more to do than to multiply.
static bool hasStoredFactors(gpu::DotOp dot) {
  return !dot.hasTerm() && dot.getA().getDefiningOp<gpu::LoadOp>() &&
         dot.getB().getDefiningOp<gpu::LoadOp>();
}

namespace {
/// Products that add to one tile, which a loop carries from 0 on.
struct CarriedSum {
  gpu::DotOp first; ///< adds to what is carried
  Operation *last;  ///< gives what is carried on
  unsigned position;

  /// What the loop gives as `value`; nothing if that is used otherwise, or no such sum.
  static std::optional<CarriedSum> of(Value value, scf::ForOp loop) {
    auto result = dyn_cast<OpResult>(value);
    if (!result || result.getOwner() != loop || !value.hasOneUse())
      return std::nullopt;
    unsigned position = result.getResultNumber();
    BlockArgument carried = loop.getRegionIterArg(position);
    if (!isZero(loop.getInitArgs()[position]) || !carried.hasOneUse())
      return std::nullopt;
    // From what is carried on along the only uses to what is yielded.
    Operation *last = *carried.user_begin();
    gpu::DotOp first;
    for (Value sum = carried;; sum = last->getResult(0)) {
      if (!sum.hasOneUse())
        return std::nullopt;
      OpOperand &use = *sum.use_begin();
      Operation *user = use.getOwner();
      if (user->getBlock() != loop.getBody())
        return std::nullopt;
      if (user == loop.getBody()->getTerminator()) {
        if (use.getOperandNumber() != position || !first)
          return std::nullopt;
        return CarriedSum{first, last, position};
      }
      auto dot = dyn_cast<gpu::DotOp>(user);
      if (dot ? dot.getAcc() != sum || !hasStoredFactors(dot) : !isa<arith::NegFOp>(user))
        return std::nullopt;
      if (!first)
        first = dot;
      if (!first)
        return std::nullopt;
      last = user;
    }
  }
};
} // namespace

/// Has what one loop carries as two sums added to one tile.
static bool joinInLoop(Operation *sum) {
  auto loop = sum->getOperand(0).getDefiningOp<scf::ForOp>();
  if (!loop || sum->getOperand(0) == sum->getOperand(1))
    return false;
  std::optional<CarriedSum> left = CarriedSum::of(sum->getOperand(0), loop);
  std::optional<CarriedSum> right = CarriedSum::of(sum->getOperand(1), loop);
  if (!left || !right || !keepsSum(left->first, right->first))
    return false;
  bool isDifference = isa<arith::SubFOp>(sum);
  Type element = elementOf(left->first);
  bool areInThreads =
      element.isF64() || (element.isF32() && left->first.getPrecision() != Precision::TF32);
  if (element != elementOf(right->first) || (isDifference && !areInThreads))
    return false;
  // Small tiles of the matrix unit have registers for both, whose products then run together: in
  // bf16 256 x 1024 x 1024 takes 10.6 us on an H200, and 11.4 with one tile of sums; in tiles of
  // 128 x 64 1024 x 1024 x 1024 takes 13.0, and 12.2.
  auto tile = cast<RankedTensorType>(sum->getResult(0).getType());
  if (!areInThreads && tile.getNumElements() < leastOutputs)
    return false;
  bool isLeftFirst = left->last->isBeforeInBlock(right->first);
  if (!isLeftFirst && !right->last->isBeforeInBlock(left->first))
    return false;
  CarriedSum &before = isLeftFirst ? *left : *right, &behind = isLeftFirst ? *right : *left;
  auto opposite = [&](Operation *place, Value tile) -> Value {
    OpBuilder builder(place);
    return arith::NegFOp::create(builder, sum->getLoc(), tile);
  };
  Operation *yield = loop.getBody()->getTerminator();
  BlockArgument carried = loop.getRegionIterArg(before.position);
  BlockArgument unused = loop.getRegionIterArg(behind.position);
  // Around what is subtracted the sums have the other sign.
  Value start = carried, middle = before.last->getResult(0), end = behind.last->getResult(0);
  if (isDifference && !isLeftFirst) {
    start = opposite(before.first, carried);
    before.first.getAccMutable().assign(start);
    middle = opposite(behind.first, middle);
  } else if (isDifference) {
    middle = opposite(behind.first, middle);
    end = opposite(yield, end);
  }
  behind.first.getAccMutable().assign(middle);
  yield->setOperand(before.position, end);
  yield->setOperand(behind.position, unused);
  sum->getResult(0).replaceAllUsesWith(loop.getResult(before.position));
  return true;
}

void tk::accumulateProducts(gpu::FuncOp func) {
  SmallVector<Operation *> sums;
  func.walk([&](Operation *op) {
    if (isa<arith::AddFOp, arith::AddIOp, arith::SubFOp>(op) &&
        isa<RankedTensorType>(op->getResult(0).getType()))
      sums.push_back(op);
  });
  for (Operation *sum : sums)
    if ((!isa<arith::SubFOp>(sum) && joinInBlock(sum)) || joinInLoop(sum))
      sum->erase();
}
