// tanh with a bounded error, for whole tiles, and soft caps of scores: factor * tanh(x * scale), with
// what is added to them and powers of 2 of the sums.
#pragma once

namespace tk {

// tanh(x) with an absolute error of 2^-22 (3 2^-24 where |x| <= 0.5). A polynomial, fitted for the
// least error, takes as many instructions as exponential and reciprocal do, but none on the unit
// that a softmax keeps busy: it is used where all numbers of a warp are small.
TK_DEVICE float tanh_small(float x) {
  const float u = x * x;
  float p = ::fmaf(-0.04422886f, u, 0.13185849f);
  p = ::fmaf(p, u, -0.3332646f);
  return x * ::fmaf(p, u, 1.0f);
}
TK_DEVICE float tanh_approx(float x) {
  return ::fmaf(-2.0f, reciprocal_approx(exp2_approx(x * 2.8853900817779268f) + 1.0f), 1.0f);
}
// Are all |x| of a warp at most `bound`?
template <int n> TK_DEVICE bool are_within(const float (&x)[n], float bound) {
  float largest = 0.0f;
  for_each<n>([&](int i) { largest = ::fmaxf(largest, ::fabsf(x[i])); });
  return !any_in_warp(largest > bound);
}
template <int n> TK_DEVICE void tanh_approx(float (&y)[n], const float (&x)[n]) {
  if (are_within(x, 0.5f))
    for_each<n>([&](int i) { y[i] = tanh_small(x[i]); });
  else
    for_each<n>([&](int i) { y[i] = tanh_approx(x[i]); });
}
// tanh(x * scale) * factor with an absolute error of 2^-22 of the factor. The polynomial is one of
// w = x * x - bound, whose sign says whether |x * scale| is at most 0.3, where three coefficients do:
// an instruction looks at two signs, where the greatest |x| takes one for each x. The coefficients
// have scale and factor in them. The bound is finite, so that a scale next to nothing leaves
// x * scale * factor, and nothing is small under scales whose powers could overflow. Beyond it
// tanh_small is looked for, which costs what is small half a percent.
struct ScaledTanh {
  float scale, factor, bound, c0, c1, c2;
  TK_DEVICE ScaledTanh(float scale, float factor) : scale(scale), factor(factor) {
    const float u = scale * scale, first = scale * factor;
    bound = u < 1e8f ? ::fminf(0.09f * reciprocal_approx(u), 1e30f) : 0.0f;
    const float h = u * bound;
    c0 = first * ::fmaf(::fmaf(0.1252259f, h, -0.3329748f), h, 0.99999601f);
    c1 = first * u * ::fmaf(0.2504518f, h, -0.3329748f);
    c2 = first * u * u * 0.1252259f;
  }
  template <int n, class Add, class Then>
  TK_DEVICE void any(float *y, const float *x, Add add, Then then) const {
    float v[n];
    for_each<n>([&](int i) { v[i] = x[i] * scale; });
    if (are_within(v, 0.5f))
      for_each<n>([&](int i) { y[i] = then(i, ::fmaf(factor, tanh_small(v[i]), add(i))); });
    else
      for_each<n>([&](int i) { y[i] = then(i, ::fmaf(factor, tanh_approx(v[i]), add(i))); });
  }
  // `add` is of numbers that are small, `add_any` of any; `are_small` is 0 where none count as such.
  // What follows all but the `first` ones of the results, a constant, is behind the branch: an
  // exponential keeps a unit of its own busy for as long as several other instructions take, and
  // finds these in what is computed next.
  template <int n, class Add, class AddAny, class Then>
  TK_DEVICE void part(float *y, const float *x, u32 are_small, int first, Add add, AddAny add_any,
                      Then then) const {
    constexpr int most = n % 16 == 0 ? 16 : n;
    const auto within = [&](int i, float sum) { return i < first ? then(sum) : sum; };
    float w[n];
    for_each<n>([&](int i) { w[i] = ::fmaf(x[i], x[i], -bound); });
    for_each<n>([&](int i) { are_small &= as_bits(w[i]); });
    if (any_in_warp(are_small >> 31 == 0)) {
      for_each<n / most>([&](int k) {
        any<most>(
            &y[k * most], &x[k * most], [&](int i) { return add_any(k * most + i); },
            [&](int i, float sum) { return within(k * most + i, sum); });
      });
    } else {
      for_each<n>([&](int i) {
        y[i] = within(i, ::fmaf(x[i], ::fmaf(::fmaf(c2, w[i], c1), w[i], c0), add(i)));
      });
    }
    for_each<n>([&](int i) {
      if (i >= first)
        y[i] = then(y[i]);
    });
  }
};
// A part at a time: beside a fragment's x there may be no registers for as many w. The more there
// are, the less often threads vote.
template <int wanted, int n> TK_DEVICE constexpr int scores_of_part() {
  return wanted != 0 && n % wanted == 0 ? wanted : n % 16 == 0 ? n / 4 : n;
}
// Of part i's exponentials so many are within its branch. Where a warpgroup's own instructions are
// what a step takes (`wanted`), half of a part that has the next one's squares behind it, and more
// of the last one, which has little but roundings. In a window that is 1 to 2 % faster than 10.
template <int wanted, int n, int part> TK_DEVICE constexpr int exponentials_within(int i) {
  if (wanted == 0)
    return part == 16 ? 10 : part / 2;
  return i + 1 < n / part ? part / 2 : part == 16 ? 12 : part - part / 8;
}
template <int wanted = 0, int n, class Add>
TK_DEVICE void scaled_tanh(float (&y)[n], const float (&x)[n], const ScaledTanh &tanh, Add add) {
  constexpr int part = scores_of_part<wanted, n>();
  for_each<n / part>([&](int i) {
    const auto here = [&](int r) { return add(i * part + r); };
    tanh.template part<part>(&y[i * part], &x[i * part], ~0u, part, here, here,
                             [](float sum) { return sum; });
  });
}
// Powers of 2 of the same.
template <int wanted = 0, int n, class Add>
TK_DEVICE void exp2_scaled_tanh(float (&y)[n], const float (&x)[n], const ScaledTanh &tanh,
                                Add add) {
  constexpr int part = scores_of_part<wanted, n>();
  for_each<n / part>([&](int i) {
    const auto here = [&](int r) { return add(i * part + r); };
    tanh.template part<part>(&y[i * part], &x[i * part], ~0u,
                             exponentials_within<wanted, n, part>(i), here, here,
                             [](float sum) { return exp2_approx(sum); });
  });
}
// base + slope * column, a constant; base where that is the first one.
TK_DEVICE float at_column(float slope, float column, float base) {
  return column == 0.0f ? base : ::fmaf(slope, column, base);
}
// What powers of 2 add for references of a thread's rows, and `first`, which all of its columns add.
// Where references of each two rows are the same but for rounding, a column adds one number for both.
template <int rows> struct RowReferences {
  float offset[rows];
  u32 are_shared = ~0u;
  TK_DEVICE RowReferences(const float (&reference)[rows], float first) {
    for_each<rows>([&](int r) { offset[r] = exp_offset(reference[r]) + first; });
    for_each<rows / 2>([&](int k) {
      if (!(::fabsf(reference[2 * k + 1] - reference[2 * k]) <= 1.0f))
        are_shared = 0;
    });
  }
};
// The same under references of rows, of which row(r) is that of register r, less factor * step /
// log2(e). What a loop need not compute in each step is in them: it makes steps longer.
template <int wanted = 0, int n, int rows, class Row, class Add>
TK_DEVICE void exp2_scaled_tanh(float (&y)[n], const float (&x)[n], const ScaledTanh &tanh,
                                const RowReferences<rows> &under, float factor, float step, Row row,
                                Add add) {
  constexpr int part = scores_of_part<wanted, n>();
  const auto offset = [&](int r) { return ::fmaf(factor, step, under.offset[r]); };
  float shared[rows / 2];
  for_each<rows / 2>([&](int k) { shared[k] = offset(2 * k); });
  for_each<n / part>([&](int i) {
    const auto add_shared = [&](int r) {
      return add(i * part + r, shared[row(i * part + r) / 2]);
    };
    tanh.template part<part>(
        &y[i * part], &x[i * part], under.are_shared, exponentials_within<wanted, n, part>(i),
        add_shared,
        [&](int r) {
          return under.are_shared ? add_shared(r) : add(i * part + r, offset(row(i * part + r)));
        },
        [](float sum) { return exp2_approx(sum); });
  });
}
template <int wanted = 0, int n>
TK_DEVICE void scaled_tanh(float (&y)[n], const float (&x)[n], const ScaledTanh &tanh) {
  scaled_tanh<wanted>(y, x, tanh, [](int) { return -0.0f; });
}

} // namespace tk
