//===- GradientTest.cpp - derived gradients beside finite differences -----===//
#include "tests/unit/interp/GradientCheck.h"

using namespace tk;
using tk::test::Gradient;

namespace {

/// A function of one argument, differentiated: y = e, where e is of x[i] and w[i].
void checkPointwise(const std::string &e) {
  INFO(e);
  Gradient("kernel k(x: f64[N], w: f64[N], a: f64) -> (y: f64[N]) { y[i] = " + e +
               " }\ngrad g = k wrt (x, w)",
           {{"N", 7}})
      .check();
}

} // namespace

TEST_CASE("gradients of what is computed element by element") {
  for (const char *e : {"x[i] * w[i] - 2 * w[i] / (x[i] + 3.0)",
                        "-x[i] * 0.5 + w[i]",
                        "x[i]^3 + w[i]^2",
                        "(x[i] + 2.0)^-2 + (w[i] + 3)^-64 * 1e30",
                        "pow(x[i] + 2, w[i])",
                        "(x[i] + 2.0)^1.5 * w[i]",
                        "pow(2.5, x[i]) + w[i]",
                        "exp(x[i]) * w[i]",
                        "exp2(x[i]) * w[i]",
                        "expm1(x[i]) * w[i]",
                        "log(x[i] + 2) * w[i]",
                        "log2(x[i] + 2) * w[i]",
                        "log1p(x[i] + 1.5) * w[i]",
                        "sqrt(x[i] + 2) * w[i]",
                        "rsqrt(x[i] + 2) * w[i]",
                        "tanh(x[i]) * w[i]",
                        "sigmoid(x[i]) * w[i]",
                        "erf(x[i]) * w[i]",
                        "sin(x[i]) * cos(w[i])",
                        "abs(x[i]) * w[i]",
                        "relu(x[i]) * w[i]",
                        "gelu(x[i]) * w[i]",
                        "gelu_tanh(x[i]) * w[i]",
                        "silu(x[i]) * w[i]",
                        "softplus(x[i]) * w[i]",
                        "fma(x[i], w[i], x[i])",
                        "min(x[i], w[i])",
                        "max(x[i], w[i])",
                        "clamp(x[i], -0.5, 0.5) * w[i]",
                        "clamp(0.1, x[i], w[i]) + 0.5 * x[i] * w[i]",
                        "if x[i] < w[i] then x[i] * w[i] else exp(w[i]) + 0.1 * x[i]",
                        "f64(x[i]) * w[i]",
                        "x[i] * w[i] * f64(floor(x[i])) + x[i] * sign(w[i])",
                        "x[i] * (w[i] + rand(3, i))",
                        "(if isnan(x[i]) then 0 else x[i]) * w[i] + round(x[i]) * x[i]"})
    checkPointwise(e);
  checkPointwise("tanh(x[i]) + exp(w[i])");
}

TEST_CASE("gradients of functions, constants, scalars and locals") {
  Gradient("const C = 1.5\nfn f(x, y) = x * x * y + C\nfn g2(x) = f(x, x + 1)\n"
           "kernel k(x: f64[N], a: f64, n: i32 = 3) -> (y: f64[N], z: f64[]) {\n"
           "let b = a * 2 + 1\nlet u[i] = g2(x[i]) * b\ny[i] = u[i] * u[i] + x[i] * a\n"
           "z = sum[i](y[i] * u[i]) }\ngrad g = k wrt (x, a)",
           {{"N", 5}})
      .check();
}

TEST_CASE("gradients of reductions") {
  for (const char *e :
       {"sum[c](x[r, c] * w[c])", "mean[c](x[r, c]^2 * w[c])", "max[c](x[r, c] * w[c])",
        "min[c](x[r, c] + w[c])", "prod[c](x[r, c] + w[c])", "logsumexp[c](x[r, c] * w[c])",
        "exp(sum[c](x[r, c] * w[c])) * max[c](x[r, c] * w[c])",
        "sum[c in 1..C](x[r, c] * x[r, c - 1] * w[c])", "sum[c](x[r, c] * sum[d](x[r, d] * w[d]))",
        "sum[c](softmax[c](x[r, c]) * w[c])", "sum[c](log_softmax[c](x[r, c] * w[c]) * w[c])",
        "if r > 0 then sum[c](x[r - 1, c] * x[r, c] * w[c]) else w[0]",
        "sum[c](if any[d](x[r, d] > 0.2) then x[r, c] * w[c] else w[c])",
        "x[r, argmax[c](x[r, c])] * w[0] + x[R - 1, C - 1] * w[C - 1]",
        "sum[c](cumsum[c](x[r, c]) * w[c])", "sum[c](cumprod[c](x[r, c] + 0.5) * w[c])",
        "sum[c](cummax[c](x[r, c]) * w[c])", "sum[c](max(x[r, c], 0.1) * w[c])"}) {
    INFO(e);
    Gradient(std::string("kernel k(x: f64[R, C], w: f64[C]) -> (y: f64[R]) { y[r] = ") + e +
                 " }\ngrad g = k wrt (x, w)",
             {{"R", 3}, {"C", 5}})
        .check();
  }
}

