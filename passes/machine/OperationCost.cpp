//===- OperationCost.cpp - what an operation of a tile costs --------------===//
#include "passes/machine/OperationCost.h"

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
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

/// Instructions and special functions of one element, as NVRTC's code for f32 has them at about;
/// `<approx>` forms are fewer.
struct FunctionCost {
  double instructions, special, fastInstructions;
};

static const FunctionCost *findFunction(StringRef name) {
  static const llvm::StringMap<FunctionCost> table = {
      {"math.exp", {6, 1, 2}},        {"math.exp2", {4, 1, 1}},
      {"math.log", {10, 1, 2}},       {"math.log2", {9, 1, 1}},
      {"math.log1p", {14, 1, 4}},     {"math.expm1", {14, 1, 6}},
      {"math.tanh", {14, 2, 2}},      {"math.erf", {18, 1, 8}},
      {"math.sin", {26, 0, 4}},       {"math.cos", {26, 0, 4}},
      {"math.sqrt", {8, 1, 2}},       {"math.rsqrt", {4, 1, 1}},
      {"math.powf", {45, 1, 6}},      {"arith.divf", {9, 1, 2}},
      {"tk.div_or_zero", {11, 1, 3}}, {"tk.exp_diff", {7, 1, 2}},
      {"tk.rand", {24, 0, 24}},       {"tkgpu.scaled_exp_diff", {1, 1, 1}},
      {"arith.divsi", {16, 1, 16}},   {"arith.remsi", {18, 1, 18}},
      {"tk.floor_div", {18, 1, 18}},  {"tk.floor_mod", {20, 1, 20}},
      {"arith.remf", {24, 1, 24}},
  };
  auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
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

ElementCost elementCost(Operation *op) {
  if (op->getNumResults() != 1 || isa<arith::ConstantOp>(op))
    return {};
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (element.isIndex() && isa<FloorDivOp, FloorModOp>(op) &&
      isa<RankedTensorType>(op->getResult(0).getType()))
    return {indexDivisionCost(op), 0, 0, 0};
  if (element.isIndex())
    return {0.5, 0, 0, 0}; // most of it is folded into addresses or done once
  const bool isFloat = isa<FloatType>(element);
  if (const FunctionCost *function = findFunction(op->getName().getStringRef())) {
    const double instructions = gpu::hasMode(op, gpu::MathMode::Approx) ? function->fastInstructions
                                                                        : function->instructions;
    if (element.isF64())
      return {0, 3 * instructions, 0, 1};
    return {instructions, 0, function->special, isFloat ? 1.0 : 0.0};
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
  if (isa<arith::CmpFOp, arith::CmpIOp, arith::SelectOp>(op) || !isFloat)
    return {1, 0, 0, 0};
  return {1, 0, 0, isa<math::FmaOp>(op) ? 2.0 : 1.0};
}

} // namespace tk
