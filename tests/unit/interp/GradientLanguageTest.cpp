//===- GradientLanguageTest.cpp - gradients of what version 1.1 adds ------===//
#include "tests/unit/interp/GradientCheck.h"

using namespace tk;
using tk::test::Gradient;

TEST_CASE("gradients of reductions that reuse a left index") {
  Gradient("kernel k(x: f64[R, C], w: f64[C]) -> (y: f64[R, C]) {\n"
           "y[r, c] = x[r, c] * w[c] / (2.0 + sum[c](x[r, c]^2)) + max[r](x[r, c] * w[c]) }\n"
           "grad g = k wrt (x, w)",
           {{"R", 3}, {"C", 4}})
      .check();
  Gradient("kernel k(x: f64[R, C], w: f64[K]) -> (y: f64[R, C]) {\n"
           "let t[r, c] = x[r, c] - mean[c](x[r, c])\n"
           "y[r, c] = t[r, c] + sum[c](w[c] * softmax[c](w[c] * 2.0)) * c }\n"
           "grad g = k wrt (x, w)",
           {{"R", 3}, {"C", 4}, {"K", 5}})
      .check();
}

TEST_CASE("gradients under conditions of equality") {
  for (const char *e :
       {"if j == 0 then 0.0 else s[j - 1] * x[j]", "if j != N - 1 then s[j + 1] * x[j] else x[j]",
        "if j == 0 or j == N - 1 then x[j] else s[j - 1] * s[j + 1]",
        "sum[k](if k != j then x[max(k - j, j - k) - 1] * s[k] else 0.0)"})
    Gradient(std::string("kernel k(x: f64[N]) -> (y: f64[N]) {\n"
                         "let s[j] = cumsum[j](x[j]^2)\ny[j] = ") +
                 e + " }\ngrad g = k wrt (x)",
             {{"N", 6}})
        .check();
}

TEST_CASE("gradients where extents are named") {
  Gradient("kernel k(x: f64[H], w: f64[R]) -> (y: f64[P], z: f64[2 * P])\n"
           "where P == (H + 2 - R) / 2 + 1, R <= H + 2 {\n"
           "y[p] = sum[r](pad(x[p * 2 + r - 1], 0.0) * w[r]) * (1.0 / P)\n"
           "z[i in 0..2 * P] = x[i / 4] * w[0] }\n"
           "grad g = k wrt (x, w)",
           {{"H", 9}, {"R", 3}})
      .check();
  Gradient("kernel k(x: f64[4 * M], w: f64[M * 2]) -> (y: f64[M]) {\n"
           "y[m] = sum[k in 0..4](x[m * 4 + k]^2) * w[2 * m + 1] + w[2 * m] }\n"
           "grad g = k wrt (x, w)",
           {{"M", 3}})
      .check();
}

TEST_CASE("gradients of reductions whose bounds are loaded or indices") {
  const std::vector<double> off{0, 2, 2, 7, 9};
  for (const char *e : {"sum[t in off[g]..off[g + 1]](x[t] * w[t])",
                        "mean[t in off[g]..off[g + 1] + 1](x[t]^2 * w[t])",
                        "prod[t in off[g]..off[g + 1]](x[t] + w[t])",
                        "max[t in off[g]..off[g + 1] + 1](x[t] * w[t] + 3.0 * t)",
                        "sum[t in off[g]..off[g + 1], u in t..T](x[t] * w[u])",
                        "exp(-logsumexp[t in off[g]..off[g + 1] + 1](x[t] * w[t]))"}) {
    INFO(e);
    Gradient(
        std::string("kernel k(off: i32[G + 1], s: i32[G], x: f64[T], w: f64[T]) -> (y: f64[G]) {\n"
                    "y[g] = ") +
            e + " }\ngrad g = k wrt (x, w)",
        {{"G", 4}, {"T", 10}})
        .with("off", off)
        .check();
  }
  Gradient("kernel k(a: f64[N, N], b: f64[N, M]) -> (u: f64[N], v: f64[N, M]) {\n"
           "u[i] = sum[k in i..N](a[i, k]^2)\n"
           "v[i, j] = sum[k in i - 1..i + 2](a[i, k] * b[k, j]) }\n"
           "grad g = k wrt (a, b)",
           {{"N", 5}, {"M", 3}})
      .check();
}

TEST_CASE("gradients of functions of tensors") {
  Gradient("fn total(t) = sum[k](t[k])\n"
           "fn centred(t, i) = t[i] - total(t) * 0.25\n"
           "fn dot(a, b) = sum[k](a[k] * b[k])\n"
           "fn turned(t, i, j) = t[j, i]\n"
           "kernel k(x: f64[R, C], q: f64[R, E], w: f64[C]) -> (y: f64[R, C], v: f64[E], s: f64[R, "
           "R]) {\n"
           "let t[r, c] = centred(x[r], c) * dot(x[r], w)\n"
           "y[r, c] = t[r, c] * centred(w, c)\n"
           "v[e] = sum[r](centred(q[r], e)^2)\n"
           "s[i, j] = dot(x[i], t[j]) + turned(x, min(i, 2), j) }\n"
           "grad g = k wrt (x, q, w)",
           {{"R", 3}, {"C", 4}, {"E", 5}})
      .check();
}

TEST_CASE("gradients of the library's functions") {
  for (const char *e :
       {"mish(x[i])", "hardswish(x[i] * 4.0)", "hardsigmoid(x[i] * 4.0)", "leaky_relu(x[i], 0.1)",
        "elu(x[i], 0.7)", "selu(x[i])", "celu(x[i], 0.7)", "softsign(x[i])", "logsigmoid(x[i])",
        "layer_norm(x, i, 0.1)", "rms_norm(x, i, 0.1)"}) {
    INFO(e);
    Gradient(
        std::string("import std\nkernel k(x: f64[N], w: f64[N]) -> (y: f64[N]) { y[i] = w[i] * ") +
            e + " }\ngrad g = k wrt (x, w)",
        {{"N", 7}})
        .check();
  }
  Gradient(
      "import std\nkernel k(x: f64[N, C, P], w: f64[C]) -> (y: f64[N, C, P]) where C % 2 == 0 {\n"
      "y[n, c, p] = group_norm(x[n], c, p, 2, 0.1) * w[c] }\ngrad g = k wrt (x, w)",
      {{"N", 2}, {"C", 4}, {"P", 3}})
      .check();
}