TEST_CASE("gradients of contractions of operands that are expressions") {
  for (const char *e :
       {"(x[n, d] - m[d]) * m[d] * w[n, e]", "-(x[n, d] * m[d]) / (w[n, e] + m[e] + 3) * 2.5",
        "x[n, d] * w[n, e] + (x[n, e] + m[e]) * w[n, d] - m[d]",
        "exp(x[n, d] * m[d]) * (if w[n, e] > 0 then w[n, e] * m[e] else m[e])",
        "max(x[n, d], m[d]) * sum[k](w[n, k] * m[k]) * w[n, e]",
        "(x[n, d] - m[d]) * (if n > 0 then w[n - 1, e] * m[e] else 0.0)"}) {
    INFO(e);
    for (const char *before : {"sum[n](", "if d > 0 then mean[n](", "exp(0.1 * sum[n]("}) {
      const bool isChosen = before[0] == 'i', isInside = before[0] == 'e';
      Gradient("kernel k(x: f64[N, D], m: f64[D], w: f64[N, D]) -> (y: f64[D, D]) { y[d, e] = " +
                   std::string(before) + e +
                   (isInside   ? "))"
                    : isChosen ? ") else m[e]"
                               : ")") +
                   " }\ngrad g = k wrt (x, m, w)",
               {{"N", 4}, {"D", 3}})
          .check();
    }
  }
}

TEST_CASE("gradients of normalisers and scans that are results") {
  for (const char *e :
       {"softmax[c](x[r, c])", "softmax[r, c](x[r, c] * w[c])", "log_softmax[c](x[r, c])",
        "cumsum[c](x[r, c] * w[c])", "cumsum[r, c](x[r, c])", "cumprod[c](x[r, c])",
        "cummax[c](x[r, c])", "cummax[r, c](x[r, c] * w[c])", "cumprod[r, c](x[r, c] + w[c])"}) {
    INFO(e);
    Gradient(std::string("kernel k(x: f64[R, C], w: f64[C]) -> (y: f64[R, C]) { y[r, c] = ") + e +
                 " * w[c] }\ngrad g = k wrt (x, w)",
             {{"R", 3}, {"C", 4}})
        .check();
    Gradient(std::string("kernel k(x: f64[R, C], w: f64[C]) -> (y: f64[R, C], z: f64[C]) { y[r, c] "
                         "= ") +
                 e + "\nz[c] = sum[r](y[r, c] * x[r, c]) }\ngrad g = k wrt (x)",
             {{"R", 3}, {"C", 4}})
        .check();
  }
}

TEST_CASE("products with zeros have the gradient of the others' product") {
  for (const char *e : {"prod[c](x[c])", "sum[c](cumprod[c](x[c]) * w[c])"})
    for (std::vector<double> x : {std::vector<double>{2, 0, -3, 0.5}, {0, 2, 0, 3}, {0, 0, 0, 1}}) {
      INFO(e);
      Gradient g(std::string("kernel k(x: f64[C], w: f64[C]) -> (y: f64[], z: f64[]) { y = ") + e +
                     "\n z = sum[c](x[c]) }\ngrad g = k wrt (x)",
                 {{"C", 4}});
      g.with("x", x).check();
    }
}

TEST_CASE("what ties for the largest shares the gradient equally") {
  const std::string head = "kernel k(x: f64[C]) -> (y: f64[]) { y = ",
                    tail = " }\ngrad g = k wrt (x)";
  Gradient most(head + "max[c](x[c])" + tail, {{"C", 4}});
  CHECK(most.with("x", {1, 3, 3, 2}).ofOnes() == std::vector<double>{0, 0.5, 0.5, 0});
  Gradient two(head + "sum[c](max(x[c], 1.0))" + tail, {{"C", 3}});
  CHECK(two.with("x", {0, 1, 2}).ofOnes() == std::vector<double>{0, 0.5, 1});
  Gradient scan(head + "sum[c](cummax[c](x[c]))" + tail, {{"C", 4}});
  CHECK(scan.with("x", {2, 1, 2, 0}).ofOnes() == std::vector<double>{3, 0, 1, 0});
  Gradient rest(head + "sum[c](relu(x[c]) + clamp(x[c], 0.0, 1.0) + abs(x[c]))" + tail, {{"C", 3}});
  CHECK(rest.with("x", {0, 1, 2}).ofOnes() == std::vector<double>{1, 3, 2});
}

