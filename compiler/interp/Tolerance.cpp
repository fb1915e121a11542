//===- Tolerance.cpp - is a result right? ---------------------------------===//
#include "compiler/interp/Tolerance.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>

using namespace mlir;

namespace tk::interp {
namespace {

/// Other roundings of the naive program that are tried where its own bound does not hold.
constexpr unsigned otherDraws = 8;

/// One row of the table of tolerances.
struct Row {
  double rtol, atol, meanSquare, ulp;
  bool atolGrowsWithLength;
};

Row rowFor(DType type) {
  switch (type) {
  case DType::f64:
    return {1e-12, 1e-12, 1e-20, 0x1p-52, true};
  case DType::f16:
    return {1e-3, 1e-3, 1e-6, 0x1p-10, false};
  case DType::bf16:
    return {1.6e-2, 8e-3, 4e-5, 0x1p-7, false};
  case DType::f8e4m3:
    return {0.125, 0.0625, 5e-3, 0x1p-3, false};
  case DType::f8e5m2:
    return {0.25, 0.125, 2e-2, 0x1p-2, false};
  default:
    return {1.3e-6, 2.5e-6, 1e-10, 0x1p-23, true};
  }
}

/// Of f32 from products in tf32, which has the mantissa of f16, or from sums of 14 bits.
Row looserForProducts(Row row) {
  row.rtol = std::max(row.rtol, 1e-3);
  row.atol = std::max(row.atol, 1e-3);
  row.meanSquare = std::max(row.meanSquare, 1e-6);
  row.atolGrowsWithLength = true;
  return row;
}

int coarseness(DType type) {
  switch (type) {
  case DType::f64:
    return 0;
  case DType::f32:
    return 1;
  case DType::f16:
    return 2;
  case DType::bf16:
    return 3;
  case DType::f8e4m3:
    return 4;
  case DType::f8e5m2:
    return 5;
  default:
    return -1;
  }
}

int64_t integerAt(const TensorView &view, int64_t position) {
  const char *element =
      static_cast<const char *>(view.data) + position * static_cast<int64_t>(size_of(view.dtype));
  if (view.dtype == DType::i64) {
    int64_t value;
    std::memcpy(&value, element, sizeof value);
    return value;
  }
  if (view.dtype == DType::u8)
    return *reinterpret_cast<const int8_t *>(element);
  return static_cast<int64_t>(load_as_f64(view.dtype, element));
}

bool sameKind(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b))
    return a == b;
  return true;
}

std::string place(const std::vector<int64_t> &shape, int64_t position) {
  std::vector<int64_t> index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; position /= shape[axis])
    index[axis] = position % shape[axis];
  std::string text = "[";
  for (size_t axis = 0; axis < index.size(); ++axis)
    text += (axis ? ", " : "") + std::to_string(index[axis]);
  return text + "]";
}

/// Positions to compare: all, or a stride through the tensor with a jittered offset each, so that
/// no period of a tile size is favoured; the last element is always there.
std::vector<int64_t> positions(int64_t count, int64_t limit) {
  std::vector<int64_t> list;
  if (limit <= 0 || count <= limit) {
    for (int64_t i = 0; i < count; ++i)
      list.push_back(i);
    return list;
  }
  uint64_t state = 0x9E3779B97F4A7C15;
  for (int64_t i = 0; i < limit; ++i) {
    int64_t lower = static_cast<int64_t>(static_cast<__int128>(count) * i / limit);
    int64_t upper = static_cast<int64_t>(static_cast<__int128>(count) * (i + 1) / limit);
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    list.push_back(lower +
                   static_cast<int64_t>((state >> 33) % std::max<int64_t>(upper - lower, 1)));
  }
  list.back() = count - 1;
  return list;
}

std::string describe(const char *what, const std::string &where, double expected, double got) {
  std::ostringstream text;
  text.precision(9);
  text << what << " at " << where << ": expected " << expected << ", got " << got;
  return text.str();
}

std::string above(const char *what, double value, double bound, const char *whose) {
  std::ostringstream text;
  text.precision(9);
  text << what << " is " << value << ", above " << whose << ", " << bound;
  return text.str();
}

