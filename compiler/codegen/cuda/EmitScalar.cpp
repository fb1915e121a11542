//===- EmitScalar.cpp - expressions of elementwise operations -------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/analysis/ValueCopies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tk::cuda {

using Operands = llvm::ArrayRef<std::string>;

static std::string binary(Operands in, llvm::StringRef op) {
  return "(" + in[0] + " " + op.str() + " " + in[1] + ")";
}
static std::string call(llvm::StringRef function, Operands in) {
  return "tk::" + function.str() + "(" + llvm::join(in, ", ") + ")";
}
static bool isSmallFloat(Type type) {
  type = getElementTypeOrSelf(type);
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32;
}

std::string KernelEmitter::unsignedCast(Type type, llvm::StringRef x) {
  type = getElementTypeOrSelf(type);
  const unsigned width =
      type.isIndex() ? func.getIndexBits() : std::max(8u, type.getIntOrFloatBitWidth());
  return "(tk::u" + std::to_string(width) + ")" + x.str();
}

static std::string compareFloats(arith::CmpFPredicate predicate, Operands in) {
  using P = arith::CmpFPredicate;
  std::string unordered = "(" + in[0] + " != " + in[0] + " || " + in[1] + " != " + in[1] + ")";
  switch (predicate) {
  case P::AlwaysFalse:
    return "false";
  case P::AlwaysTrue:
    return "true";
  case P::OEQ:
    return binary(in, "==");
  case P::OGT:
    return binary(in, ">");
  case P::OGE:
    return binary(in, ">=");
  case P::OLT:
    return binary(in, "<");
  case P::OLE:
    return binary(in, "<=");
  case P::UNE:
    return binary(in, "!=");
  case P::ONE:
    return "(" + in[0] + " < " + in[1] + " || " + in[0] + " > " + in[1] + ")";
  case P::UEQ:
    return "!(" + in[0] + " < " + in[1] + " || " + in[0] + " > " + in[1] + ")";
  case P::UGT:
    return "!" + binary(in, "<=");
  case P::UGE:
    return "!" + binary(in, "<");
  case P::ULT:
    return "!" + binary(in, ">=");
  case P::ULE:
    return "!" + binary(in, ">");
  case P::ORD:
    return "!" + unordered;
  case P::UNO:
    return unordered;
  }
  return "false";
}

/// The number of the launch that a loop divides numbers by, if it does; else null.
static Value getConstantDivisor(arith::DivFOp divide) {
  Value divisor = divide.getRhs();
  if (auto broadcast = divisor.getDefiningOp<gpu::BroadcastOp>())
    divisor = broadcast.getSource();
  auto argument = dyn_cast<BlockArgument>(divisor);
  bool isOfLaunch = argument && argument.getType().isF32() &&
                    isa<gpu::FuncOp>(argument.getOwner()->getParentOp());
  return isOfLaunch && divide->getParentOfType<scf::ForOp>() ? divisor : Value();
}

/// A quotient of f32 that is rounded as IEEE 754 has it. Of several registers of a thread the
/// compiler's own would each be a branch, and what is stored of them would be taken apart.
std::string KernelEmitter::quotient(arith::DivFOp divide, Operands in) {
  Value result = divide.getResult();
  if (registersOf(result) == 1 || !getElementTypeOrSelf(result.getType()).isF32())
    return binary(in, "/");
  auto scalarOf = [](Value value) {
    Value source = gpu::splatSource(value);
    return source ? source : value;
  };
  APFloat by(0.0f);
  if (matchPattern(scalarOf(divide.getRhs()), m_ConstantFloat(&by)) && by.getExactInverse(nullptr))
    return binary(in, "/"); // the compiler multiplies by the exact reciprocal
  if (matchPattern(scalarOf(divide.getLhs()), m_OneFloat()))
    return call("inverse", in.drop_front());
  return call("divide", in);
}

/// A quotient of f32 within 2 ulp. Several registers over one number are products with its
/// reciprocal.
std::string KernelEmitter::approximateQuotient(arith::DivFOp divide, Operands in) {
  if (registersOf(divide.getResult()) > 1 && gpu::splatSource(divide.getRhs()))
    return call("divide_approx", {in[0], call("ApproxDivisor", in[1])});
  return call("divide_approx", in);
}

std::string KernelEmitter::divisor(const std::string &argument) {
  std::string &name = hoistedNames[argument + " as a divisor"];
  if (name.empty()) {
    name = used.fresh("divisor", /*ofFunction=*/true);
    prologue += "  const tk::Divisor " + name + "(" + argument + ");\n";
  }
  return name;
}

