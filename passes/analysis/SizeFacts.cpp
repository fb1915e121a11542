//===- SizeFacts.cpp - what is known of sizes at compile time -------------===//
#include "passes/analysis/SizeFacts.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/analysis/ScalarCases.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tk;

std::optional<int64_t> tk::getConstantIndex(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

static SizeFact ofConstant(int64_t constant) {
  // Zero is divisible by everything; a large power of two is as good.
  int64_t divisor = constant == 0 ? int64_t(1) << 40 : std::abs(constant);
  return {divisor, constant, constant};
}

static SizeFact ofProduct(const SizeFact &a, const SizeFact &b) {
  constexpr int64_t limit = int64_t(1) << 40;
  SizeFact fact;
  fact.divisor = a.divisor < limit && b.divisor < limit / a.divisor
                     ? a.divisor * b.divisor
                     : std::max(a.divisor, b.divisor);
  if (a.upper && b.upper && *a.upper >= 0 && *b.upper >= 0 && *a.upper < limit &&
      *b.upper < (int64_t(1) << 20))
    fact.upper = *a.upper * *b.upper;
  if (a.exact && b.exact && fact.upper)
    fact.exact = *a.exact * *b.exact;
  return fact;
}

static SizeFact ofQuotient(const SizeFact &a, const SizeFact &b, bool roundsUp = false) {
  SizeFact fact;
  if (b.exact && *b.exact > 0) {
    if (a.divisor % *b.exact == 0)
      fact.divisor = a.divisor / *b.exact;
    if (a.upper && *a.upper >= 0)
      fact.upper = *a.upper / *b.exact + (roundsUp && *a.upper % *b.exact != 0);
    if (a.exact && fact.upper)
      fact.exact = fact.upper;
  } else if (a.upper && *a.upper >= 0) {
    fact.upper = a.upper;
  }
  return fact;
}

int64_t tk::getStrideDivisor(KernelOp kernel) {
  auto divisor = kernel->getParentOp()->getAttrOfType<IntegerAttr>(strideDivisorAttrName);
  return divisor ? divisor.getInt() : 1;
}

/// Is it made of dimensions and constants that are not negative, by operations that keep them so?
static bool isNotNegative(KernelOp kernel, Value value) {
  if (std::optional<int64_t> constant = getConstantIndex(value))
    return *constant >= 0;
  if (auto arg = dyn_cast<BlockArgument>(value))
    return arg.getOwner()->getParentOp() == kernel && arg.getArgNumber() < kernel.getNumDims();
  Operation *op = value.getDefiningOp();
  auto isOperand = [&](unsigned n) { return isNotNegative(kernel, op->getOperand(n)); };
  if (isa<arith::MaxSIOp>(op))
    return isOperand(0) || isOperand(1);
  return isa<arith::AddIOp, arith::MulIOp, FloorDivOp, FloorModOp>(op) && isOperand(0) &&
         isOperand(1);
}

namespace {
/// A value as a sum of multiples of others, in which dimensions of one known size are numbers.
struct LinearForm {
  llvm::MapVector<Value, int64_t> terms;
  int64_t constant = 0;
  bool isExact = true; ///< no number left the range of 64 bits

  void addNumber(int64_t factor, int64_t number) {
    isExact &= !llvm::MulOverflow(factor, number, number) &&
               !llvm::AddOverflow(constant, number, constant);
  }
  void add(KernelOp kernel, Value value, int64_t factor);
};
} // namespace

/// Adds `factor * value`.
void LinearForm::add(KernelOp kernel, Value value, int64_t factor) {
  Operation *op = value.getDefiningOp();
  auto numberOf = [&](unsigned n) { return getSizeFact(kernel, op->getOperand(n)).exact; };
  if (op && isa<arith::AddIOp, arith::SubIOp>(op)) {
    add(kernel, op->getOperand(0), factor);
    return add(kernel, op->getOperand(1), isa<arith::AddIOp>(op) ? factor : -factor);
  }
  if (op && isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return add(kernel, op->getOperand(0), factor);
  if (op && isa<FloorDivOp, arith::DivSIOp>(op) && numberOf(1) == 1)
    return add(kernel, op->getOperand(0), factor);
  if (op && isa<arith::MulIOp>(op))
    for (unsigned n : {0U, 1U})
      if (std::optional<int64_t> number = numberOf(n)) {
        isExact &= !llvm::MulOverflow(factor, *number, factor);
        return add(kernel, op->getOperand(1 - n), factor);
      }
  if (std::optional<int64_t> number = getSizeFact(kernel, value).exact)
    return addNumber(factor, *number);
  isExact &= !llvm::AddOverflow(terms[value], factor, terms[value]);
}

/// What follows from the sum that `value` is: (H + 2 - 3) / 1 + 1 is H.
static SizeFact ofLinearForm(KernelOp kernel, Value value) {
  LinearForm form;
  form.add(kernel, value, 1);
  if (!form.isExact)
    return {};
  SizeFact fact = ofConstant(form.constant);
  if (form.constant == 0)
    fact.divisor = 0;
  for (auto [term, factor] : form.terms) {
    if (factor == 0)
      continue;
    fact.exact.reset();
    SizeFact of = getSizeFact(kernel, term);
    if (std::abs(factor) != 1)
      of = ofProduct(of, ofConstant(std::abs(factor)));
    fact.divisor = std::gcd(fact.divisor, of.divisor);
    if (fact.upper && factor > 0)
      fact.upper = of.upper ? std::optional(*fact.upper + *of.upper) : std::nullopt;
    else if (!isNotNegative(kernel, term))
      fact.upper.reset();
  }
  if (fact.divisor == 0)
    return ofConstant(0);
  if (!fact.exact && fact.upper)
    fact.upper = std::max<int64_t>(*fact.upper, 0);
  return fact;
}

SizeFact tk::getSizeFact(KernelOp kernel, Value value) {
  if (std::optional<int64_t> constant = getConstantIndex(value))
    return ofConstant(*constant);
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    if (arg.getOwner()->getParentOp() != kernel)
      return {};
    if (arg.getArgNumber() >= kernel.getNumDims()) {
      const AssumedInteger assumed = assumedIntegerOf(arg);
      return {assumed.divisor, assumed.most, {}};
    }
    FactAttr fact = kernel.getFact(arg.getArgNumber());
    SizeFact result{fact.getDivisor(), {}, {}};
    if (fact.getUpper() >= 0)
      result.upper = fact.getUpper();
    if (fact.getUpper() > 0 && fact.getDivisor() >= fact.getUpper())
      result.exact = fact.getUpper();
    return result;
  }
  Operation *op = value.getDefiningOp();
  if (isa<gpu::StrideOp>(op))
    return {getStrideDivisor(kernel), {}, {}};
  auto operand = [&](unsigned i) { return getSizeFact(kernel, op->getOperand(i)); };
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return operand(0);
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return ofLinearForm(kernel, value);
  if (isa<arith::MulIOp>(op))
    return ofProduct(operand(0), operand(1));
  if (isa<FloorDivOp, arith::DivSIOp, arith::DivUIOp>(op))
    return ofQuotient(operand(0), operand(1));
  if (isa<arith::CeilDivSIOp>(op))
    return ofQuotient(operand(0), operand(1), /*roundsUp=*/true);
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op)) {
    SizeFact a = operand(0), b = operand(1), fact;
    fact.divisor = std::gcd(a.divisor, b.divisor);
    bool isMin = isa<arith::MinSIOp>(op);
    if (a.upper && b.upper)
      fact.upper = isMin ? std::min(*a.upper, *b.upper) : std::max(*a.upper, *b.upper);
    else if (isMin)
      fact.upper = a.upper ? a.upper : b.upper;
    return fact;
  }
  return {};
}

SmallVector<Value> tk::getExtents(KernelOp kernel, Value tensor) {
  SmallVector<Value> extents;
  if (auto compute = tensor.getDefiningOp<ComputeOp>()) {
    unsigned r = cast<OpResult>(tensor).getResultNumber();
    for (unsigned i : compute.getIndicesOf(r))
      extents.push_back(compute.getExtents()[i]);
    return extents;
  }
  if (auto launch = tensor.getDefiningOp<gpu::LaunchOp>()) {
    unsigned begin = 0, r = cast<OpResult>(tensor).getResultNumber();
    for (unsigned i = 0; i < r; ++i)
      begin += cast<RankedTensorType>(launch.getResult(i).getType()).getRank();
    unsigned rank = cast<RankedTensorType>(tensor.getType()).getRank();
    return llvm::to_vector(launch.getShapes().slice(begin, rank));
  }
  if (BindOp bind = kernel.getBind(tensor))
    llvm::append_range(extents, bind.getExtents());
  return extents;
}
