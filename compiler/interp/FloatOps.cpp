//===- FloatOps.cpp - the reference's operations on floats ----------------===//
#include "compiler/interp/ScalarOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tk::interp::detail {

static double propagatingMax(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

static double expDiff(double a, double b) {
  return a == -std::numeric_limits<double>::infinity() ? 0.0 : std::exp(a - b);
}

/// Without the mantissa's bits that tf32 has not.
static double cutToTf32(double value) {
  if (!std::isfinite(value))
    return value;
  constexpr uint32_t lost = (1u << 13) - 1;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(value)) & ~lost);
}

bool floatBinary(const Instruction &in, double a, double b, double &r) {
  switch (in.code) {
  case Code::AddF:
    r = a + b;
    return true;
  case Code::SubF:
    r = a - b;
    return true;
  case Code::MulF:
    r = in.cutsFactors ? cutToTf32(a) * cutToTf32(b) : a * b;
    return true;
  case Code::DivF:
    r = a / b;
    return true;
  case Code::RemF:
    r = std::fmod(a, b);
    return true;
  case Code::MaximumF:
    r = propagatingMax(a, b);
    return true;
  case Code::MinimumF:
    r = -propagatingMax(-a, -b);
    return true;
  case Code::MaxNumF:
    r = std::fmax(a, b);
    return true;
  case Code::MinNumF:
    r = std::fmin(a, b);
    return true;
  case Code::PowF:
    r = std::pow(a, b);
    return true;
  case Code::ExpDiff:
    r = expDiff(a, b);
    return true;
  case Code::DivOrZero:
    r = b == 0 ? a : a / b;
    return true;
  case Code::CopySign:
    r = std::copysign(a, b);
    return true;
  default:
    return false;
  }
}

bool floatUnary(Code code, double a, double &r) {
  switch (code) {
  case Code::NegF:
    r = -a;
    return true;
  case Code::Exp:
    r = std::exp(a);
    return true;
  case Code::Exp2:
    r = std::exp2(a);
    return true;
  case Code::ExpM1:
    r = std::expm1(a);
    return true;
  case Code::Log:
    r = std::log(a);
    return true;
  case Code::Log2:
    r = std::log2(a);
    return true;
  case Code::Log10:
    r = std::log10(a);
    return true;
  case Code::Log1p:
    r = std::log1p(a);
    return true;
  case Code::Sqrt:
    r = std::sqrt(a);
    return true;
  case Code::Rsqrt:
    r = 1.0 / std::sqrt(a);
    return true;
  case Code::Cbrt:
    r = std::cbrt(a);
    return true;
  case Code::Tanh:
    r = std::tanh(a);
    return true;
  case Code::Erf:
    r = std::erf(a);
    return true;
  case Code::Sin:
    r = std::sin(a);
    return true;
  case Code::Cos:
    r = std::cos(a);
    return true;
  case Code::Tan:
    r = std::tan(a);
    return true;
  case Code::AbsF:
    r = std::fabs(a);
    return true;
  case Code::Floor:
    r = std::floor(a);
    return true;
  case Code::Ceil:
    r = std::ceil(a);
    return true;
  case Code::Round:
    r = std::round(a);
    return true;
  case Code::RoundEven:
    r = std::nearbyint(a);
    return true;
  case Code::Trunc:
    r = std::trunc(a);
    return true;
  default:
    return false;
  }
}

bool compareFloats(uint8_t predicate, double a, double b) {
  using P = mlir::arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (static_cast<P>(predicate)) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::OEQ:
    return a == b;
  case P::OGT:
    return a > b;
  case P::OGE:
    return a >= b;
  case P::OLT:
    return a < b;
  case P::OLE:
    return a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::ORD:
    return !unordered;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UNE:
    return unordered || a != b;
  case P::UNO:
    return unordered;
  }
  return false;
}

} // namespace tk::interp::detail