/// The quotient or remainder of several indices of a thread by one of the launch's numbers, by what
/// their divisions have in common; nothing for others.
std::optional<std::string> KernelEmitter::dividedIndex(Operation *op, Operands in) {
  constexpr unsigned fewest = 4; // what they have in common takes as long as two divisions
  Value result = op->getResult(0), by = gpu::splatSource(op->getOperand(1));
  auto argument = dyn_cast_or_null<BlockArgument>(by);
  if (!argument || !isa<gpu::FuncOp>(argument.getOwner()->getParentOp()) ||
      !getElementTypeOrSelf(result.getType()).isIndex() ||
      typeName(getElementTypeOrSelf(result.getType())) != "int" || registersOf(result) < fewest)
    return std::nullopt;
  std::string &name = hoistedNames[names.lookup(by) + " as an index's divisor"];
  if (name.empty()) {
    name = used.fresh("divisor", /*ofFunction=*/true);
    prologue += "  const tk::IndexDivisor " + name + "(" + names.lookup(by) + ");\n";
  }
  return call(isa<FloorModOp>(op) ? "floor_mod" : "floor_div", {in[0], name});
}

/// Which power of 2 a division divides by, if it is a known one: a shift and a mask then say more
/// of the result than a division that rounds down, such as which of its bits are 0.
static std::optional<unsigned> powerOfDivisor(Operation *op) {
  APInt divisor;
  if (!isa<arith::FloorDivSIOp, FloorDivOp, FloorModOp>(op) ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) || !divisor.isPowerOf2() ||
      divisor.isNegative())
    return std::nullopt;
  constexpr unsigned bitsOfMask = 30;
  return divisor.logBase2() <= bitsOfMask ? std::optional(divisor.logBase2()) : std::nullopt;
}

