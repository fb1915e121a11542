//===- MaskOperands.cpp - conditions on the operands of products ----------===//
//
// A sum of products under a condition is no matrix product: the condition may leave an element out
// that is NaN. A condition on the rows or on the columns alone moves into the operand that has
// them. An element of the other operand is then multiplied by 0 where it is left out:
//
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {select p[i, k], (mulf a[i, k], b[k, j]), 0}}
//     =>
//   %m = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {mulf (select p[i, k], a[i, k], 0), b[k, j]}}
//   %c = tk.compute ["i", "j"] {
//     isNaN = cmpf uno m[i, j], m[i, j]
//     again = tk.reduce [sum] ["k"] from 0 to (select isNaN, %K, 0) {the element as it was}
//     select isNaN, again, m[i, j]}
//
// 1. Take a choice against 0 off the element, and its condition apart into conditions that all have
//    to hold. The rest is a product of two operands, each with an index that the other one lacks.
// 2. A condition with an index of one operand alone joins that operand. A condition with indices of
//    neither makes both operands 0: the element is 0 whatever they are. The pattern declines if a
//    condition has indices of both, or if none reads a tensor (tk-restrict-ranges cuts ranges).
// 3. 0 times an infinity or NaN is NaN, and a sum with NaN is NaN. Results that are NaN are
//    therefore computed again, as the program has them. All other results had no such element. If
//    no condition has an index of one operand alone, nothing is computed again.
// 4. The pattern declines if the product and the stored results take longer than the sum as it is,
//    or if sizes are not known.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/OuterIndices.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CoreTiles.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/limits/Splits.h"
#include "passes/tensor/normalize/PadConditions.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <limits>

namespace tk {
#define GEN_PASS_DEF_MASKOPERANDS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-mask-operands";
using namespace limits::mask_operands;

namespace {
using Indices = OuterIndices;

/// A condition that an element has to meet, or must not meet.
struct Condition {
  Value holds;
  bool isInverse;
};

/// An element as a product of two operands under conditions.
struct MaskedProduct {
  Value operands[2];
  SmallVector<Condition> conditions[2]; ///< of each operand
  bool isExact = true;                  ///< no element is multiplied by a 0 that was not there
};

class OperandMasking {
public:
  OperandMasking(KernelOp kernel, int64_t processors, bool always)
      : kernel(kernel), processors(processors), always(always) {}
  bool run(ComputeOp compute, ReduceOp reduce);

private:
  std::optional<MaskedProduct> match(ReduceOp reduce);
  bool pays(ComputeOp compute, ReduceOp reduce, const MaskedProduct &product);
  Value storeProduct(ComputeOp compute, ReduceOp reduce);

  KernelOp kernel;
  int64_t processors;
  bool always;
};
} // namespace

/// Appends what has to hold so that `condition` does.
static void collectConditions(Value condition, SmallVectorImpl<Condition> &conditions) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    collectConditions(both.getLhs(), conditions);
    return collectConditions(both.getRhs(), conditions);
  }
  conditions.push_back({condition, false});
}

/// Takes choices against 0 off `term`.
static Value takeConditions(Value term, SmallVectorImpl<Condition> &conditions) {
  while (auto choice = term.getDefiningOp<arith::SelectOp>()) {
    if (matchPattern(choice.getFalseValue(), m_AnyZeroFloat())) {
      collectConditions(choice.getCondition(), conditions);
      term = choice.getTrueValue();
    } else if (matchPattern(choice.getTrueValue(), m_AnyZeroFloat())) {
      conditions.push_back({choice.getCondition(), true});
      term = choice.getFalseValue();
    } else {
      break;
    }
  }
  return term;
}

std::optional<MaskedProduct> OperandMasking::match(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumAccumulators() != 1 || reduce.getNumIndices() != 1 ||
      reduce.getKind(0) != ReduceKind::Sum || reduce.getPrecision() == Precision::Exact ||
      !reduce.getResult(0).getType().isF32())
    return std::nullopt;
  SmallVector<Condition> conditions;
  Value term = takeConditions(reduce.getYield().getValues()[0], conditions);
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (conditions.empty() || !product || product->getBlock() != reduce.getBlock() ||
      llvm::none_of(conditions, [](const Condition &c) { return readsTensor(c.holds); }))
    return std::nullopt;
  MaskedProduct masked;
  masked.operands[0] = product.getLhs();
  masked.operands[1] = product.getRhs();
  const Indices left = outerIndices(reduce, product.getLhs()),
                right = outerIndices(reduce, product.getRhs());
  const Indices own[] = {without(left, right), without(right, left)};
  if (own[0].empty() || own[1].empty())
    return std::nullopt;
  for (const Condition &condition : conditions) {
    const Indices indices = outerIndices(reduce, condition.holds);
    const bool isOf[] = {meets(indices, own[0]), meets(indices, own[1])};
    if ((isOf[0] && isOf[1]) || !without(without(indices, left), right).empty())
      return std::nullopt;
    for (unsigned side : {0U, 1U})
      if (isOf[side] || !isOf[1 - side])
        masked.conditions[side].push_back(condition);
    masked.isExact &= !isOf[0] && !isOf[1];
  }
  return masked;
}

