// Two reductions over a row, of which one needs the other's result, in one exchange between warps:
// each part has both of its own, and parts are joined.
#pragma once

namespace tk {

// The mean of some elements and the sum of the squares of their differences from it.
struct Moments {
  float first, second;

  // Joins those of lanes that differ in the bits of `mask`, of `count` elements each.
  template <int mask> TK_DEVICE void join_lanes(float count, Place place = {}) {
    TK_UNROLL
    for (int bit = 16; bit > 0; bit /= 2)
      if (mask & bit) {
        const float other = shuffle_xor(first, bit, place);
        join(Moments{other, shuffle_xor(second, bit, place)}, count);
        count *= 2;
      }
  }

  // Joins those of `count` others to those of as many.
  TK_DEVICE void join(const Moments &other, float count) {
    const float difference = other.first - first, both = second + other.second;
    second = ::fmaf(difference * difference, count * 0.5f, both);
    first = (first + other.first) * 0.5f;
  }
};

// A maximum and the sum of exponentials under it.
struct Weighed {
  float first, second;

  template <int mask> TK_DEVICE void join_lanes(float, Place place = {}) {
    float most[1] = {first};
    reduce_lanes<Maximum, mask>(most, place);
    float sum[1] = {second * exp_scale_approx(first, most[0])};
    reduce_lanes<Sum, mask>(sum, place);
    first = most[0], second = sum[0];
  }

  TK_DEVICE void join(const Weighed &other) {
    const float most = maximum(first, other.first);
    second = second * exp_scale_approx(first, most) +
             other.second * exp_scale_approx(other.first, most);
    first = most;
  }
};

// So many elements fit a thread's registers as f32; of more, parts of as many are joined.
constexpr int elements_at_once = 32;

// Those of n elements from x on.
template <int n> TK_DEVICE Moments moments_of(const float *x) {
  if constexpr (n > elements_at_once) {
    Moments moments = moments_of<n / 2>(x);
    moments.join(moments_of<n / 2>(x + n / 2), n / 2);
    return moments;
  } else {
    float terms[n];
    for_each<n>([&](int r) { terms[r] = x[r]; });
    reduce_registers<Sum, -1>(terms);
    const float mean = terms[0] * (1.0f / n);
    for_each<n>([&](int r) { terms[r] = (x[r] - mean) * (x[r] - mean); });
    reduce_registers<Sum, -1>(terms);
    return {mean, terms[0]};
  }
}
template <int n> TK_DEVICE Weighed weighed_of(const float *x) {
  if constexpr (n > elements_at_once) {
    Weighed weighed = weighed_of<n / 2>(x);
    weighed.join(weighed_of<n / 2>(x + n / 2));
    return weighed;
  } else {
    float terms[n];
    for_each<n>([&](int r) { terms[r] = x[r]; });
    reduce_registers<Maximum, -1>(terms);
    const float most = terms[0];
    for_each<n>([&](int r) { terms[r] = wide_exp_diff(x[r], most); });
    reduce_registers<Sum, -1>(terms);
    return {most, terms[0]};
  }
}

// Those of a warp's elements, of which each thread has n.
template <int n> TK_DEVICE Moments moments_of_warp(const float (&x)[n], Place place = {}) {
  Moments moments = moments_of<n>(x);
  moments.join_lanes<31>(n, place);
  return moments;
}
template <int n> TK_DEVICE Weighed weigh_warp(const float (&x)[n], Place place = {}) {
  Weighed weighed = weighed_of<n>(x);
  weighed.join_lanes<31>(n, place);
  return weighed;
}

// The same, at once; weights[r] is the exponential of x[r] under the warp's maximum.
template <int n>
TK_DEVICE Weighed weigh_warp(float (&weights)[n], const float (&x)[n], Place place = {}) {
  float terms[n], most[1], sum[1];
  for_each<n>([&](int r) { terms[r] = x[r]; });
  reduce_registers<Maximum, -1>(terms);
  most[0] = terms[0];
  reduce_lanes<Maximum, 31>(most, place);
  for_each<n>([&](int r) { terms[r] = weights[r] = wide_exp_diff(x[r], most[0]); });
  reduce_registers<Sum, -1>(terms);
  sum[0] = terms[0];
  reduce_lanes<Sum, 31>(sum, place);
  return {most[0], sum[0]};
}

// Joins those of all warps of a block, of `count` elements each. `scratch` holds 4 numbers for
// every warp; `round` counts its uses: half of it is written while others may still read the other
// half.
template <int warps, class Pair>
TK_DEVICE void join_warps(Pair &x, float count, float *scratch, int &round, Place place = {}) {
  float *parts = scratch + (round++ & 1) * 2 * warps;
  if (lane_index() == 0) {
    put(&parts[warp_index()], x.first, place);
    put(&parts[warps + warp_index()], x.second, place);
  }
  barrier(place);
  x.first = get(&parts[lane_index() % warps], place);
  x.second = get(&parts[warps + lane_index() % warps], place);
  x.template join_lanes<warps - 1>(count, place);
}

} // namespace tk
