//===- JointSums.cpp - products that are added up together -----------------===//
#include "passes/analysis/JointSums.h"

#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace tk {

bool haveEqualRanges(ReduceOp a, ReduceOp b) {
  auto kernel = a->getParentOfType<KernelOp>();
  if (haveSameRanges(a, b))
    return true;
  return a.getNumIndices() == b.getNumIndices() &&
         llvm::all_of(llvm::seq(a.getNumIndices()), [&](unsigned n) {
           SizeFact end = getSizeFact(kernel, a.getUpper()[n]);
           return isZero(a.getLower()[n]) && isZero(b.getLower()[n]) && end.exact &&
                  end.exact == getSizeFact(kernel, b.getUpper()[n]).exact;
         });
}

namespace {
/// The sums that may join one tile.
struct JointSums {
  ReduceOp like;
  bool allowsDifferences;

  explicit JointSums(OpResult sum) : like(sum.getDefiningOp<ReduceOp>()) {
    allowsDifferences = isWideProduct(getOperand(sum), getSumPrecision(like));
  }
  static Type getOperand(OpResult sum) {
    auto reduce = cast<ReduceOp>(sum.getOwner());
    Operation *product = reduce.getYield().getValues()[sum.getResultNumber()].getDefiningOp();
    return withoutExtension(product->getOperand(0)).getType();
  }
  /// Of factors as they are stored: threads that compute a factor have more to do than to multiply,
  /// and sums of their own let them begin earlier.
  static bool isProduct(OpResult sum) {
    auto reduce = dyn_cast<ReduceOp>(sum.getOwner());
    unsigned n = sum.getResultNumber();
    if (!reduce || reduce.getKind(n) != ReduceKind::Sum || !reduce.standsAlone(n))
      return false;
    Operation *product = reduce.getYield().getValues()[n].getDefiningOp();
    return isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product) &&
           llvm::all_of(product->getOperands(), [](Value factor) {
             return withoutExtension(factor).getDefiningOp<LoadOp>() != nullptr;
           });
  }
  bool joins(Operation *op) {
    return op->getBlock() == like->getBlock() &&
           (isa<arith::AddFOp, arith::AddIOp>(op) || (allowsDifferences && isa<arith::SubFOp>(op)));
  }
  bool isPart(Value value) {
    auto result = dyn_cast<OpResult>(value);
    if (!result || !value.hasOneUse())
      return false;
    if (joins(result.getOwner()))
      return isPart(result.getOwner()->getOperand(0)) && isPart(result.getOwner()->getOperand(1));
    return isProduct(result) && result.getOwner()->getBlock() == like->getBlock() &&
           getOperand(result) == getOperand(cast<OpResult>(like->getResult(0))) &&
           haveEqualRanges(cast<ReduceOp>(result.getOwner()), like);
  }
};
} // namespace

Value getJointSum(OpResult sum) {
  if (!JointSums::isProduct(sum) || gpu::isByteFloat(JointSums::getOperand(sum)))
    return sum;
  JointSums sums(sum);
  Value joint = sum;
  while (joint.hasOneUse()) {
    Operation *user = *joint.user_begin();
    if (!sums.joins(user) || !llvm::all_of(user->getOperands(), [&](Value part) {
          return part == joint || sums.isPart(part);
        }))
      break;
    joint = user->getResult(0);
  }
  return joint;
}

std::optional<unsigned> countJointSums(ReduceOp reduce) {
  llvm::SmallDenseSet<Value> sums;
  for (Value value : reduce->getResults()) {
    auto sum = cast<OpResult>(value);
    if (!JointSums::isProduct(sum))
      return std::nullopt;
    sums.insert(getJointSum(sum));
  }
  return sums.size();
}

} // namespace tk
