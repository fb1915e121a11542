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
        const float other = shuffle_xor(first, bit, place), difference = other - first;
        const float both = second + shuffle_xor(second, bit, place);
        second = ::fmaf(difference * difference, count * 0.5f, both);
        first = (first + other) * 0.5f;
        count *= 2;
      }
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
};

// Those of a warp's elements, of which each thread has n.
template <int n> TK_DEVICE Moments moments_of_warp(const float (&x)[n], Place place = {}) {
  float terms[n];
  for_each<n>([&](int r) { terms[r] = x[r]; });
  reduce_registers<Sum, -1>(terms);
  const float mean = terms[0] * (1.0f / n);
  for_each<n>([&](int r) { terms[r] = (x[r] - mean) * (x[r] - mean); });
  reduce_registers<Sum, -1>(terms);
  Moments moments{mean, terms[0]};
  moments.join_lanes<31>(n, place);
  return moments;
}

// The same; weights[r] is the exponential of x[r] under the warp's maximum.
template <int n>
TK_DEVICE Weighed weigh_warp(float (&weights)[n], const float (&x)[n], Place place = {}) {
  float terms[n], most[1], sum[1];
  for_each<n>([&](int r) { terms[r] = x[r]; });
  reduce_registers<Maximum, -1>(terms);
  most[0] = terms[0];
  reduce_lanes<Maximum, 31>(most, place);
  for_each<n>([&](int r) { terms[r] = weights[r] = exp_diff_approx(x[r], most[0]); });
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
