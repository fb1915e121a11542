//===- AlignSums.cpp - contractions over several indices ------------------===//
//
// A pattern of tk-materialize-operands. A contraction over several indices becomes one loop for
// each index. The innermost loop copies and multiplies its operands as a contraction over one index
// does. If the contiguous axes of the operands are different indices of the sum, one operand must
// be copied element by element, whichever loop is the innermost.
//
// 1. The pattern matches contractions of two loads at bare indices. Each load has all indices of
//    the sum and is contiguous along one of them. The two contiguous indices differ.
// 2. A compute op stores a copy of the smaller operand. In the copy, the contiguous index of the
//    other operand comes last among the sum's indices. The sum's indices stand behind the copy's
//    own index, or before it if no matrix unit computes the contraction. (CUDA cores read vectors
//    of neighbouring rows there.) The copy is made only if it takes less time than it saves.
// 3. The contiguous index becomes the innermost index of the sum.
//
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k", "l"] {a[i, k, l] * b[l, j, k]}}
//     =>
//   %t = tk.compute ["j", "k", "l"] {b[l, j, k]}
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k", "l"] {a[i, k, l] * %t[j, k, l]}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/AlignSums.h"
#include "passes/machine/limits/Operands.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/tensor/normalize/Simplify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:align-sums";
using namespace limits::align_sums;

namespace {

/// A product over several indices, one factor of which is stored once more.
struct ProductOverSeveral {
  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  LoadOp kept, turned;

  static std::optional<ProductOverSeveral> of(KernelOp kernel, ComputeOp compute, ReduceOp reduce);
  bool isPlain(LoadOp factor);
  bool pays();
  double bytesOf(LoadOp factor);
  bool isOwn(Value index) { return cast<BlockArgument>(index).getOwner() == reduce.getBlock(); }
  /// The axes of the stored factor, as axes of the one that there is.
  SmallVector<unsigned> orderOfAxes();
};

} // namespace

/// Is every index of `factor` one of the iteration, each at one axis, along all of which it runs,
/// and is every index of the sum among them, one of these the last?
bool ProductOverSeveral::isPlain(LoadOp factor) {
  SmallVector<Value> extents = getExtents(kernel, factor.getTensor());
  if (factor.getPad() || extents.size() != factor.getIndices().size() || extents.empty() ||
      cast<RankedTensorType>(factor.getTensor().getType()).getElementType() != factor.getType())
    return false;
  llvm::SmallDenseSet<Value> different;
  unsigned own = 0;
  for (auto [index, extent] : llvm::zip_equal(factor.getIndices(), extents)) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (!argument || !different.insert(index).second)
      return false;
    unsigned p = argument.getArgNumber();
    if (argument.getOwner() == reduce.getBlock()) {
      if (p >= reduce.getNumIndices() || !isConstantIntValue(reduce.getLower()[p], 0) ||
          !isSameExtent(reduce.getUpper()[p], extent))
        return false;
      ++own;
    } else if (argument.getOwner() != compute.getBlock() ||
               !isSameExtent(compute.getExtents()[p], extent)) {
      return false;
    }
  }
  return own == reduce.getNumIndices() && isOwn(factor.getIndices().back());
}

double ProductOverSeveral::bytesOf(LoadOp factor) {
  double bytes = factor.getType().getIntOrFloatBitWidth() / 8.0;
  for (Value extent : getExtents(kernel, factor.getTensor()))
    bytes *= guessSize(kernel, extent);
  return bytes;
}

bool ProductOverSeveral::pays() {
  double terms = 1;
  for (ValueRange extents : {ValueRange(compute.getExtents()), ValueRange(reduce.getUpper())})
    for (Value extent : extents)
      terms *= guessSize(kernel, extent);
  Value innermost = reduce.getUpper()[cast<BlockArgument>(kept.getIndices().back()).getArgNumber()];
  return guessSize(kernel, innermost) >= leastInnermost &&
         savesTime(reduce, "tk-materialize-operands:align-sums", "a copy of an operand",
                   cost::savedByAlignedSum * terms,
                   2 * cost::byte * bytesOf(turned) + cost::launch);
}

std::optional<ProductOverSeveral> ProductOverSeveral::of(KernelOp kernel, ComputeOp compute,
                                                         ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumIndices() < 2 || reduce.getNumAccumulators() != 1 ||
      reduce.getKind(0) != ReduceKind::Sum || !isMatrixProduct(reduce))
    return std::nullopt;
  ProductOverSeveral sum{kernel, compute, reduce, {}, {}};
  Operation *multiply = reduce.getYield().getValues()[0].getDefiningOp();
  LoadOp factors[2];
  for (unsigned side : {0, 1}) {
    factors[side] = withoutExtension(multiply->getOperand(side)).getDefiningOp<LoadOp>();
    if (!factors[side] || !sum.isPlain(factors[side]))
      return std::nullopt;
  }
  if (factors[0].getIndices().back() == factors[1].getIndices().back())
    return std::nullopt;
  unsigned side = sum.bytesOf(factors[0]) < sum.bytesOf(factors[1]) ? 0 : 1;
  sum.turned = factors[side], sum.kept = factors[1 - side];
  return sum.pays() ? std::optional(sum) : std::nullopt;
}

SmallVector<unsigned> ProductOverSeveral::orderOfAxes() {
  SmallVector<unsigned> shared, alone, sums;
  unsigned innermost = 0;
  for (auto [axis, index] : llvm::enumerate(turned.getIndices())) {
    if (index == kept.getIndices().back())
      innermost = axis;
    else if (isOwn(index))
      sums.push_back(axis);
    else
      (llvm::is_contained(kept.getIndices(), index) ? shared : alone).push_back(axis);
  }
  sums.push_back(innermost);
  const bool across = isWideProduct(turned.getType(), getSumPrecision(reduce));
  SmallVector<unsigned> axes(shared);
  llvm::append_range(axes, across ? sums : alone);
  llvm::append_range(axes, across ? alone : sums);
  return axes;
}

/// Stores the factor, has it loaded, and makes the index that both lie along the innermost.
static void align(ProductOverSeveral &sum) {
  LoadOp factor = sum.turned;
  SmallVector<unsigned> axes = sum.orderOfAxes();
  Value stored = storePermuted(factor, sum.compute, sum.reduce, axes);
  SmallVector<Value> at;
  for (unsigned axis : axes)
    at.push_back(factor.getIndices()[axis]);
  note(sum.reduce, passName, Verdict::Derived,
       "an operand of the " + describe(sum.reduce) +
           " is stored again, contiguous along the same index as the other operand");
  OpBuilder inner(factor);
  Value element = LoadOp::create(inner, factor.getLoc(), stored, at, Value());
  factor.replaceAllUsesWith(element);
  factor.erase();
  auto innermost = cast<BlockArgument>(sum.kept.getIndices().back());
  if (unsigned last = sum.reduce.getNumIndices() - 1; innermost.getArgNumber() != last)
    moveIndex(sum.reduce, innermost.getArgNumber(), last);
}

unsigned tk::alignSums(KernelOp kernel) {
  unsigned count = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
      if (std::optional<ProductOverSeveral> sum = ProductOverSeveral::of(kernel, compute, reduce)) {
        align(*sum);
        ++count;
      }
  return count;
}