std::optional<std::string> KernelEmitter::arithExpression(Operation *op, Operands in) {
  Type result = getElementTypeOrSelf(op->getResult(0).getType());
  auto narrow = [&](const std::string &text) { // C++ promotes small integers
    const bool small = result.isInteger(8) || result.isInteger(16);
    return small ? "(" + typeName(result) + ")" + text : text;
  };
  auto onUnsigned = [&](llvm::StringRef sign) {
    Type type = op->getOperand(0).getType();
    return binary({unsignedCast(type, in[0]), unsignedCast(type, in[1])}, sign);
  };
  // Integer values wrap around, which C++ defines for unsigned ones only; an index never overflows,
  // and the compiler may use that.
  auto wrapping = [&](llvm::StringRef sign) {
    if (result.isInteger(32) || result.isInteger(64))
      return "(" + typeName(result) + ")" + onUnsigned(sign);
    return narrow(binary(in, sign));
  };
  const std::optional<unsigned> power = powerOfDivisor(op);
  return llvm::TypeSwitch<Operation *, std::optional<std::string>>(op)
      .Case<arith::AddIOp>(
          [&](auto) { return result.isInteger(1) ? binary(in, "!=") : wrapping("+"); })
      .Case<arith::SubIOp>(
          [&](auto) { return result.isInteger(1) ? binary(in, "!=") : wrapping("-"); })
      .Case<arith::MulIOp>(
          [&](auto) { return result.isInteger(1) ? binary(in, "&&") : wrapping("*"); })
      .Case<arith::DivSIOp>([&](auto) { return narrow(binary(in, "/")); })
      .Case<arith::RemSIOp>([&](auto) { return narrow(binary(in, "%")); })
      .Case<arith::DivUIOp>([&](auto) { return "(" + typeName(result) + ")" + onUnsigned("/"); })
      .Case<arith::RemUIOp>([&](auto) { return "(" + typeName(result) + ")" + onUnsigned("%"); })
      .Case<arith::FloorDivSIOp, FloorDivOp>([&](auto) {
        if (std::optional<std::string> index = dividedIndex(op, in))
          return *index;
        return power ? narrow(binary({in[0], std::to_string(*power)}, ">>"))
                     : "tk::floor_div<" + typeName(result) + ">(" + in[0] + ", " + in[1] + ")";
      })
      .Case<arith::CeilDivSIOp>([&](auto) {
        return "(-tk::floor_div<" + typeName(result) + ">(-" + in[0] + ", " + in[1] + "))";
      })
      .Case<FloorModOp>([&](auto) {
        if (std::optional<std::string> index = dividedIndex(op, in))
          return *index;
        return power ? narrow(binary({in[0], std::to_string((1 << *power) - 1)}, "&"))
                     : "tk::floor_mod<" + typeName(result) + ">(" + in[0] + ", " + in[1] + ")";
      })
      .Case<arith::AndIOp>(
          [&](auto) { return narrow(binary(in, result.isInteger(1) ? "&&" : "&")); })
      .Case<arith::OrIOp>(
          [&](auto) { return narrow(binary(in, result.isInteger(1) ? "||" : "|")); })
      .Case<arith::XOrIOp>(
          [&](auto) { return narrow(binary(in, result.isInteger(1) ? "!=" : "^")); })
      .Case<arith::ShLIOp>([&](auto) {
        return "tk::shift_left<" + typeName(result) + ">(" + in[0] + ", " + in[1] + ")";
      })
      .Case<arith::ShRSIOp>([&](auto) {
        return "tk::shift_right<" + typeName(result) + ">(" + in[0] + ", " + in[1] + ")";
      })
      .Case<arith::ShRUIOp>([&](auto) {
        const std::string type = unsignedCast(result, "");
        return "(" + typeName(result) + ")tk::shift_right(" + type + in[0] + ", " + type + in[1] +
               ")";
      })
      .Case<arith::MaxSIOp>([&](auto) {
        return "tk::maximum<" + typeName(result) + ">(" + in[0] + ", " + in[1] + ")";
      })
      .Case<arith::MinSIOp>([&](auto) {
        return "tk::minimum<" + typeName(result) + ">(" + in[0] + ", " + in[1] + ")";
      })
      .Case<arith::MaxUIOp, arith::MinUIOp>([&](auto) {
        return "(" + onUnsigned(isa<arith::MaxUIOp>(op) ? ">" : "<") + " ? " + in[0] + " : " +
               in[1] + ")";
      })
      .Case([&](arith::CmpIOp compare) -> std::optional<std::string> {
        using P = arith::CmpIPredicate;
        switch (compare.getPredicate()) {
        case P::eq:
          return binary(in, "==");
        case P::ne:
          return binary(in, "!=");
        case P::slt:
          return binary(in, "<");
        case P::sle:
          return binary(in, "<=");
        case P::sgt:
          return binary(in, ">");
        case P::sge:
          return binary(in, ">=");
        case P::ult:
          return onUnsigned("<");
        case P::ule:
          return onUnsigned("<=");
        case P::ugt:
          return onUnsigned(">");
        case P::uge:
          return onUnsigned(">=");
        }
        return std::nullopt;
      })
      .Case([&](arith::CmpFOp compare) {
        if (!gpu::getRandom(compare))
          return compareFloats(compare.getPredicate(), in);
        const bool isFirst = compare.getPredicate() == arith::CmpFPredicate::OLT;
        return call("drawn_below", {in[isFirst ? 0 : 1], in[isFirst ? 1 : 0]});
      })
      .Case<arith::AddFOp>([&](auto) { return binary(in, "+"); })
      .Case<arith::SubFOp>([&](auto) { return binary(in, "-"); })
      .Case<arith::MulFOp>([&](auto product) {
        return gpu::isRescaledSum(product)                     ? call("rescaled", in)
               : gpu::hasMode(product, gpu::MathMode::Rounded) ? call("multiply", in)
                                                               : binary(in, "*");
      })
      .Case<arith::DivFOp>([&](auto divide) {
        return gpu::hasMode(divide, gpu::MathMode::Reciprocal) ? call("divide_by_reciprocal", in)
               : gpu::hasMode(divide, gpu::MathMode::Approx)   ? approximateQuotient(divide, in)
               : getConstantDivisor(divide)
                   ? "tk::divide(" + in[0] + ", " +
                         divisor(names.lookup(getConstantDivisor(divide))) + ")"
                   : quotient(divide, in);
      })
      .Case<arith::RemFOp>([&](auto) { return call("mod", in); })
      .Case<arith::NegFOp>([&](auto) { return "(-" + in[0] + ")"; })
      .Case<arith::MaximumFOp>([&](auto) { return call("maximum", in); })
      .Case<arith::MinimumFOp>([&](auto) { return call("minimum", in); })
      .Case<arith::MaxNumFOp>([&](auto) { return call("max_number", in); })
      .Case<arith::MinNumFOp>([&](auto) { return call("min_number", in); })
      .Case<arith::SelectOp>(
          [&](auto) { return "(" + in[0] + " ? " + in[1] + " : " + in[2] + ")"; })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<std::string> KernelEmitter::castExpression(Operation *op, Operands in) {
  if (!isa<CastOpInterface>(op) || op->getNumOperands() != 1 || op->getNumResults() != 1)
    return std::nullopt;
  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  Type to = getElementTypeOrSelf(op->getResult(0).getType());
  const std::string type = typeName(to);
  auto plain = [&](const std::string &x) { return "(" + type + ")" + x; };
  auto fromFloat = [&](const std::string &x) {
    return isSmallFloat(to) ? "tk::from_float<" + type + ">(" + x + ")" : plain(x);
  };
  const bool isNarrowInteger = from.isInteger(8) || from.isInteger(16);
  auto fromInteger = [&](const std::string &x) {
    const std::string value = "tk::to_float(" + x + ")";
    return to.isF32() ? value : fromFloat(value);
  };
  const bool isShifted = from.isBF16() && holdsProducts;
  const std::string toFloat = isShifted ? "tk::shifted_to_float(" : "tk::to_float(";
  const std::string wide = isSmallFloat(from) ? toFloat + in[0] + ")" : in[0];
  return llvm::TypeSwitch<Operation *, std::optional<std::string>>(op)
      .Case<arith::ExtFOp>([&](auto) {
        if (isSmallFloat(to))
          return fromFloat(wide);
        return to.isF64() ? plain(wide) : wide;
      })
      .Case<arith::TruncFOp>([&](auto) {
        return from.isF64() ? "tk::from_double<" + type + ">(" + in[0] + ")" : fromFloat(wide);
      })
      .Case<arith::SIToFPOp>([&](auto) {
        // What f32 holds is rounded once.
        if (isNarrowInteger && !to.isF64())
          return fromInteger(in[0]);
        if (isSmallFloat(to))
          return "tk::from_double<" + type + ">((double)" + in[0] + ")";
        return plain(from.isInteger(1) ? "-(int)" + in[0] : in[0]);
      })
      .Case<arith::UIToFPOp>([&](auto) {
        const std::string x = from.isInteger(1) ? in[0] : unsignedCast(from, in[0]);
        if (isNarrowInteger && !to.isF64())
          return fromInteger(x);
        if (isSmallFloat(to))
          return "tk::from_double<" + type + ">((double)" + x + ")";
        return plain(x);
      })
      .Case<arith::FPToSIOp>([&](auto) { return "tk::to_integer<" + type + ">(" + wide + ")"; })
      .Case<arith::FPToUIOp>([&](auto) {
        return plain("tk::to_integer<" +
                     unsignedCast(to, "").substr(1, unsignedCast(to, "").size() - 2) + ">(" + wide +
                     ")");
      })
      .Case<arith::TruncIOp>(
          [&](auto) { return to.isInteger(1) ? "((" + in[0] + " & 1) != 0)" : plain(in[0]); })
      .Case<arith::ExtSIOp>(
          [&](auto) { return from.isInteger(1) ? plain("-(int)" + in[0]) : plain(in[0]); })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>(
          [&](auto) { return plain(from.isInteger(1) ? in[0] : unsignedCast(from, in[0])); })
      .Case<arith::IndexCastOp>(
          [&](auto) { return from.isInteger(1) ? plain("-(int)" + in[0]) : plain(in[0]); })
      .Case<arith::BitcastOp>([&](auto) -> std::optional<std::string> {
        if (from.isF32() || from.isF64())
          return plain("tk::as_bits(" + in[0] + ")");
        if (to.isF32())
          return "tk::as_float(" + in[0] + ")";
        if (to.isF64())
          return "tk::as_double(" + in[0] + ")";
        if (from == to)
          return in[0];
        if (isSmallFloat(from))
          return plain("(" + in[0] + ").bits");
        return type + "{(tk::u" + std::to_string(to.getIntOrFloatBitWidth()) + ")" + in[0] + "}";
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<std::string> KernelEmitter::expression(Operation *op, Operands in) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0)
    return std::nullopt;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return literal(constant.getValue());
  if (auto cast = castExpression(op, in))
    return cast;
  // Arithmetic on small floats happens in float, and is rounded once.
  Type result = getElementTypeOrSelf(op->getResult(0).getType());
  llvm::SmallVector<std::string> wide(in.begin(), in.end());
  const bool isSelect = isa<arith::SelectOp>(op);
  if (!isSelect)
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (isSmallFloat(operand.getType()))
        wide[i] = "tk::to_float(" + wide[i] + ")";
  std::optional<std::string> value = arithExpression(op, wide);
  if (!value)
    value = mathExpression(op, wide);
  if (value && isSmallFloat(result) && !isSelect)
    return "tk::from_float<" + typeName(result) + ">(" + *value + ")";
  return value;
}

} // namespace tk::cuda
