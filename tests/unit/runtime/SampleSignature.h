// A signature with what signatures can have, for the runtime's tests.
#pragma once

#include "tk/plan.h"

namespace tk::test {

inline Parameter tensor(std::string name, DType dtype, std::vector<Extent> shape, uint32_t line) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.dtype = dtype;
  parameter.shape = std::move(shape);
  parameter.span = {"gemm.tk", line, 1, line, 9};
  return parameter;
}

inline Parameter scalar(std::string name, DType dtype) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.is_tensor = false;
  parameter.dtype = dtype;
  return parameter;
}

/// kernel gemm(a: f32[M, K], strided b: f32[K, 2 * N], scale: f32 = rsqrt(K)) -> (c: f32[M, N])
/// where K % 2 == 0
inline Signature gemm_signature() {
  Signature signature;
  signature.name = "gemm";
  signature.dims = {"M", "K", "N"};
  Expr m = Expr::variable(0), k = Expr::variable(1), n = Expr::variable(2);
  signature.params.push_back(tensor("a", DType::f32, {{m, "M"}, {k, "K"}}, 2));
  signature.params.push_back(tensor("b", DType::f32, {{k, "K"}, {Expr(2) * n, "2 * N"}}, 3));
  signature.params.back().strided = true;
  Parameter scale = scalar("scale", DType::f32);
  scale.has_default = true;
  scale.default_value = Expr::apply(ExprOp::rsqrt, k);
  scale.default_text = "rsqrt(K)";
  signature.params.push_back(scale);
  signature.results.push_back(tensor("c", DType::f32, {{m, "M"}, {n, "N"}}, 4));
  Check check;
  check.condition = Expr::apply(ExprOp::eq, Expr::mod(k, Expr(2)), Expr(0));
  check.text = "K % 2 == 0";
  check.span = {"gemm.tk", 5, 7, 5, 17};
  signature.checks.push_back(check);
  signature.span = {"gemm.tk", 1, 8, 1, 12};
  return signature;
}

/// One launch of a 64 x 32 tile each, with scratch for a row of sums.
inline LaunchPlan gemm_plan() {
  Expr m = Expr::variable(0), n = Expr::variable(2);
  LaunchPlan plan;
  plan.scratch.push_back({m * Expr(4), true, "row sums"});
  Launch launch;
  launch.symbol = "gemm_0";
  launch.grid[0] = Expr::ceil_div(m, Expr(64));
  launch.grid[1] = Expr::ceil_div(n, Expr(32));
  launch.block[0] = 128;
  launch.shared_bytes = Expr(50000);
  launch.span = {"gemm.tk", 6, 3, 6, 20};
  launch.args = {{ArgKind::tensor, 0, 0, DType::i64, {}}, {ArgKind::tensor, 1, 0, DType::i64, {}},
                 {ArgKind::tensor, 2, 0, DType::i64, {}}, {ArgKind::scratch, 0, 0, DType::i64, {}},
                 {ArgKind::integer, 0, 0, DType::i64, m}, {ArgKind::integer, 0, 0, DType::i32, n},
                 {ArgKind::stride, 1, 0, DType::i64, {}}, {ArgKind::scalar, 0, 0, DType::i64, {}}};
  plan.launches.push_back(launch);
  return plan;
}

} // namespace tk::test
