//===- OperationCost.cpp - what an operation of a tile costs --------------===//
#include "passes/machine/OperationCost.h"

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuFields.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace tk {

double elementBytes(Type element) {
  return element.isIndex() ? 8 : std::max(element.getIntOrFloatBitWidth() / 8.0, 1.0);
}

double countElements(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? double(tile.getNumElements()) : 1;
}

double countThreadElements(Type type) {
  gpu::LayoutAttr layout = gpu::getLayout(type);
  return layout ? double(layout.getNumRegisters()) * lanesOfWarp * layout.getNumWarps()
                : countElements(type);
}

std::optional<MatrixType> matrixTypeOf(Type operand, bool isRounded) {
  if (operand.isBF16())
    return MatrixType::BFloat;
  if (operand.isF16())
    return MatrixType::Half;
  if (operand.isInteger(8))
    return MatrixType::ByteInteger;
  if (operand.isF64())
    return MatrixType::Double;
  if (operand.isF32())
    return isRounded ? std::optional(MatrixType::TF32) : std::nullopt;
  return isa<FloatType>(operand) ? std::optional(MatrixType::ByteFloat) : std::nullopt;
}

/// Instructions and special functions of one element, and the same of `<approx>` forms. Counted in
/// NVRTC's code of runtime/device for sm_90a, without paths that single elements take.
struct FunctionCost {
  double instructions, special, fastInstructions, fastSpecial;
};

static const FunctionCost *findFunction(StringRef name) {
  static const llvm::StringMap<FunctionCost> table = {
      {"math.exp", {9, 1, 2, 1}},        {"math.exp2", {4, 1, 1, 1}},
      {"math.log", {25, 0, 2, 1}},       {"math.log2", {27, 0, 2, 1}},
      {"math.log1p", {29, 0, 4, 1}},     {"math.expm1", {28, 1, 6, 1}},
      {"math.tanh", {16, 2, 2, 1}},      {"math.erf", {22, 1, 8, 1}},
      {"math.sin", {26, 0, 4, 1}},       {"math.cos", {26, 0, 4, 1}},
      {"math.sqrt", {12, 1, 2, 1}},      {"math.rsqrt", {4, 1, 1, 1}},
      {"math.powf", {100, 1, 6, 1}},     {"arith.divf", {28, 1, 6, 1}},
      {"tk.div_or_zero", {40, 2, 3, 1}}, {"tk.exp_diff", {10, 1, 2, 1}},
      {"tk.rand", {24, 0, 24, 0}},       {"tkgpu.scaled_exp_diff", {1, 1, 1, 1}},
      {"arith.divsi", {16, 1, 16, 1}},   {"arith.remsi", {18, 1, 18, 1}},
      {"tk.floor_div", {18, 1, 18, 1}},  {"tk.floor_mod", {20, 1, 20, 1}},
      {"arith.remf", {24, 1, 24, 1}},
  };
  auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

/// Do all elements that a thread has along an axis share the operand, as the divisor of a row?
static bool isShared(Value operand) {
  return gpu::splatSource(operand) || operand.getDefiningOp<gpu::BroadcastOp>();
}

static Value scalarOf(Value value) {
  Value source = gpu::splatSource(value);
  return source ? source : value;
}

/// The forms of a quotient of floats (compiler/codegen/cuda/EmitScalar.cpp).
static FunctionCost costOfQuotient(arith::DivFOp divide, FunctionCost each) {
  constexpr FunctionCost byReciprocal = {2, 1, 2, 1}, byConstant = {1, 0, 1, 0},
                         byLaunchsNumber = {8, 0, 2, 0}, inverse = {19, 1, 6, 1},
                         byShared = {20, 0, 2, 0};
  if (gpu::hasMode(divide, gpu::MathMode::Reciprocal))
    return byReciprocal;
  APFloat by(0.0f);
  const Value divisor = scalarOf(divide.getRhs());
  if (matchPattern(divisor, m_ConstantFloat(&by)) && by.getExactInverse(nullptr))
    return byConstant;
  auto argument = dyn_cast<BlockArgument>(divisor);
  if (argument && isa<gpu::FuncOp>(argument.getOwner()->getParentOp()) &&
      divide->getParentOfType<scf::ForOp>())
    return byLaunchsNumber;
  if (matchPattern(scalarOf(divide.getLhs()), m_OneFloat()))
    return inverse;
  return isShared(divide.getRhs()) ? byShared : each;
}

/// The cost of a function, without what elements have in common: the reciprocal of a divisor, the
/// logarithm of a base.
static FunctionCost costOfFunction(Operation *op, FunctionCost each) {
  constexpr FunctionCost sharedBase = {52, 0, 3, 1};
  if (auto divide = dyn_cast<arith::DivFOp>(op))
    return costOfQuotient(divide, each);
  return isa<math::PowFOp>(op) && isShared(op->getOperand(0)) ? sharedBase : each;
}

/// Instructions of a conversion: bf16 to f32 is a shift, and two f32 are packed at once.
static double conversionCost(Operation *op) {
  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  Type to = getElementTypeOrSelf(op->getResult(0).getType());
  const unsigned bits = std::min(from.isIndex() ? 64 : from.getIntOrFloatBitWidth(),
                                 to.isIndex() ? 64 : to.getIntOrFloatBitWidth());
  if (isa<arith::ExtFOp>(op))
    return bits == 8 ? 2 : 1;
  if (isa<arith::TruncFOp>(op))
    return bits == 8 ? 2 : 1;
  return isa<arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp>(op) ? 3 : 0.5;
}

/// Instructions of a quotient or remainder of indices of a tile: by a power of two one, by another
/// constant a product with its reciprocal, by a number of the launch the same with more around it.
static double indexDivisionCost(Operation *op) {
  APInt divisor;
  Value one = gpu::splatSource(op->getOperand(1));
  if (matchPattern(one ? one : op->getOperand(1), m_ConstantInt(&divisor)))
    return divisor.isPowerOf2() ? 1 : 4;
  return one ? 8 : 25;
}

/// The cost of an element of a field of packed numbers that is scaled in pairs, all of it with the
/// rounding: a product that puts the bits into place, a mask, a difference and a fused product
/// (runtime/device/fields.cuh).
static std::optional<ElementCost> costOfScaledField(Operation *op) {
  Operation *end = gpu::endOfScaledField(op);
  if (!end)
    return std::nullopt;
  if (end != op)
    return ElementCost{};
  constexpr double ofPair = 4;
  std::optional<gpu::ScaledField> scaled = gpu::matchScaledField(end);
  const bool isExact = getElementTypeOrSelf(end->getResult(0).getType()).isF16() ||
                       !scaled->scale || gpu::isStoredInBF16(scaled->scale);
  return ElementCost{(isExact ? ofPair : ofPair + 1) / 2, 0, 0, 2};
}

ElementCost elementCost(Operation *op) {
  if (op->getNumResults() != 1 || isa<arith::ConstantOp>(op))
    return {};
  if (std::optional<ElementCost> cost = costOfScaledField(op))
    return *cost;
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (element.isIndex() && isa<FloorDivOp, FloorModOp>(op) &&
      isa<RankedTensorType>(op->getResult(0).getType()))
    return {indexDivisionCost(op), 0, 0, 0};
  if (element.isIndex())
    return {0.5, 0, 0, 0}; // most of it is folded into addresses or done once
  const bool isFloat = isa<FloatType>(element);
  if (const FunctionCost *found = findFunction(op->getName().getStringRef())) {
    const FunctionCost function = costOfFunction(op, *found);
    const bool isFast = gpu::hasMode(op, gpu::MathMode::Approx);
    const double instructions = isFast ? function.fastInstructions : function.instructions;
    if (element.isF64())
      return {0, 3 * instructions, 0, 1};
    return {instructions, 0, isFast ? function.fastSpecial : function.special, isFloat ? 1.0 : 0.0};
  }
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect != "arith" && dialect != "math" && dialect != "tk")
    return {};
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp,
          arith::FPToUIOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp>(op))
    return {conversionCost(op), 0, 0, 0};
  // A sign or an absolute value is a part of the instruction that reads it.
  if (isa<arith::BitcastOp, math::AbsFOp, arith::NegFOp>(op) && !element.isF64())
    return {};
  if (element.isF64())
    return {0, 1, 0, 1};
  // A comparison takes another condition along.
  if (element.isInteger(1) && isa<arith::AndIOp, arith::OrIOp>(op))
    return {};
  if (isa<arith::CmpFOp, arith::CmpIOp, arith::SelectOp>(op) || !isFloat)
    return {1, 0, 0, 0};
  return {1, 0, 0, isa<math::FmaOp>(op) ? 2.0 : 1.0};
}

} // namespace tk
