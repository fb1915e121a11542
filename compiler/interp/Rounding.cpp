//===- Rounding.cpp - widths of the reference's numbers -------------------===//
#include "compiler/interp/Program.h"

#include "tk/dtype.h"

#include <cmath>
#include <limits>

namespace tk::interp::detail {

/// The value that a stored type makes of `value`, rounded once.
static double throughStorage(DType stored, double value) {
  uint16_t element = 0;
  store_from_f64(stored, &element, value);
  return load_as_f64(stored, &element);
}

double roundTo(Width width, double value) {
  switch (width) {
  case Width::F32:
    return static_cast<float>(value);
  case Width::F16:
    return throughStorage(DType::f16, value);
  case Width::BF16:
    return throughStorage(DType::bf16, value);
  case Width::F8E4M3:
    return throughStorage(DType::f8e4m3, value);
  case Width::F8E5M2:
    return throughStorage(DType::f8e5m2, value);
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

} // namespace tk::interp::detail
