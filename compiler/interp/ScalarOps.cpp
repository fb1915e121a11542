//===- ScalarOps.cpp - one scalar instruction of the reference ------------===//
#include "compiler/interp/ScalarOps.h"

#include <cmath>

namespace tk::interp::detail {

namespace {

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
    to.i = compareFloats(in.predicate, frame[in.a].f, frame[in.b].f);
    return;
  case Code::CmpI:
    to.i = compareIntegers(in.predicate, in.from, frame[in.a].i, frame[in.b].i);
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
    if (in.width == Width::F32 && in.rounds != Rounds::No && in.from != Width::I1) {
      to.f = static_cast<float>(frame[in.a].i); // an f64 would round an i64 first
      return;
    }
    // A true i1 is minus one in two's complement.
    real(in.from == Width::I1 ? -static_cast<double>(frame[in.a].i)
                              : static_cast<double>(frame[in.a].i));
    return;
  case Code::UnsignedToF:
    real(static_cast<double>(zeroExtend(in.from, frame[in.a].i)));
    return;
  case Code::FToSigned:
    to.i = toInteger(frame[in.a].f, in.width, true);
    return;
  case Code::FToUnsigned:
    to.i = wrapTo(in.width, toInteger(frame[in.a].f, in.width, false));
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
    to.i = wrapTo(in.width, absInteger(frame[in.a].i));
    return;
  case Code::Fma:
    real(std::fma(frame[in.a].f, frame[in.b].f, frame[in.c].f));
    return;
  case Code::FPowI:
    real(std::pow(frame[in.a].f, static_cast<double>(frame[in.b].i)));
    return;
  case Code::Rand:
    to.f = (philox(static_cast<uint64_t>(frame[in.a].i), frame[in.b].i) >> 8) * 0x1p-24;
    return;
  default:
    return;
  }
}

} // namespace

void executeScalar(const Instruction &in, Cell *frame, Rounding &rounding) {
  double real = 0;
  int64_t integer = 0;
  switch (in.code) { // most instructions are one of these
  case Code::AddF:
    frame[in.destination].f = rounded(in, frame[in.a].f + frame[in.b].f, rounding);
    return;
  case Code::MulF:
    if (in.cutsFactors)
      break;
    frame[in.destination].f = rounded(in, frame[in.a].f * frame[in.b].f, rounding);
    return;
  case Code::RoundF:
    frame[in.destination].f = rounded(in, frame[in.a].f, rounding);
    return;
  case Code::AddI:
    integer = static_cast<int64_t>(static_cast<uint64_t>(frame[in.a].i) +
                                   static_cast<uint64_t>(frame[in.b].i));
    frame[in.destination].i = wrapTo(in.width, integer);
    return;
  case Code::And:
    frame[in.destination].i = wrapTo(in.width, frame[in.a].i & frame[in.b].i);
    return;
  default:
    break;
  }
  if (in.code >= Code::AddF && in.code <= Code::CopySign) {
    floatBinary(in, frame[in.a].f, frame[in.b].f, real);
    frame[in.destination].f = rounded(in, real, rounding);
  } else if (in.code >= Code::NegF && in.code <= Code::Trunc) {
    floatUnary(in.code, frame[in.a].f, real);
    frame[in.destination].f = rounded(in, real, rounding);
  } else if (((in.code >= Code::AddI && in.code <= Code::ShrU) || in.code == Code::PowI) &&
             integerBinary(in, frame[in.a].i, frame[in.b].i, integer)) {
    frame[in.destination].i = wrapTo(in.width, integer);
  } else {
    mixed(in, frame, rounding);
  }
}

} // namespace tk::interp::detail
