//===- EmitMath.cpp - mathematical functions ------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

static llvm::StringRef primitiveName(Operation *op) {
  return llvm::TypeSwitch<Operation *, llvm::StringRef>(op)
      .Case<math::ExpOp>(
          [](auto o) { return gpu::hasMode(o, gpu::MathMode::Approx) ? "exp_approx" : "exp"; })
      .Case<math::Exp2Op>(
          [](auto o) { return gpu::hasMode(o, gpu::MathMode::Approx) ? "exp2_approx" : "exp2"; })
      .Case<math::ExpM1Op>([](auto) { return "expm1"; })
      .Case<math::LogOp>([](auto) { return "log"; })
      .Case<math::Log2Op>([](auto) { return "log2"; })
      .Case<math::Log10Op>([](auto) { return "log10"; })
      .Case<math::Log1pOp>([](auto) { return "log1p"; })
      .Case<math::SqrtOp>([](auto) { return "sqrt"; })
      .Case<math::RsqrtOp>([](auto) { return "rsqrt"; })
      .Case<math::TanhOp>(
          [](auto o) { return gpu::hasMode(o, gpu::MathMode::Approx) ? "tanh_approx" : "tanh"; })
      .Case<math::TanOp>([](auto) { return "tan"; })
      .Case<math::ErfOp>(
          [](auto o) { return gpu::hasMode(o, gpu::MathMode::Approx) ? "erf_approx" : "erf"; })
      .Case<math::SinOp>([](auto) { return "sin"; })
      .Case<math::CosOp>([](auto) { return "cos"; })
      .Case<math::FloorOp>([](auto) { return "floor"; })
      .Case<math::CeilOp>([](auto) { return "ceil"; })
      .Case<math::TruncOp>([](auto) { return "trunc"; })
      .Case<math::RoundOp>([](auto) { return "round"; })
      .Case<math::RoundEvenOp>([](auto) { return "round_even"; })
      .Case<math::AbsFOp>([](auto) { return "abs"; })
      .Case<math::AbsIOp>([](auto) { return "abs_integer"; })
      .Case<math::PowFOp>([](auto) { return "pow"; })
      .Case<math::IPowIOp, math::FPowIOp>([](auto) { return "pow_integer"; })
      .Case<math::CopySignOp>([](auto) { return "copysign"; })
      .Case<math::FmaOp>([](auto) { return "fma"; })
      .Case<ExpDiffOp>([](auto o) {
        return !gpu::hasMode(o, gpu::MathMode::Approx)   ? "exp_diff"
               : gpu::hasMode(o, gpu::MathMode::Rescale) ? "rescale_approx"
               : gpu::hasMode(o, gpu::MathMode::Wide)    ? "wide_exp_diff"
                                                         : "exp_diff_approx";
      })
      .Case<gpu::ScaledExpDiffOp>([](auto o) {
        return gpu::hasMode(o, gpu::MathMode::Rescale) ? "scaled_rescale" : "scaled_exp_diff";
      })
      .Case<gpu::ScaledExponentOp>([](auto) { return "scaled_exponent"; })
      .Case<DivOrZeroOp>([](auto o) {
        return gpu::hasMode(o, gpu::MathMode::Approx) && getElementTypeOrSelf(o.getType()).isF32()
                   ? "div_or_zero_approx"
                   : "div_or_zero";
      })
      .Case<RandOp>([](auto) { return "philox_uniform"; })
      .Default([](Operation *) { return ""; });
}

std::optional<std::string> KernelEmitter::mathExpression(Operation *op,
                                                         llvm::ArrayRef<std::string> in) {
  if (isa<math::IsNaNOp>(op))
    return "(" + in[0] + " != " + in[0] + ")";
  if (isa<math::IsInfOp>(op))
    return "(tk::abs(" + in[0] + ") == tk::infinity())";
  if (isa<math::IsFiniteOp>(op))
    return "(tk::abs(" + in[0] + ") < tk::infinity())";
  const llvm::StringRef name = primitiveName(op);
  if (name.empty())
    return std::nullopt;
  std::string arguments = llvm::join(in, ", ");
  if (auto weight = dyn_cast<gpu::ScaledExpDiffOp>(op); weight && weight.getPower() != 0)
    arguments += ", " + std::to_string(weight.getPower());
  if (auto exponent = dyn_cast<gpu::ScaledExponentOp>(op); exponent && exponent.getPower() != 0)
    arguments += ", " + std::to_string(exponent.getPower());
  return "tk::" + name.str() + "(" + arguments + ")";
}

LogicalResult KernelEmitter::emitNeighbours(RandOp rand) {
  const Value value = rand.getResult();
  const auto count = static_cast<unsigned>(gpu::getRandom(rand).getNeighbours());
  const bool areWords = gpu::getRandom(rand).getWords();
  std::string name;
  if (areWords) {
    name = names[value] = nameFor(value);
    line("tk::u32 " + name + "[" + llvm::Twine(registersOf(value)) + "];");
  } else {
    name = declare(value);
  }
  const RegisterIndex reg("r", registerBits(value), llvm::Log2_32(count));
  line(loopHeader(registersOf(value), count) + " tk::" +
       (areWords ? "philox_words<" : "philox_neighbours<") + llvm::Twine(count) + ">(&" + name +
       "[r], " + (isTile(rand.getSeed()) ? element(rand.getSeed(), reg) : scalar(rand.getSeed())) +
       ", " + element(rand.getN(), reg) + ");");
  return success();
}

} // namespace tk::cuda
