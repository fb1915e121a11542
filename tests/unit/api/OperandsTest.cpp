// Masked operands (tk-mask-operands) and packed ones (tk-pack-operands) of sums of any size, on the
// emulator: elements that are left out and not finite, bounds within tiles, and types.
#include "tests/unit/api/ForcedPass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>
#include <limits>

using namespace tk;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

const Fill as_drawn = [](size_t, double normal) { return normal; };

/// `value` at every `step`th element.
Fill with(double value, size_t step) {
  return [=](size_t n, double normal) { return n % step == 5 ? value : normal; };
}

/// Does a reduction end where a choice says?
bool computes_again(mlir::ModuleOp module) {
  return module
      .walk([](ReduceOp reduce) {
        return mlir::isa_and_nonnull<mlir::arith::SelectOp>(reduce.getUpper()[0].getDefiningOp())
                   ? mlir::WalkResult::interrupt()
                   : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// Is the element of a sum the product of two choices?
bool masks_both(mlir::ModuleOp module) {
  return module
      .walk([](ReduceOp reduce) {
        auto product = reduce.getYield().getValues()[0].getDefiningOp<mlir::arith::MulFOp>();
        return product && product.getLhs().getDefiningOp<mlir::arith::SelectOp>() &&
                       product.getRhs().getDefiningOp<mlir::arith::SelectOp>()
                   ? mlir::WalkResult::interrupt()
                   : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

bool stores_pairs(mlir::ModuleOp module) {
  return module
      .walk([](ComputeOp compute) {
        return mlir::getElementTypeOrSelf(compute.getResult(0).getType()).isInteger(64)
                   ? mlir::WalkResult::interrupt()
                   : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

bool stores_operands(mlir::ModuleOp module) {
  size_t count = 0;
  module.walk([&](ComputeOp) { ++count; });
  return count > 1;
}

std::vector<HostTensor> run_masked(const Example &example, bool is_exact = false) {
  return run_forced(
      example, "tk-mask-operands", [] { return createMaskOperands({true}); }, nullptr,
      is_exact ? masks_both : computes_again);
}

std::vector<HostTensor> run_packed(const Example &example, bool is_pair = true) {
  return run_forced(
      example, "tk-pack-operands", [] { return createPackOperands({true}); }, nullptr,
      is_pair ? stores_pairs : stores_operands);
}

constexpr const char *masked = R"(
kernel masked(x: f32[M, K], w: f32[K, N], p: f32[M, K]) -> (y: f32[M, N]) {
  y[m, n] = sum[k](if p[m, k] > 0.0 then x[m, k] * w[k, n] else 0.0)
})";
constexpr const char *weighted = R"(
kernel weighted(x: f32[M, K], w: f32[K, N], s: f32[K]) -> (y: f32[M, N]) {
  y[m, n] = sum[k](s[k] * (x[m, k] - w[k, n]) ^ 2)
})";

} // namespace

TEST_CASE("a condition on the rows, and operands that are not finite") {
  for (double value : {1.0, not_a_number, infinity, -infinity}) {
    run_masked({masked, {{"M", 40}, {"N", 72}, {"K", 48}}, {as_drawn, with(value, 977), as_drawn}});
    run_masked({masked,
                {{"M", 33}, {"N", 65}, {"K", 37}},
                {with(value, 211), with(value, 977), as_drawn}});
  }
}

TEST_CASE("a condition that leaves all elements out, and sums without elements") {
  auto outputs =
      run_masked({masked,
                  {{"M", 32}, {"N", 64}, {"K", 16}},
                  {as_drawn, with(not_a_number, 7), [](size_t, double) { return -1.0; }}});
  for (std::byte byte : outputs.back().bytes)
    CHECK(byte == std::byte{0});
  run_masked({masked, {{"M", 32}, {"N", 64}, {"K", 0}}, {as_drawn, as_drawn, as_drawn}});
}

TEST_CASE("conditions on the columns, on both sides, and their opposites") {
  run_masked(
      {R"(
kernel columns(x: f32[M, K], w: f32[N, K], q: bf16[N, K], b: f32[N]) -> (y: f32[M, N]) {
  y[m, n] = relu(sum[k](if q[n, k] == 0.0 then 0.0 else x[m, k] * w[n, k]) + b[n])
})",
       {{"M", 40}, {"N", 64}, {"K", 32}},
       {with(infinity, 301), as_drawn, [](size_t n, double) { return double(n % 3); }, as_drawn}});
  run_masked({R"(
kernel both(x: f32[M, K], w: f32[K, N], p: f32[M, K], q: f32[K, N]) -> (y: f32[M, N]) {
  y[m, n] = sum[k](if p[m, k] > 0.0 and q[k, n] > 0.0 then x[m, k] * w[k, n] else 0.0)
})",
              {{"M", 40}, {"N", 64}, {"K", 32}},
              {with(not_a_number, 301), with(infinity, 433), as_drawn, as_drawn}});
}

TEST_CASE("a condition over the sum's index alone makes both operands 0") {
  run_masked({R"(
kernel alone(x: f32[M, K], w: f32[K, N], s: f32[K]) -> (y: f32[M, N]) {
  y[m, n] = sum[k](if s[k] > 0.0 then x[m, k] * w[k, n] else 0.0)
})",
              {{"M", 40}, {"N", 64}, {"K", 32}},
              {with(not_a_number, 301), with(infinity, 433), as_drawn}},
             /*is_exact=*/true);
}

TEST_CASE("conditions on products of 16 bits, and of batches") {
  run_masked({R"(
kernel half(x: bf16[M, K], w: bf16[K, N], p: bf16[M, K]) -> (y: bf16[M, N]) {
  y[m, n] = sum[k](if p[m, k] > 0.0 then x[m, k] * w[k, n] else 0.0)
})",
              {{"M", 64}, {"N", 128}, {"K", 64}},
              {as_drawn, with(not_a_number, 1201), as_drawn}});
  run_masked({R"(
kernel batched(x: f32[B, M, K], w: f32[B, K, N], p: f16[B, M, K]) -> (y: f32[B, M, N]) {
  y[b, m, n] = sum[k](if p[b, m, k] != 0.0 then x[b, m, k] * w[b, k, n] else 0.0)
})",
              {{"B", 3}, {"M", 40}, {"N", 64}, {"K", 32}},
              {as_drawn, with(infinity, 977), [](size_t n, double) { return double(n % 2); }}});
}

TEST_CASE("two values of a row or of a column in one number") {
  run_packed({weighted, {{"M", 40}, {"N", 64}, {"K", 48}}, {as_drawn, as_drawn, as_drawn}});
  run_packed({weighted,
              {{"M", 64}, {"N", 40}, {"K", 36}},
              {with(not_a_number, 701), with(infinity, 433), as_drawn}});
  run_packed({R"(
kernel nearest(x: f32[M, K], w: f32[N, K], s: f32[M, K], t: f32[N, K]) -> (y: f32[M, N]) {
  y[m, n] = min[k](abs(x[m, k] - w[n, k]) * s[m, k] + t[n, k])
})",
              {{"M", 40}, {"N", 64}, {"K", 32}},
              {as_drawn, with(-0.0, 7), as_drawn, as_drawn}});
}

TEST_CASE("computed values of a row and of a column") {
  run_packed({R"(
kernel computed(x: f32[M, K], w: f32[N, K], s: f32[N, K]) -> (y: f32[M, N]) {
  y[m, n] = sum[k](max(exp(x[m, k]) * (w[n, k] / s[n, k]), 0.25))
})",
              {{"M", 40}, {"N", 64}, {"K", 32}},
              {as_drawn, as_drawn, as_drawn}},
             /*is_pair=*/false);
}
