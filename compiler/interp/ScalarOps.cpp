//===- ScalarOps.cpp - arithmetic of the reference ------------------------===//
#include "compiler/interp/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "tk/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tk::interp::detail {

double roundTo(Width width, double value) {
  switch (width) {
  case Width::F32:
    return static_cast<float>(value);
  case Width::F16:
    return f16_to_f32(f32_to_f16(static_cast<float>(value)));
  case Width::BF16:
    return bf16_to_f32(f32_to_bf16(static_cast<float>(value)));
  case Width::F8E4M3:
    return f8e4m3_to_f32(f32_to_f8e4m3(static_cast<float>(value)));
  case Width::F8E5M2:
    return f8e5m2_to_f32(f32_to_f8e5m2(static_cast<float>(value)));
  default:
    return value;
  }
}

static constexpr float infinity = std::numeric_limits<float>::infinity();

void Rounding::seed(uint64_t value) { state = value * 0x9E3779B97F4A7C15; }

double Rounding::operator()(Width width, double value) {
  const double nearest = roundTo(width, value);
  if (state == 0 || width != Width::F32 || nearest == value || !std::isfinite(nearest))
    return nearest;
  const double other =
      std::nextafter(static_cast<float>(nearest), value > nearest ? infinity : -infinity);
  if (!std::isfinite(other))
    return nearest;
  state ^= state << 13; // Marsaglia's xorshift
  state ^= state >> 7;
  state ^= state << 17;
  const double chance = static_cast<double>(state >> 11) * 0x1p-53;
  return chance < (value - nearest) / (other - nearest) ? other : nearest;
}

int64_t wrapTo(Width width, int64_t value) {
  switch (width) {
  case Width::I32:
    return static_cast<int32_t>(value);
  case Width::I16:
    return static_cast<int16_t>(value);
  case Width::I8:
    return static_cast<int8_t>(value);
  case Width::I1:
    return value & 1;
  default:
    return value;
  }
}