TEST_CASE("gradients through every kind of index") {
  struct Case {
    const char *shapes, *result, *body;
    std::map<std::string, int64_t> sizes;
  };
  for (const Case &c : std::initializer_list<Case>{
           {"x: f64[N, M], w: f64[M]",
            "y: f64[M, N]",
            "y[i, j] = x[j, i] * w[i]",
            {{"N", 3}, {"M", 4}}},
           {"x: f64[N, N], w: f64[N]", "y: f64[N]", "y[i] = x[i, i] * w[i] * w[0]", {{"N", 4}}},
           {"x: f64[N], w: f64[R]",
            "y: f64[N - R + 1]",
            "y[p] = sum[r](x[p + r] * w[r])",
            {{"N", 7}, {"R", 3}}},
           {"x: f64[N], w: f64[R]",
            "y: f64[N]",
            "y[p] = sum[r](pad(x[p + r - 1], 0.0) * w[r])",
            {{"N", 7}, {"R", 3}}},
           {"x: f64[N], w: f64[R]",
            "y: f64[(N - R) / 2 + 1]",
            "y[p] = sum[r](x[2 * p + r] * w[r])",
            {{"N", 8}, {"R", 3}}},
           {"x: f64[N], w: f64[R]",
            "y: f64[N]",
            "y[p] = sum[r](pad(x[p - 2 * r], 0.0) * w[r])",
            {{"N", 8}, {"R", 3}}},
           {"x: f64[G, D], w: f64[H, D]",
            "y: f64[H, D]",
            "y[h, d] = x[h / (H / G), d] * w[h, d]",
            {{"G", 2}, {"H", 6}, {"D", 2}}},
           {"x: f64[G], w: f64[H]", "y: f64[H]", "y[h] = x[h / 3] * w[h]", {{"G", 2}, {"H", 5}}},
           {"x: f64[G], w: f64[H]",
            "y: f64[H]",
            "y[h] = x[h % G] * w[h] + x[h % 2] * w[h]",
            {{"G", 3}, {"H", 7}}},
           {"x: f64[N], w: f64[N / 4]",
            "y: f64[N / 4, 4]",
            "y[a, b] = x[a * 4 + b] * w[a]",
            {{"N", 12}}},
           {"x: f64[P, B], w: f64[N]",
            "y: f64[N]",
            "y[j] = x[j / B, j % B] * w[j]",
            {{"P", 3}, {"B", 4}, {"N", 10}}},
           {"x: f64[N], w: f64[N]", "y: f64[N]", "y[i] = x[N - 1 - i] * w[i]", {{"N", 5}}},
           {"x: f64[N], w: f64[N]",
            "y: f64[N]",
            "let d[i in 1..N] = x[i] - x[i - 1] * w[i]\ny[i in 0..N] = if i >= 1 then d[i] * d[i] "
            "else w[0]",
            {{"N", 5}}},
           {"x: f64[N], w: f64[N]",
            "y: f64[N]",
            "y[i] = sum[j](if i <= j then x[j - i] * w[i] else w[j])",
            {{"N", 4}}},
           {"x: f64[N], w: f64[N]",
            "y: f64[N]",
            "y[i] = x[min(i + 1, N - 1)] * w[i * i % N]",
            {{"N", 5}}},
           {"x: f64[N, M], w: f64[N]",
            "y: f64[]",
            "y = sum[i, j](x[i, j] * w[i])",
            {{"N", 2}, {"M", 3}}},
           {"x: f64[N], w: f64[N]", "y: f64[N, 3]", "y[i, j] = x[i] * w[i] + x[j + 1]", {{"N", 5}}},
       }) {
    INFO(c.body);
    Gradient(std::string("kernel k(") + c.shapes + ") -> (" + c.result + ") {\n" + c.body +
                 " }\ngrad g = k wrt (x, w)",
             c.sizes)
        .check();
  }
}

