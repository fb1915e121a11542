// Sums by a key in shared memory. Included by tk_device.cuh, the device's or its twin.
#pragma once

namespace tk {

// Leaves in `sums` the sum of the values x with each of `bins` keys. Values with another key are in
// no sum, nor are those of threads that do not own them.
template <int bins, int warps, int n>
TK_DEVICE void add_by_key(i32 *sums, const i32 (&key)[n], const i32 (&x)[n], bool owns,
                          Place place = {}) {
  barrier(place); // whoever used the memory before is done
  for (int i = thread_index(); i < bins; i += warps * 32)
    put(&sums[i], 0, place);
  barrier(place);
  for_each<n>([&](int r) {
    if (owns && (u32)key[r] < (u32)bins && x[r] != 0)
      add_shared(&sums[key[r]], x[r], place);
  });
  barrier(place);
}

// The same of floats, in a fixed order: each warp has `bins` sums of its own in `sums`, and its lanes
// with one key add one after the other.
template <int bins, int warps, int n>
TK_DEVICE void add_by_key(float *sums, const i32 (&key)[n], const float (&x)[n], bool owns,
                          Place place = {}) {
  constexpr int threads = warps * 32;
  barrier(place); // whoever used the memory before is done
  for (int i = thread_index(); i < bins * warps; i += threads)
    put(&sums[i], 0.0f, place);
  barrier(place);
  float *const own = &sums[warp_index() * bins];
  for_each<n>([&](int r) {
    const bool counts = owns && (u32)key[r] < (u32)bins;
    const u32 same = same_in_warp(counts ? (u32)key[r] : ~0u, place);
    const int before = count_ones(same & ((1u << lane_index()) - 1));
    const int rounds = most_in_warp(counts ? count_ones(same) : 0, place);
    if (rounds == 32) { // one key: all lanes get the same sum
      float sum = x[r];
      for (int mask = 1; mask < 32; mask *= 2)
        sum += shuffle_xor(sum, mask, place);
      if (lane_index() == 0)
        put(&own[key[r]], get(&own[key[r]], place) + sum, place);
      sync_warp(place);
      return;
    }
    for (int round = 0; round < rounds; ++round) {
      if (counts && before == round)
        put(&own[key[r]], get(&own[key[r]], place) + x[r], place);
      sync_warp(place);
    }
  });
  barrier(place);
  for (int i = thread_index(); i < bins; i += threads) {
    float sum = get(&sums[i], place);
    for (int warp = 1; warp < warps; ++warp)
      sum += get(&sums[warp * bins + i], place);
    put(&sums[i], sum, place);
  }
  barrier(place);
}

} // namespace tk