namespace {

unsigned bits(Width width) {
  switch (width) {
  case Width::I32:
    return 32;
  case Width::I16:
    return 16;
  case Width::I8:
    return 8;
  case Width::I1:
    return 1;
  default:
    return 64;
  }
}

uint64_t zeroExtend(Width width, int64_t value) {
  unsigned n = bits(width);
  return n == 64 ? static_cast<uint64_t>(value) : static_cast<uint64_t>(value) & ((1ull << n) - 1);
}

double propagatingMax(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

int64_t floorDiv(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (b == -1)
    return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

int64_t truncate(double value, unsigned width, bool isSigned) {
  if (std::isnan(value))
    return 0;
  double low = isSigned ? -std::ldexp(1.0, width - 1) : 0.0;
  double high = std::ldexp(1.0, isSigned ? width - 1 : width);
  if (value <= low)
    return isSigned ? (width == 64 ? INT64_MIN : -(1ll << (width - 1))) : 0;
  if (value >= high)
    return isSigned ? (width == 64 ? INT64_MAX : (1ll << (width - 1)) - 1)
                    : static_cast<int64_t>(width == 64 ? UINT64_MAX : (1ull << width) - 1);
  return isSigned ? static_cast<int64_t>(value)
                  : static_cast<int64_t>(static_cast<uint64_t>(value));
}

bool compareF(uint8_t predicate, double a, double b) {
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

bool compareI(uint8_t predicate, Width width, int64_t a, int64_t b) {
  using P = mlir::arith::CmpIPredicate;
  uint64_t ua = zeroExtend(width, a), ub = zeroExtend(width, b);
  switch (static_cast<P>(predicate)) {
  case P::eq:
    return a == b;
  case P::ne:
    return a != b;
  case P::slt:
    return a < b;
  case P::sle:
    return a <= b;
  case P::sgt:
    return a > b;
  case P::sge:
    return a >= b;
  case P::ult:
    return ua < ub;
  case P::ule:
    return ua <= ub;
  case P::ugt:
    return ua > ub;
  case P::uge:
    return ua >= ub;
  }
  return false;
}

double expDiff(double a, double b) {
  return a == -std::numeric_limits<double>::infinity() ? 0.0 : std::exp(a - b);
}

/// Philox 4x32 with ten rounds: the first word of the block.
uint32_t philox(uint64_t seed, uint64_t counter) {
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  uint32_t c[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0;
    uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1;
    c[1] = static_cast<uint32_t>(p1);
    c[3] = static_cast<uint32_t>(p0);
    c[0] = n0;
    c[2] = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c[0];
}

int64_t powI(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (; exponent; exponent >>= 1, square *= square)
    if (exponent & 1)
      result *= square;
  return static_cast<int64_t>(result);
}

/// Without the mantissa's bits that tf32 has not.
double cutToTf32(double value) {
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
    r = b == 0 ? 0.0 : a / b;
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
  case Code::RoundF:
    r = a;
    return true;
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

bool integerBinary(const Instruction &in, int64_t a, int64_t b, int64_t &r) {
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  uint64_t za = zeroExtend(in.width, a), zb = zeroExtend(in.width, b);
  bool overlong = zb >= bits(in.width);
  switch (in.code) {
  case Code::AddI:
    r = static_cast<int64_t>(ua + ub);
    return true;
  case Code::SubI:
    r = static_cast<int64_t>(ua - ub);
    return true;
  case Code::MulI:
    r = static_cast<int64_t>(ua * ub);
    return true;
  case Code::DivS:
    r = b == 0 ? 0 : b == -1 ? static_cast<int64_t>(0 - ua) : a / b;
    return true;
  case Code::DivU:
    r = zb == 0 ? 0 : static_cast<int64_t>(za / zb);
    return true;
  case Code::RemS:
    r = b == 0 || b == -1 ? 0 : a % b;
    return true;
  case Code::RemU:
    r = zb == 0 ? 0 : static_cast<int64_t>(za % zb);
    return true;
  case Code::FloorDiv:
    r = floorDiv(a, b);
    return true;
  case Code::FloorMod:
    r = b == 0 ? 0 : static_cast<int64_t>(ua - static_cast<uint64_t>(floorDiv(a, b)) * ub);
    return true;
  case Code::CeilDivS:
    r = static_cast<int64_t>(0 - static_cast<uint64_t>(floorDiv(static_cast<int64_t>(0 - ua), b)));
    return true;
  case Code::MaxS:
    r = std::max(a, b);
    return true;
  case Code::MinS:
    r = std::min(a, b);
    return true;
  case Code::MaxU:
    r = za > zb ? a : b;
    return true;
  case Code::MinU:
    r = za < zb ? a : b;
    return true;
  case Code::And:
    r = a & b;
    return true;
  case Code::Or:
    r = a | b;
    return true;
  case Code::Xor:
    r = a ^ b;
    return true;
  case Code::Shl:
    r = overlong ? 0 : static_cast<int64_t>(ua << zb);
    return true;
  case Code::ShrS:
    r = a >> (overlong ? 63 : zb);
    return true;
  case Code::ShrU:
    r = overlong ? 0 : static_cast<int64_t>(za >> zb);
    return true;
  case Code::PowI:
    r = powI(a, b);
    return true;
  default:
    return false;
  }
}

double rounded(const Instruction &in, double value, Rounding &rounding) {
  switch (in.rounds) {
  case Rounds::No:
    return value;
  case Rounds::ToNearest:
    return roundTo(in.width, value);
  case Rounds::Freely:
    return rounding(in.width, value);
  }
}

/// Comparisons, selections and conversions between kinds of number.
void mixed(const Instruction &in, Cell *frame, Rounding &rounding) {
  Cell &to = frame[in.destination];
  auto real = [&](double value) { to.f = rounded(in, value, rounding); };
  switch (in.code) {
  case Code::Constant:
    to = in.constant;
    return;
  case Code::CmpF:
    to.i = compareF(in.predicate, frame[in.a].f, frame[in.b].f);
    return;
  case Code::CmpI:
    to.i = compareI(in.predicate, in.from, frame[in.a].i, frame[in.b].i);
    return;
  case Code::Select:
    to = frame[in.a].i ? frame[in.b] : frame[in.c];
    return;
  case Code::ToSigned:
    to.i = wrapTo(in.width, frame[in.a].i);
    return;
  case Code::ToUnsigned:
    to.i = wrapTo(in.width, static_cast<int64_t>(zeroExtend(in.from, frame[in.a].i)));
    return;
  case Code::SignedToF:
    // A true i1 is minus one in two's complement.
    real(in.from == Width::I1 ? -static_cast<double>(frame[in.a].i)
                              : static_cast<double>(frame[in.a].i));
    return;
  case Code::UnsignedToF:
    real(static_cast<double>(zeroExtend(in.from, frame[in.a].i)));
    return;
  case Code::FToSigned:
    to.i = truncate(frame[in.a].f, bits(in.width), true);
    return;
  case Code::FToUnsigned:
    to.i = wrapTo(in.width, truncate(frame[in.a].f, bits(in.width), false));
    return;
  case Code::IsNaN:
    to.i = std::isnan(frame[in.a].f);
    return;
  case Code::IsInf:
    to.i = std::isinf(frame[in.a].f);
    return;
  case Code::IsFinite:
    to.i = std::isfinite(frame[in.a].f);
    return;
  case Code::AbsI:
    to.i = wrapTo(in.width, frame[in.a].i < 0 ? floorDiv(frame[in.a].i, -1) : frame[in.a].i);
    return;
  case Code::Fma:
    real(std::fma(frame[in.a].f, frame[in.b].f, frame[in.c].f));
    return;
  case Code::FPowI:
    real(std::pow(frame[in.a].f, static_cast<double>(frame[in.b].i)));
    return;
  case Code::Rand:
    to.f =
        (philox(static_cast<uint64_t>(frame[in.a].i), static_cast<uint64_t>(frame[in.b].i)) >> 8) *
        0x1p-24;
    return;
  default:
    return;
  }
}

} // namespace

void executeScalar(const Instruction &in, Cell *frame, Rounding &rounding) {
  double real = 0;
  int64_t integer = 0;
  if (in.code >= Code::AddF && in.code <= Code::CopySign) {
    floatBinary(in, frame[in.a].f, frame[in.b].f, real);
    frame[in.destination].f = rounded(in, real, rounding);
  } else if (floatUnary(in.code, in.a >= 0 ? frame[in.a].f : 0.0, real)) {
    frame[in.destination].f = rounded(in, real, rounding);
  } else if (in.a >= 0 && in.b >= 0 && integerBinary(in, frame[in.a].i, frame[in.b].i, integer)) {
    frame[in.destination].i = wrapTo(in.width, integer);
  } else {
    mixed(in, frame, rounding);
  }
}

} // namespace tk::interp::detail