TEST_CASE("gradients of attention in its forms") {
  const std::string full = "s[b, h, i, j]",
                    causal = "if j <= i + (T - S) then s[b, h, i, j] else -inf";
  for (const std::string &mask : {full, causal, std::string("s[b, h, i, j] - 0.3 * (j - i)"),
                                  std::string("if i == 1 then -inf else tanh(s[b, h, i, j]) * 2")})
    for (const char *rest :
         {// a row's norm is there, or not; weights are used twice, rounded, or a result
          "-> (o: f64[B, H, S, E], lse: f64[B, H, S]) { LET\n"
          "let p[b, h, i, j] = softmax[j](m[b, h, i, j])\n"
          "o[b, h, i, e] = sum[j](p[b, h, i, j] * v[b, h / (H / G), j, e])\n"
          "lse[b, h, i] = max(logsumexp[j](m[b, h, i, j]), -100.0) }",
          "-> (o: f64[B, H, S, E]) { LET\n"
          "o[b, h, i, e] = sum[j](softmax[j](m[b, h, i, j]) * v[b, h / (H / G), j, e]) }",
          "-> (o: f64[B, H, S, E], l: f64[B, H, S]) { LET\n"
          "let p[b, h, i, j] = softmax[j](m[b, h, i, j])\n"
          "o[b, h, i, e] = sum[j](p[b, h, i, j] * v[b, h / (H / G), j, e]) * 2.0\n"
          "l[b, h, i] = sum[j](p[b, h, i, j]^2) }",
          "-> (p: f64[B, H, S, T], o: f64[B, H, S, E], r: f64[B, S, E]) { LET\n"
          "p[b, h, i, j] = softmax[j](m[b, h, i, j])\n"
          "o[b, h, i, e] = sum[j](p[b, h, i, j] * v[b, h / (H / G), j, e])\n"
          "r[b, i, e] = mean[h](o[b, h, i, e]) }"}) {
      std::string body = rest;
      body.replace(body.find("LET"), 3,
                   "let s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h / (H / G), j, d]) * scale\n"
                   "let m[b, h, i, j] = " +
                       mask);
      const std::string text =
          "kernel a(q: f64[B, H, S, D], k: f64[B, G, T, D], v: f64[B, G, T, E], scale: f64) " +
          body.substr(0, body.find('{')) + "where H % G == 0, S <= T " +
          body.substr(body.find('{')) + "\ngrad g = a wrt (q, k, v, scale)";
      INFO(text);
      Gradient(text, {{"B", 1}, {"H", 4}, {"G", 2}, {"S", 2}, {"T", 3}, {"D", 2}, {"E", 2}})
          .check();
    }
}

TEST_CASE("gradients of normalisers that nothing else reads") {
  for (const char *e :
       {"softmax[c](x[r, c])", "log_softmax[c](x[r, c])", "softmax[r](x[r, c] * 2)"})
    Gradient(std::string("kernel k(x: f64[R, C]) -> (all: f64[R, C]) { all[r, c] = ") + e +
                 " }\ngrad g = k wrt (x)",
             {{"R", 3}, {"C", 4}})
        .check();
}

TEST_CASE("gradients of normalisers along two axes of one tensor") {
  for (const char *body :
       {// of locals, of one that is a result, and of one that is a result under a condition
        "-> (y: f64[N], z: f64[N]) {\ny[r] = sum[c](softmax[c](x[r, c]) * w[c])\n"
        "z[c] = sum[r](softmax[r](x[r, c]) * w[r]^2) }",
        "-> (p: f64[N, N], z: f64[N]) {\np[r, c] = softmax[c](x[r, c])\n"
        "z[c] = sum[r](softmax[r](x[r, c]) * w[r]) + p[c, 0] }",
        "-> (p: f64[N, N], z: f64[N]) {\np[r, c] = if r > 0 then softmax[c](x[r, c]) else 0.0\n"
        "z[r] = sum[c](softmax[c](x[r, c]) * w[c]) }"}) {
    INFO(body);
    Gradient("kernel k(x: f64[N, N], w: f64[N]) " + std::string(body) + "\ngrad g = k wrt (x, w)",
             {{"N", 3}})
        .check();
  }
}

