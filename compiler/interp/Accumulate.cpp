//===- Accumulate.cpp - accumulators of the reference ---------------------===//
//
// The identity of each kind of reduction, its combination with a term, and the sums of a matrix
// unit, which keeps fewer bits than f32.
//
//===----------------------------------------------------------------------===//
#include "compiler/interp/Accumulate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tk::interp::detail {

Cell identity(ReduceKind kind, bool isFloat, Width width) {
  Cell cell{};
  double infinity = std::numeric_limits<double>::infinity();
  auto lowest = [&] {
    switch (width) {
    case Width::I32:
      return static_cast<int64_t>(INT32_MIN);
    case Width::I16:
      return static_cast<int64_t>(INT16_MIN);
    case Width::I8:
      return static_cast<int64_t>(INT8_MIN);
    default:
      return INT64_MIN;
    }
  };
  switch (kind) {
  case ReduceKind::Sum:
    isFloat ? cell.f = 0 : cell.i = 0;
    break;
  case ReduceKind::Prod:
    isFloat ? cell.f = 1 : cell.i = 1;
    break;
  case ReduceKind::Max:
    isFloat ? cell.f = -infinity : cell.i = lowest();
    break;
  case ReduceKind::Min:
    isFloat ? cell.f = infinity : cell.i = -(lowest() + 1);
    break;
  case ReduceKind::Any:
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin:
    cell.i = 0;
    break;
  case ReduceKind::All:
    cell.i = 1;
    break;
  }
  return cell;
}

static double extremum(double a, double b, bool wantMax) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  return wantMax ? (a > b ? a : b) : (a < b ? a : b);
}

double truncateToF32(double value) {
  float nearest = static_cast<float>(value);
  if (std::isfinite(nearest) && std::fabs(nearest) > std::fabs(value))
    nearest = std::nextafter(nearest, 0.0f);
  return nearest;
}

/// The bits behind the first one of the largest summand that a summand keeps (byteTermsOfStep), and
/// that their sum keeps behind its own.
constexpr int bitsOfByteStep = 13;

/// Without the bits of `value` that are too far behind the first one of `largest`.
static double cutBehind(double largest, double value) {
  if (!std::isfinite(largest) || largest == 0)
    return value;
  const double unit = std::ldexp(1.0, std::ilogb(largest) - bitsOfByteStep);
  return std::trunc(value / unit) * unit;
}

double addByteGroup(double accumulator, std::vector<double> &group, bool cutsAccumulator) {
  if (cutsAccumulator)
    group.push_back(accumulator);
  double largest = 0, sum = 0;
  for (double term : group)
    largest = std::max(largest, std::fabs(term));
  for (double term : group)
    sum += cutBehind(largest, term);
  group.clear();
  sum = cutBehind(sum, sum);
  return truncateToF32(cutsAccumulator ? sum : accumulator + sum);
}

Cell combine(ReduceKind kind, bool isFloat, Width width, Rounding *rounding, Cell a, Cell b) {
  Cell r{};
  auto real = [&](double value) { r.f = rounding ? (*rounding)(width, value) : value; };
  auto integer = [&](uint64_t value) { r.i = wrapTo(width, static_cast<int64_t>(value)); };
  switch (kind) {
  case ReduceKind::Sum:
    isFloat ? real(a.f + b.f) : integer(static_cast<uint64_t>(a.i) + static_cast<uint64_t>(b.i));
    break;
  case ReduceKind::Prod:
    isFloat ? real(a.f * b.f) : integer(static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i));
    break;
  case ReduceKind::Max:
    isFloat ? (void)(r.f = extremum(a.f, b.f, true)) : (void)(r.i = a.i > b.i ? a.i : b.i);
    break;
  case ReduceKind::Min:
    isFloat ? (void)(r.f = extremum(a.f, b.f, false)) : (void)(r.i = a.i < b.i ? a.i : b.i);
    break;
  case ReduceKind::Any:
    r.i = (a.i | b.i) & 1;
    break;
  case ReduceKind::All:
    r.i = a.i & b.i & 1;
    break;
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin:
    break;
  }
  return r;
}

bool takesOver(ReduceKind kind, bool isFloat, Cell best, Cell term) {
  if (isFloat) {
    if (std::isnan(best.f))
      return false;
    if (std::isnan(term.f))
      return true;
    return kind == ReduceKind::ArgMax ? term.f > best.f : term.f < best.f;
  }
  return kind == ReduceKind::ArgMax ? term.i > best.i : term.i < best.i;
}

} // namespace tk::interp::detail