/// Such a program's roundings decide (a value that is rounded lies near a tie, scores are large).
std::string naiveToo(double value) {
  std::ostringstream text;
  text.precision(9);
  text << "; a naive program in the same types is outside, too, with " << value
       << ": the program may be ill-conditioned";
  return text.str();
}

} // namespace

bool multipliesInexactly(KernelOp kernel) {
  return kernel
      .walk([](ReduceOp op) {
        return op.getPrecision() == Precision::TF32 || op.getPrecision() == Precision::Fast
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The type that `op` rounds to, or that what it extends was computed in; null if it does neither.
static Type roundedType(Operation *op) {
  if (isa<arith::TruncFOp>(op))
    return op->getResult(0).getType();
  Operation *source = isa<arith::ExtFOp>(op) ? op->getOperand(0).getDefiningOp() : nullptr;
  auto load = dyn_cast_or_null<LoadOp>(source);
  bool isComputed = load ? load.getTensor().getDefiningOp() != nullptr
                         : source && !isa<arith::ConstantOp>(source);
  return isComputed ? op->getOperand(0).getType() : Type();
}

DType coarsestRounding(KernelOp kernel, DType output) {
  DType coarsest = output;
  kernel.walk([&](Operation *op) {
    Type type = roundedType(op);
    if (!type)
      return;
    DType candidate = type.isF32()                  ? DType::f32
                      : type.isF16()                ? DType::f16
                      : type.isBF16()               ? DType::bf16
                      : isa<Float8E4M3FNType>(type) ? DType::f8e4m3
                      : isa<Float8E5M2Type>(type)   ? DType::f8e5m2
                                                    : DType::f64;
    if (coarseness(candidate) > coarseness(coarsest))
      coarsest = candidate;
  });
  return coarsest;
}

void evaluateAhead(unsigned result, Reference &exact, Reference &naive, int64_t maxElements) {
  int64_t count = 1;
  for (int64_t extent : exact.resultShape(result))
    count *= extent;
  for (int64_t position : positions(count, maxElements)) {
    exact.element(result, position);
    naive.element(result, position);
  }
}

Comparison compare(const TensorView &got, unsigned result, Reference &exact, Reference &naive,
                   DType coarsest, int64_t reductionLength, const ComparisonOptions &options) {
  Comparison comparison;
  const std::vector<int64_t> &shape = exact.resultShape(result);
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  auto fail = [&](std::string reason) {
    if (comparison.ok)
      comparison.reason = std::move(reason);
    comparison.ok = false;
  };
  std::vector<int64_t> chosen = positions(count, options.maxElements);
  comparison.compared = chosen.size();
  auto progress = [&](size_t done) {
    if (options.onProgress)
      options.onProgress(static_cast<int64_t>(done), comparison.compared);
  };
  if (!exact.resultIsFloat(result)) {
    for (size_t n = 0; n < chosen.size(); ++n) {
      progress(n);
      const int64_t position = chosen[n];
      int64_t value = integerAt(got, position), expected = exact.element(result, position).i;
      // Where a float comparison decides, a tie in f32 may not be one in f64.
      if (value != expected && value != naive.element(result, position).i)
        fail(describe("wrong integer", place(shape, position), expected, value));
    }
    return comparison;
  }
  size_t size = size_of(got.dtype);
  std::vector<double> ours, truth, plain;
  double scale = 0;
  for (int64_t position : chosen) {
    progress(ours.size());
    ours.push_back(load_as_f64(got.dtype, static_cast<const char *>(got.data) + position * size));
    truth.push_back(exact.element(result, position).f);
    plain.push_back(naive.element(result, position).f);
    if (std::isfinite(truth.back()))
      scale = std::max(scale, std::fabs(truth.back()));
  }
  scale = std::max(scale, 1e-3);
  Row row = options.inexactProducts ? looserForProducts(rowFor(coarsest)) : rowFor(coarsest);
  double length = std::sqrt(static_cast<double>(std::max<int64_t>(reductionLength, 1)));
  double atol = row.atol * scale * (row.atolGrowsWithLength ? length : 1);
  double squares = 0, total = 0;
  for (size_t n = 0; n < chosen.size(); ++n) {
    if (!sameKind(ours[n], truth[n]) && !sameKind(ours[n], plain[n])) {
      fail(describe("NaN or infinity", place(shape, chosen[n]), truth[n], ours[n]));
      continue;
    }
    if (!std::isfinite(ours[n]) || !std::isfinite(truth[n]))
      continue;
    if (options.isExact && ours[n] != plain[n])
      fail(
          describe("not the exact value rounded once", place(shape, chosen[n]), plain[n], ours[n]));
    double error = std::fabs(ours[n] - truth[n]);
    comparison.maxError = std::max(comparison.maxError, error);
    if (std::isfinite(plain[n]))
      comparison.naiveError = std::max(comparison.naiveError, std::fabs(plain[n] - truth[n]));
    squares += error * error;
    total += truth[n] * truth[n];
    auto isOutside = [&](double value) {
      return !(std::fabs(value - truth[n]) <= atol + row.rtol * std::fabs(truth[n]));
    };
    if (isOutside(ours[n]))
      fail(describe("outside rtol and atol", place(shape, chosen[n]), truth[n], ours[n]) +
           (isOutside(plain[n]) ? naiveToo(plain[n]) : ""));
  }
  double meanSquare = total > 0 ? squares / total : (squares > 0 ? 1.0 : 0.0);
  comparison.relativeError = std::sqrt(meanSquare);
  double tiny = atol * atol * static_cast<double>(chosen.size());
  if (meanSquare > row.meanSquare && squares > tiny)
    fail(above("the normalised mean square error", meanSquare, row.meanSquare, "the tolerance"));
  auto bound = [&] {
    return options.factor * comparison.naiveError + 2 * rowFor(got.dtype).ulp * scale;
  };
  // What is f64 throughout is as exact as the reference: its errors are not the naive program's.
  if (coarsest == DType::f64 || comparison.maxError <= bound())
    return comparison;
  // Sums may be reassociated, so that ours are rounded elsewhere: the naive program's error in one
  // order is one draw of many, and little where roundings happen to cancel.
  for (unsigned draw = 1; draw <= otherDraws && comparison.maxError > bound(); ++draw) {
    naive.redraw(draw);
    for (size_t n = 0; n < chosen.size(); ++n) {
      progress(n);
      const double value = naive.element(result, chosen[n]).f;
      if (std::isfinite(value) && std::isfinite(truth[n]))
        comparison.naiveError = std::max(comparison.naiveError, std::fabs(value - truth[n]));
    }
  }
  naive.redraw(0);
  if (comparison.maxError > bound())
    fail(above("the largest error", comparison.maxError, bound(), "what a naive program's allows"));
  return comparison;
}

Difference differ(const TensorView &a, const TensorView &b, DType coarsest, int64_t reductionLength,
                  bool inexactProducts) {
  int64_t count = 1;
  for (int64_t extent : a.shape)
    count *= extent;
  const size_t size = size_of(a.dtype);
  auto at = [&](const TensorView &view, int64_t position) {
    return load_as_f64(view.dtype, static_cast<const char *>(view.data) + position * size);
  };
  double scale = 1e-3;
  for (int64_t position = 0; position < count; ++position)
    if (double value = at(a, position); std::isfinite(value))
      scale = std::max(scale, std::fabs(value));
  const Row row = inexactProducts ? looserForProducts(rowFor(coarsest)) : rowFor(coarsest);
  const bool isFloat = a.dtype == DType::f64 || a.dtype == DType::f32 || coarseness(a.dtype) > 0;
  const double length = std::sqrt(static_cast<double>(std::max<int64_t>(reductionLength, 1)));
  const double atol = row.atol * scale * (row.atolGrowsWithLength ? length : 1);
  Difference difference;
  for (int64_t position = 0; position < count; ++position) {
    const double x = at(a, position), y = at(b, position);
    const bool areFinite = std::isfinite(x) && std::isfinite(y);
    const double apart = areFinite ? std::fabs(x - y) : 0;
    difference.largest = std::max(difference.largest, apart);
    const double allowed = isFloat ? 2 * (atol + row.rtol * std::fabs(x)) : 0;
    if (difference.first || (areFinite ? apart <= allowed : sameKind(x, y)))
      continue;
    difference.first = position;
    difference.a = x, difference.b = y;
  }
  return difference;
}

} // namespace tk::interp