TEST_CASE("what a condition reads is read where the solved index is inside") {
  Gradient g("kernel k(x: f64[T + 1], off: i32[T]) -> (y: f64[T]) {\n"
             "y[t in 0..T] = x[t]^2 + (if off[t] > 0 then 0.0 else x[t + 1]) }\ngrad g = k wrt (x)",
             {{"T", 4}});
  g.with("off", {0, 1, 0, 0}).check();
  // what says which column an element is of
  Gradient h("kernel k(x: f64[M, C], at: i32[N]) -> (y: f64[N]) {\n"
             "y[i in 0..N] = pad(x[i + 1, at[i]], 0.5)^2 }\ngrad g = k wrt (x)",
             {{"M", 5}, {"N", 3}, {"C", 2}});
  h.with("at", {0, 1, 1}).check();
}

TEST_CASE("gradients of losses and norms") {
  for (const char *text :
       {"kernel k(x: f64[R, C], g: f64[C], eps: f64) -> (y: f64[R, C]) {\n"
        "let mu[r] = mean[c](x[r, c])\nlet var[r] = mean[c]((x[r, c] - mu[r])^2)\n"
        "y[r, c] = (x[r, c] - mu[r]) * rsqrt(var[r] + eps * eps + 1.0) * g[c] }\ngrad d = k wrt "
        "(x, g, eps)",
        "kernel k(x: f64[R, C], at: i32[R]) -> (loss: f64[]) {\n"
        "loss = mean[r](logsumexp[c](x[r, c]) - x[r, at[r]]) }\ngrad d = k wrt (x)",
        "kernel k(x: f64[R, D], w: f64[D, C], at: i32[R]) -> (loss: f64[R]) {\n"
        "let l[r, c] = sum[d](x[r, d] * w[d, c])\nlet p[r, c] = log_softmax[c](l[r, c])\n"
        "loss[r] = if at[r] >= 0 then -p[r, at[r]] else 0 }\ngrad d = k wrt (x, w)",
        "kernel k(t: f64[C, D], at: i32[R]) -> (y: f64[R, D]) { y[r, d] = t[at[r], d]^2 }\n"
        "grad d = k wrt (t)",
        "kernel k(x: f64[C, D], pages: i32[R, 2], w: f64[C, D]) -> (y: f64[R, D]) {\n"
        "y[r, d] = sum[j in 0..2](x[pages[r, j], d] * w[pages[r, j], d]) }\ngrad d = k wrt (x, "
        "w)"}) {
    INFO(text);
    Gradient g(text, {{"R", 3}, {"C", 4}, {"D", 2}});
    g.with("at", {2, 0, 3}).with("pages", {1, 3, 0, 1, 2, 2}).check();
  }
}

TEST_CASE("gradients of rows whose elements are all the same") {
  for (const char *e :
       {"logsumexp[c in 0..C](x[r, 0])", "logsumexp[c in 0..C, d in 0..2](x[r, c] * w[c])",
        "sum[c](softmax[c](x[r, 1] * w[0]) * x[r, c])",
        "sum[c](log_softmax[c](x[r, 0]) * w[c] + x[r, c])",
        // a row is whole, whatever of it is read
        "sum[c](if c != 1 then softmax[c](x[r, c] * w[c]) else 0.0)",
        // one row of one value, whose norm has no index
        "sum[c](softmax[c](x[0, 0]) * w[c] * x[r, c])",
        "sum[c](if c > r then cumsum[c](sum[d](x[d, c]) * w[c])^2 else x[r, c])"}) {
    INFO(e);
    Gradient(std::string("kernel k(x: f64[R, C], w: f64[C]) -> (y: f64[R]) { y[r] = w[0] * ") + e +
                 " }\ngrad g = k wrt (x, w)",
             {{"R", 3}, {"C", 4}})
        .check();
  }
}

TEST_CASE("gradients of scans under a condition") {
  for (const char *e :
       {"cumsum[c](x[r, c] * w[c])", "cumprod[c](x[r, c] + w[c])", "cummax[c](x[r, c] * w[c])"}) {
    INFO(e);
    Gradient(std::string("kernel k(x: f64[R, C], w: f64[C]) -> (y: f64[R, C]) {\n"
                         "y[r, c] = if r > 0 then ") +
                 e + " * x[r - 1, c] else w[c] }\ngrad g = k wrt (x, w)",
             {{"R", 3}, {"C", 4}})
        .check();
  }
}

TEST_CASE("a row's weights are read where the solved index is inside its range") {
  Gradient("kernel k(x: f64[N, C], w: f64[C]) -> (y: f64[C]) {\n"
           "y[c] = max[r in 1..N](softmax[c](x[r, c]) * w[c]) + logsumexp[r in 1..N](x[r, c]) }\n"
           "grad g = k wrt (x, w)",
           {{"N", 4}, {"C", 3}})
      .check();
}
