//===- IntegerOps.cpp - the reference's operations on integers ------------===//
#include "compiler/interp/ScalarOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <algorithm>
#include <cmath>

namespace tk::interp::detail {

static unsigned bits(Width width) {
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

static int64_t floorDiv(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (b == -1)
    return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

int64_t absInteger(int64_t a) { return a < 0 ? floorDiv(a, -1) : a; }

int64_t toInteger(double value, Width to, bool isSigned) {
  const int width = static_cast<int>(bits(to));
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

bool compareIntegers(uint8_t predicate, Width width, int64_t a, int64_t b) {
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

uint32_t philox(uint64_t seed, int64_t n) {
  const auto counter = static_cast<uint64_t>(n >> 2);
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
  return c[n & 3];
}

static int64_t powI(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (; exponent; exponent >>= 1, square *= square)
    if (exponent & 1)
      result *= square;
  return static_cast<int64_t>(result);
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

} // namespace tk::interp::detail
