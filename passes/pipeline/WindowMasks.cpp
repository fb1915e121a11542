//===- WindowMasks.cpp - masks of a window's tiles ------------------------===//
//
// Each row's terms begin and end one further on than those of the row before. The difference of
// both bounds is the window's length.
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/WindowSteps.h"

#include "passes/analysis/LeastSizes.h"
#include "passes/pipeline/StepMasks.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

#include <numeric>

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Is row i's bound that of row 0 and i, but for a least or greatest value that all have?
static bool risesByOne(Value bound) {
  Operation *op = bound.getDefiningOp();
  if (isa_and_nonnull<IotaOp>(op))
    return true;
  if (!op || op->getNumOperands() != 2)
    return false;
  Value left = op->getOperand(0), right = op->getOperand(1);
  auto isUniform = [](Value value) {
    return splatSource(value) || matchPattern(value, m_Constant());
  };
  if (isa<arith::SubIOp>(op))
    return risesByOne(left) && isUniform(right);
  if (!isa<arith::AddIOp, arith::MaxSIOp, arith::MinSIOp>(op))
    return false;
  return (risesByOne(left) && isUniform(right)) || (isUniform(left) && risesByOne(right));
}

namespace {

/// A sum of integers with factors, and a constant.
struct LinearForm {
  llvm::SmallMapVector<Value, int64_t, 4> factors;
  int64_t constant = 0;

  void add(const LinearForm &other, int64_t factor) {
    for (auto [value, times] : other.factors)
      factors[value] += times * factor;
    constant += other.constant * factor;
  }
};

} // namespace

/// What row 0's bound is but for a least or greatest value: risesByOne(bound).
static LinearForm formOf(Value bound) {
  LinearForm form;
  APInt constant;
  if (matchPattern(bound, m_ConstantInt(&constant))) {
    form.constant = constant.getSExtValue();
    return form;
  }
  DenseElementsAttr splat;
  if (matchPattern(bound, m_Constant(&splat)) && splat.isSplat()) {
    form.constant = splat.getSplatValue<APInt>().getSExtValue();
    return form;
  }
  Operation *op = bound.getDefiningOp();
  if (isa_and_nonnull<IotaOp>(op))
    return form;
  if (Value source = splatSource(bound))
    return formOf(source);
  if (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(op))
    return formOf(op->getOperand(0));
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    form.add(formOf(op->getOperand(0)), 1);
    form.add(formOf(op->getOperand(1)), isa<arith::SubIOp>(op) ? -1 : 1);
    return form;
  }
  if (isa_and_nonnull<arith::MaxSIOp, arith::MinSIOp>(op) && isa<RankedTensorType>(bound.getType()))
    return formOf(op->getOperand(risesByOne(op->getOperand(0)) ? 0 : 1));
  form.factors[bound] = 1;
  return form;
}

std::optional<RowMask> tk::matchMask(scf::IfOp branch, Value scores) {
  if (!isMaskOfEnds(branch) || branch.getNumResults() != 1)
    return std::nullopt;
  RowMask mask;
  mask.branch = branch;
  auto either = branch.getCondition().getDefiningOp<arith::OrIOp>();
  mask.beforeLower = either.getLhs().getDefiningOp<arith::CmpIOp>();
  mask.behindUpper = either.getRhs().getDefiningOp<arith::CmpIOp>();
  auto select = branch.thenYield().getOperand(0).getDefiningOp<arith::SelectOp>();
  if (!select || select.getTrueValue() != scores || branch.elseYield().getOperand(0) != scores ||
      !matchPattern(select.getFalseValue(), m_NegInfFloat()))
    return std::nullopt;
  auto both = select.getCondition().getDefiningOp<arith::AndIOp>();
  if (!both)
    return std::nullopt;
  for (Value side : both->getOperands()) {
    auto compare = side.getDefiningOp<arith::CmpIOp>();
    auto place = compare ? compare.getLhs().getDefiningOp<BroadcastOp>() : BroadcastOp();
    auto bound = compare ? compare.getRhs().getDefiningOp<BroadcastOp>() : BroadcastOp();
    if (!place || !bound || place.getDims() != ArrayRef<int64_t>{1} ||
        bound.getDims() != ArrayRef<int64_t>{0})
      return std::nullopt;
    mask.terms = place.getSource();
    if (compare.getPredicate() == arith::CmpIPredicate::sge)
      mask.lower = bound.getSource();
    else if (compare.getPredicate() == arith::CmpIPredicate::slt)
      mask.upper = bound.getSource();
  }
  return mask.lower && mask.upper && risesByOne(mask.lower) && risesByOne(mask.upper)
             ? std::optional(mask)
             : std::nullopt;
}
bool tk::areWholeSteps(const WindowSteps &window, int64_t least) {
  LinearForm length = formOf(window.mask.upper);
  length.add(formOf(window.mask.lower), -1);
  scf::ForOp tiles = window.tiles;
  auto function = tiles->getParentOfType<FuncOp>();
  auto known = function->getAttrOfType<DenseI64ArrayAttr>(leastSizesAttrName);
  int64_t shortest = length.constant, divisor = length.constant;
  for (auto [value, factor] : length.factors) {
    if (factor == 0)
      continue;
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner()->getParentOp() != function || factor < 0 || !known)
      return false;
    const unsigned number = argument.getArgNumber();
    if (known[number] <= 0)
      return false;
    shortest += factor * known[number];
    divisor = std::gcd(divisor, factor * function.getArgFact(number).getDivisor());
  }
  return divisor % window.rows == 0 && shortest >= least * window.rows;
}