/// The operand, 0 where a condition leaves it out. A conversion to f32 stays outermost: the matrix
/// unit multiplies operands of 16 bits.
static Value createMasked(OpBuilder &builder, Value operand, ArrayRef<Condition> conditions) {
  if (conditions.empty())
    return operand;
  Location loc = operand.getLoc();
  // Constants are values of the kernel: operands with others are not stored.
  OpBuilder outside(builder.getBlock()->getParentOp()->getParentOfType<ComputeOp>());
  auto extension = operand.getDefiningOp<arith::ExtFOp>();
  Value masked = extension ? extension.getIn() : operand;
  Value zero = arith::ConstantOp::create(outside, loc, builder.getZeroAttr(masked.getType()));
  for (const Condition &condition : conditions) {
    Value kept = condition.isInverse ? zero : masked, left = condition.isInverse ? masked : zero;
    masked = arith::SelectOp::create(builder, loc, condition.holds, kept, left);
  }
  return extension ? arith::ExtFOp::create(builder, loc, operand.getType(), masked) : masked;
}

/// Makes the element of `reduce` the product of masked operands.
static void multiplyMasked(ReduceOp reduce, const MaskedProduct &product) {
  YieldOp yield = reduce.getYield();
  OpBuilder builder(yield);
  Value left = createMasked(builder, product.operands[0], product.conditions[0]);
  Value right = createMasked(builder, product.operands[1], product.conditions[1]);
  yield->setOperand(0, arith::MulFOp::create(builder, yield.getLoc(), left, right));
}

/// Does the product on CUDA cores, with what is stored besides, take less time than the sum as it
/// is? The matrix unit takes less time still.
bool OperandMasking::pays(ComputeOp compute, ReduceOp reduce, const MaskedProduct &product) {
  auto isKnown = [&](Value extent) { return getSizeFact(kernel, extent).upper.has_value(); };
  if (!llvm::all_of(compute.getExtents(), isKnown) || !isKnown(reduce.getUpper()[0]))
    return false;
  const Indices left = outerIndices(reduce, product.operands[0]),
                right = outerIndices(reduce, product.operands[1]);
  double rows = 1, columns = 1, others = 1;
  for (auto [index, extent] :
       llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents())) {
    const bool isLeft = left.contains(index), isRight = right.contains(index);
    (isLeft == isRight ? others : isLeft ? rows : columns) *= guessSize(kernel, extent);
  }
  if (std::min(rows, columns) < leastSide)
    return false;
  const double terms = guessSize(kernel, reduce.getUpper()[0]), results = others * rows * columns;
  double onCores = std::numeric_limits<double>::max();
  for (int64_t cuts = 1; cuts <= mostCuts; cuts *= 2) {
    const double parts = static_cast<double>(cuts);
    const double added =
        cuts == 1 ? 0 : cost::launch + 2 * cost::bytesOfWide * parts * results * cost::byte;
    for (const CoreTile &tile : coreTiles) {
      const double tiles =
          parts * others *
          double(tile.count(static_cast<int64_t>(rows), static_cast<int64_t>(columns)));
      onCores =
          std::min(onCores, added + tile.timeOf(static_cast<int64_t>(tiles),
                                                static_cast<int64_t>(terms / parts), processors));
    }
  }
  // The results are stored, read, and stored again.
  constexpr double bytesOfResult = 3 * cost::bytesOfWide;
  const double stored =
      product.isExact ? 0 : 2 * cost::launch + bytesOfResult * results * cost::byte;
  const double asItIs = terms * std::max(results * cost::termOfCountedTaps, timeOfTerm);
  return savesTime(reduce, "tk-mask-operands", "the product without its mask", asItIs,
                   onCores + stored);
}

/// Stores the sums of `reduce` by a compute op of their own.
Value OperandMasking::storeProduct(ComputeOp compute, ReduceOp reduce) {
  ComputeOp stored = copySum(compute, reduce, ".product");
  ReduceOp copy = *stored.getBlock()->getOps<ReduceOp>().begin();
  multiplyMasked(copy, *match(copy));
  eraseDead(stored);
  return stored->getResult(0);
}

bool OperandMasking::run(ComputeOp compute, ReduceOp reduce) {
  std::optional<MaskedProduct> product = match(reduce);
  if (!product || (!always && !pays(compute, reduce, *product)))
    return false;
  if (product->isExact) {
    note(reduce, passName, Verdict::Derived,
         "the condition of the " + describe(reduce) + " makes both operands 0");
    multiplyMasked(reduce, *product);
    eraseDead(compute);
    return true;
  }
  note(reduce, passName, Verdict::Derived,
       "the condition of the " + describe(reduce) +
           " makes the operand 0 that has its indices; results that are NaN are computed again");
  Value stored = storeProduct(compute, reduce);
  OpBuilder builder(reduce);
  computeNaNAgain(reduce, LoadOp::create(builder, reduce.getLoc(), stored,
                                         compute.getBlock()->getArguments(), Value()));
  return true;
}

namespace {

struct MaskOperands : tk::impl::MaskOperandsBase<MaskOperands> {
  using MaskOperandsBase::MaskOperandsBase;

  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    if (!target)
      return;
    getOperation()->walk([&](KernelOp kernel) {
      OperandMasking masking(kernel, target.getProcessors(), always);
      for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
        for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
          numSums += masking.run(compute, reduce);
    });
  }
};

} // namespace
