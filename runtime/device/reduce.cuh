// Reductions and scans over tiles in registers, first within a thread, then within a warp, then
// across warps. A mask names the bits of the register number, lane or warp that run along the axis.
// Every thread of a group ends with the same bits, whichever thread it is.
#pragma once

namespace tk {

struct Sum {
  template <class T> TK_DEVICE static T apply(T a, T b) { return (T)(a + b); }
};
struct Product {
  template <class T> TK_DEVICE static T apply(T a, T b) { return (T)(a * b); }
};
struct Maximum {
  template <class T> TK_DEVICE static T apply(T a, T b) { return maximum(a, b); }
};
struct Minimum {
  template <class T> TK_DEVICE static T apply(T a, T b) { return minimum(a, b); }
};
struct Any {
  TK_DEVICE static bool apply(bool a, bool b) { return a || b; }
};
struct All {
  TK_DEVICE static bool apply(bool a, bool b) { return a && b; }
};

constexpr int greatest_bit(int x) { return x < 2 ? x : 2 * greatest_bit(x / 2); }

// One step of reduce_registers: the groups' members that differ in `bit` alone are joined. Of the
// loop's end only as much is left as there are members: the compiler unrolls every iteration.
template <class Op, int mask, int bit, int n, class T> TK_DEVICE void reduce_bits(T (&x)[n]) {
  if constexpr (bit > 0) {
    if constexpr ((mask & bit) != 0) {
      constexpr int joined = mask & ~(bit - 1), last = (2 * greatest_bit(n - 1) - 1) & ~joined;
      TK_UNROLL
      for (int r = 0; r <= last; ++r)
        if ((r & joined) == 0 && (r | bit) < n)
          x[r] = Op::apply(x[r], x[r | bit]);
    }
    reduce_bits<Op, mask, bit / 2>(x);
  }
}
// Afterwards x[r] holds the result of its group for every r without a bit in `mask`.
template <class Op, int mask, int n, class T> TK_DEVICE void reduce_registers(T (&x)[n]) {
  reduce_bits<Op, mask, greatest_bit(n - 1)>(x);
}

// Bit k of the result's bits under `mask` is bit k of `number`.
constexpr int spread_over(int mask, int number) {
  int place = 0;
  for (int bit = 1; bit <= mask; bit *= 2)
    if (mask & bit) {
      place |= number & 1 ? bit : 0;
      number /= 2;
    }
  return place;
}
constexpr int count_bits(int mask) { return mask ? mask % 2 + count_bits(mask / 2) : 0; }

// As reduce_registers<Maximum, mask>, where a group's maximum is at least 0, and not -0, or NaN;
// else x[r] is some member of the group. One instruction compares three integers, but two floats.
template <int mask, int n> TK_DEVICE void maximum_as_integers(float (&x)[n]) {
  constexpr int members = 1 << count_bits(mask);
  TK_UNROLL
  for (int r = 0; r < n; ++r)
    if ((r & mask) == 0) {
      int most = ordered(x[r]);
      TK_UNROLL
      for (int k = 1; k < members; ++k)
        most = maximum(most, ordered(x[r | spread_over(mask, k)]));
      x[r] = as_float((u32)most);
    }
}

// Where extrema are: for every r without a bit in `mask`, the least of its group's `places` whose
// value is `all[r]` goes to places[r], in threads whose own extremum `own[r]` that is; in others
// the largest number. NaN, which maximum and minimum hand on, is an extremum.
template <int mask, int n, class T, class I>
TK_DEVICE void find_first(I (&places)[n], const T (&values)[n], const T (&own)[n],
                          const T (&all)[n]) {
  // Loops of constant lengths: the compiler unrolls them, however many registers there are.
  constexpr int others = n > 1 ? (2 * greatest_bit(n - 1) - 1) & ~mask : 0;
  constexpr int groups = 1 << count_bits(others), members = 1 << count_bits(mask);
  TK_UNROLL
  for (int group = 0; group < groups; ++group) {
    const int first = spread_over(others, group);
    if (first >= n)
      continue;
    // Relative to the first one places are constants, which take no registers.
    constexpr I none = (I)(~0ull >> (65 - 8 * sizeof(I)));
    const I origin = places[first];
    I least = none;
    // Where an extremum is no NaN, no value is. Without a branch for each value.
    const bool is_nan = all[first] != all[first];
    if (is_nan || own[first] == all[first]) { // few threads
      TK_UNROLL
      for (int k = 0; k < members; ++k) {
        const int r = first | spread_over(mask, k);
        if (r < n) {
          const bool is_here = (values[r] == all[first]) | (values[r] != values[r]);
          const I lesser = Minimum::apply(least, (I)(places[r] - origin));
          least = is_here ? lesser : least;
        }
      }
    }
    const I place = least == none ? none : (I)(origin + least);
    places[first] = place;
  }
}

template <class Op, int mask, int n, class T>
TK_DEVICE void reduce_lanes(T (&x)[n], Place place = {}) {
  TK_UNROLL
  for (int bit = 16; bit > 0; bit /= 2)
    if (mask & bit)
      TK_UNROLL
  for (int r = 0; r < n; ++r)
    x[r] = Op::apply(x[r], shuffle_xor(x[r], bit, place));
}

// The threads that exchange values: all of the block, or FirstThreads (roles.cuh).
struct WholeBlock {
  static constexpr bool is_scratch_free = false;
  TK_DEVICE static void meet(Place place) { barrier(place); }
};

// `scratch` holds n elements for every thread. `warps` is the number of warps among `Threads`,
// which are the block's first ones.
template <class Op, int mask, int warps, class Threads = WholeBlock, int n, class T>
TK_DEVICE void reduce_warps(T (&x)[n], T *scratch, Place place = {}) {
  constexpr int threads = warps * 32;
  if constexpr (!Threads::is_scratch_free)
    Threads::meet(place); // whoever used the scratch memory before is done
  for_each<n>([&](int r) { put(&scratch[r * threads + thread_index()], x[r], place); });
  Threads::meet(place);
  const int first = thread_index() & ~(mask * 32);
  TK_UNROLL
  for (int r = 0; r < n; ++r) {
    T sum = get(&scratch[r * threads + first], place);
    TK_UNROLL
    for (int warp = 1; warp < warps; ++warp)
      if ((warp & ~mask) == 0)
        sum = Op::apply(sum, get(&scratch[r * threads + first + warp * 32], place));
    x[r] = sum;
  }
}

// Lanes that differ in the bits of `mask` combine their n values, of which each is left with a
// part: at every bit a lane hands the half that the other keeps, until it has a single one. What it
// has is at x[0] and on; gather_lanes() gives every lane all of them.
template <class Op, int mask, int n, int bit = 16, int all, class T>
TK_DEVICE void scatter_lanes(T (&x)[all], Place place = {}) {
  if constexpr (bit > 0) {
    constexpr bool divides = (mask & bit) != 0 && n > 1;
    if constexpr (divides) {
      const bool upper = lane_index() & bit;
      TK_UNROLL
      for (int r = 0; r < n / 2; ++r) {
        const T own = upper ? x[r + n / 2] : x[r];
        x[r] = Op::apply(own, shuffle_xor(upper ? x[r] : x[r + n / 2], bit, place));
      }
    } else if constexpr ((mask & bit) != 0) {
      x[0] = Op::apply(x[0], shuffle_xor(x[0], bit, place));
    }
    scatter_lanes<Op, mask, divides ? n / 2 : n, bit / 2>(x, place);
  }
}
template <int mask, int n, int bit = 16, int all, class T>
TK_DEVICE void gather_lanes(T (&x)[all], Place place = {}) {
  if constexpr (bit > 0) {
    constexpr bool divided = (mask & bit) != 0 && n > 1;
    gather_lanes<mask, divided ? n / 2 : n, bit / 2>(x, place);
    if constexpr (divided) {
      const bool upper = lane_index() & bit;
      TK_UNROLL
      for (int r = 0; r < n / 2; ++r) {
        const T own = x[r], other = shuffle_xor(own, bit, place);
        x[r] = upper ? other : own;
        x[r + n / 2] = upper ? own : other;
      }
    }
  }
}
constexpr int scattered(int mask, int n) {
  return mask == 0 || n == 1 ? n : scattered(mask & (mask - 1), n / 2);
}

// reduce_lanes and reduce_warps at once, with the same bits; n is a power of two. Lanes that have
// the same sums would exchange each of them n times.
template <class Op, int lanes, int mask, int warps, class Threads = WholeBlock, int n, class T>
TK_DEVICE void reduce_threads(T (&x)[n], T *scratch, Place place = {}) {
  static_assert((n & (n - 1)) == 0, "lanes take halves of the values");
  constexpr int count = scattered(lanes, n);
  scatter_lanes<Op, lanes, n>(x, place);
  T part[count];
  for_each<count>([&](int r) { part[r] = x[r]; });
  reduce_warps<Op, mask, warps, Threads>(part, scratch, place);
  for_each<count>([&](int r) { x[r] = part[r]; });
  gather_lanes<lanes, n>(x, place);
}

// Is this block the last of `count` that come here, by a counter of theirs? All threads ask, and
// all know what the other blocks wrote before they did.
TK_DEVICE bool is_last_block(int *counter, int count, int *scratch, Place place = {}) {
  barrier(place); // all threads have written, and whoever used the scratch memory before is done
  if (thread_index() == 0)
    put(scratch, count_block(counter, count, place), place);
  barrier(place);
  return get(scratch, place) == count - 1;
}

// What each of `warps` warps has left at scratch[warp], for n values: all are joined. Each lane
// takes some, as reading and joining them all would cost every thread more than exchanging among
// lanes.
template <class Op, int warps, int n, class T>
TK_DEVICE void join_parts(T (&x)[n], const T *scratch, Place place = {}) {
  constexpr int lanes = warps < 32 ? warps : 32, rounds = warps / lanes;
  TK_UNROLL
  for (int r = 0; r < n; ++r) {
    T part[rounds];
    for_each<rounds>([&](int i) {
      part[i] = get(&scratch[r * warps + i * lanes + lane_index() % lanes], place);
    });
    reduce_registers<Op, rounds - 1>(part);
    x[r] = part[0];
  }
  reduce_lanes<Op, lanes - 1>(x, place);
}

// The same as reduce_warps where all lanes of a warp hold the same values. `scratch` holds n
// elements for every warp, at multiples of 16 bytes; nobody may be using it: it is not waited for.
template <class Op, int mask, int warps, int n, class T>
TK_DEVICE void reduce_uniform_warps(T (&x)[n], T *scratch, Place place = {}) {
  constexpr int manyWarps = 16; // fewer are soon read by each thread
  if (lane_index() == 0)
    for_each<n>([&](int r) { put(&scratch[r * warps + warp_index()], x[r], place); });
  barrier(place);
  if constexpr (warps >= manyWarps && mask == warps - 1) {
    join_parts<Op, warps>(x, scratch, place);
  } else {
    const int first = warp_index() & ~mask;
    TK_UNROLL
    for (int r = 0; r < n; ++r) {
      T part[warps] = {}; // by the bits of the mask
      for_each<warps>([&](int warp) {
        if ((warp & ~mask) == 0)
          part[warp] = get(&scratch[r * warps + first + warp], place);
      });
      reduce_registers<Op, mask>(part);
      x[r] = part[0];
    }
  }
}

// One step of an inclusive scan: joins blocks of the axis. `prefix` is the scan within each
// element's block, `total` its block's reduction; where they are one block, the registers that
// differ in the bits of `joined` have one total. The step's bit of the coordinate is a bit of the
// register number. Backward, `prefix` is that of each element and those behind it ...
template <class Op, int bit, bool backward = false, int n, class T>
TK_DEVICE void scan_registers(T (&prefix)[n], T (&total)[n]) {
  TK_UNROLL
  for (int r = 0; r < n; ++r)
    if (!(r & bit)) {
      if constexpr (backward)
        prefix[r] = Op::apply(prefix[r], total[r | bit]);
      else
        prefix[r | bit] = Op::apply(total[r], prefix[r | bit]);
      total[r] = total[r | bit] = Op::apply(total[r], total[r | bit]);
    }
}
// All steps at once where a thread has the whole axis, whose bits are those of `mask` in their
// order: one element after the other. The totals are those of the axis's first elements.
template <class Op, int mask, bool backward = false, int n, class T>
TK_DEVICE void scan_in_thread(T (&prefix)[n], T (&total)[n]) {
  TK_UNROLL
  for (int i = 0; i < n; ++i) {
    const int r = backward ? n - 1 - i : i, others = r & ~mask;
    if constexpr (backward) {
      if ((r & mask) != mask)
        prefix[r] = Op::apply(prefix[r], prefix[(((r | ~mask) + 1) & mask) | others]);
      if ((r & mask) == 0)
        total[r] = prefix[r];
    } else {
      if ((r & mask) != 0)
        prefix[r] = Op::apply(prefix[(((r & mask) - 1) & mask) | others], prefix[r]);
      if ((r & mask) == mask)
        total[others] = prefix[r];
    }
  }
}
// ... of the lane ...
template <class Op, int bit, int joined, bool backward = false, int n, class T>
TK_DEVICE void scan_lanes(T (&prefix)[n], T (&total)[n], Place place = {}) {
  const bool upper = ((lane_index() & bit) != 0) != backward; // the later one of the two
  T other[n];
  TK_UNROLL
  for (int r = 0; r < n; ++r) {
    const int first = r & ~joined;
    if (r == first)
      other[r] = shuffle_xor(total[r], bit, place);
    if (upper)
      prefix[r] = Op::apply(other[first], prefix[r]);
    if (r == first)
      total[r] = upper ? Op::apply(other[r], total[r]) : Op::apply(total[r], other[r]);
    else
      total[r] = total[first];
  }
}
// ... or all bits of the warp number in `mask`, in their order.
template <class Op, int mask, int warps, int joined, bool backward = false, int n, class T>
TK_DEVICE void scan_warps(T (&prefix)[n], T (&total)[n], T *scratch, Place place = {}) {
  constexpr int threads = warps * 32;
  const int own = warp_index() & mask, first = thread_index() & ~(mask * 32);
  barrier(place); // whoever used the scratch memory before is done
  for_each<n>([&](int r) {
    if ((r & joined) == 0)
      put(&scratch[r * threads + thread_index()], total[r], place);
  });
  barrier(place);
  T before[n];
  TK_UNROLL
  for (int r = 0; r < n; ++r) {
    const int leader = r & ~joined;
    if (r == leader) {
      constexpr int begin = backward ? mask : 0;
      T all = get(&scratch[r * threads + first + begin * 32], place);
      before[r] = all;
      TK_UNROLL
      for (int step = 1; step < warps; ++step) {
        const int warp = backward ? begin - step : step;
        if (warp >= 0 && (warp & ~mask) == 0) {
          all = Op::apply(all, get(&scratch[r * threads + first + warp * 32], place));
          if (backward ? warp > own : warp < own)
            before[r] = all;
        }
      }
      total[r] = all;
    } else {
      total[r] = total[leader];
    }
    if (backward ? own < mask : own > 0)
      prefix[r] = Op::apply(before[leader], prefix[r]);
  }
}

// Are all n numbers finite? Four sums are independent of each other.
template <int n> TK_DEVICE bool all_finite(const float (&x)[n]) {
  float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for_each<n>([&](int i) { sums[i % 4] = ::fmaf(x[i], 0.0f, sums[i % 4]); });
  return sums[0] + sums[1] + (sums[2] + sums[3]) == 0.0f;
}
template <int n> TK_DEVICE bool all_finite(const double (&x)[n]) {
  double sum = 0.0;
  for_each<n>([&](int i) { sum = ::fma(x[i], 0.0, sum); });
  return sum == 0.0;
}

template <class T> TK_DEVICE bool is_finite(T x) { return x * T(0) == T(0); }

// all_finite, and which numbers are not: a bit for each.
template <class T, int n>
TK_DEVICE bool find_others(const T (&x)[n], u32 (&others)[(n + 31) / 32]) {
  for_each<(n + 31) / 32>([&](int i) { others[i] = 0; });
  if (all_finite(x))
    return true;
  for_each<n>([&](int i) { others[i / 32] |= (u32)!is_finite(x[i]) << i % 32; });
  return false;
}

// The element of an array in registers that a number says.
template <class T, int n> TK_DEVICE T pick(const T (&x)[n], int at) {
  T found = x[0];
  for_each<n>([&](int i) { found = i == at ? x[i] : found; });
  return found;
}
template <class T, int n> TK_DEVICE void put_at(T (&x)[n], int at, T value) {
  for_each<n>([&](int i) { x[i] = i == at ? value : x[i]; });
}

} // namespace tk
