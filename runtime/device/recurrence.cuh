// Linear recurrences over tiles in registers: y[j] = a[j] * y[j - 1] + x[j]. A run of elements is a
// pair, what comes before it to what comes out: the product of its decays, and its last element if
// nothing comes before it. Where nothing does, decays are not used, so that they may be infinite.
// Included by tk_device.cuh, the device's or its twin.
#pragma once

namespace tk {

// A run's pair, of which `of` comes first. Values of no run have no pair.
template <class T> struct Run {
  T decay, last;
  TK_DEVICE static Run after(Run of, Run then) {
    return {of.decay * then.decay, then.decay * of.last + then.last};
  }
};

// Each element is a run of its own at first, and the last one's end that of the axis.
template <int n, class T>
TK_DEVICE void begin_runs(Run<T> (&runs)[n], const T (&a)[n], const T (&y)[n]) {
  for_each<n>([&](int r) { runs[r] = {a[r], y[r]}; });
}
template <int n, class T> TK_DEVICE void end_runs(T (&last)[n], const Run<T> (&runs)[n]) {
  for_each<n>([&](int r) { last[r] = runs[r].last; });
}
// Runs of the register number's bit are joined. `y` and `a` are each element's pair in its run,
// `runs` the run's. As scan_registers.
template <int bit, bool backward = false, int n, class T>
TK_DEVICE void recur_registers(T (&y)[n], T (&a)[n], Run<T> (&runs)[n]) {
  TK_UNROLL
  for (int r = 0; r < n; ++r)
    if (!(r & bit)) {
      const int first = backward ? r | bit : r, then = backward ? r : r | bit;
      y[then] = a[then] * runs[first].last + y[then];
      a[then] = runs[first].decay * a[then];
      runs[r] = runs[r | bit] = Run<T>::after(runs[first], runs[then]);
    }
}
// All steps at once where a thread has the whole axis, whose bits are those of `mask` in their
// order.
template <int mask, bool backward = false, int n, class T>
TK_DEVICE void recur_in_thread(T (&y)[n], T (&a)[n], Run<T> (&runs)[n]) {
  TK_UNROLL
  for (int i = 0; i < n; ++i) {
    const int r = backward ? n - 1 - i : i, others = r & ~mask;
    const bool isFirst = (r & mask) == (backward ? mask : 0);
    if (!isFirst) {
      const int before =
          backward ? ((((r | ~mask) + 1) & mask) | others) : ((((r & mask) - 1) & mask) | others);
      y[r] = a[r] * y[before] + y[r];
    }
    if ((r & mask) == (backward ? 0 : mask))
      runs[others].last = y[r];
  }
}
// The bits of the lane number in `mask`, in their order: pairs of lanes are joined first, and each
// element takes once what comes before it ...
template <int mask, int joined, bool backward = false, int n, class T>
TK_DEVICE void recur_lanes(T (&y)[n], T (&a)[n], Run<T> (&runs)[n], Place place = {}) {
  Run<T> before[n];
  TK_UNROLL
  for (int r = 0; r < n; ++r)
    if ((r & joined) == 0) {
      bool any = false;
      before[r] = {T(1), T(0)};
      TK_UNROLL
      for (int bit = 1; bit < 32; bit *= 2)
        if ((mask & bit) != 0) {
          const Run<T> other = {shuffle_xor(runs[r].decay, bit, place),
                                shuffle_xor(runs[r].last, bit, place)};
          if (((lane_index() & bit) != 0) != backward) { // the later one of the two
            before[r] = any ? Run<T>::after(other, before[r]) : other;
            any = true;
            runs[r] = Run<T>::after(other, runs[r]);
          } else {
            runs[r] = Run<T>::after(runs[r], other);
          }
        }
    }
  const bool isFirst = (lane_index() & mask) == (backward ? mask : 0);
  TK_UNROLL
  for (int r = 0; r < n; ++r) {
    const int leader = r & ~joined;
    if (!isFirst) {
      y[r] = a[r] * before[leader].last + y[r];
      a[r] = before[leader].decay * a[r];
    }
    runs[r] = runs[leader];
  }
}
// ... or of the warp number.
template <int mask, int warps, int joined, bool backward = false, int n, class T>
TK_DEVICE void recur_warps(T (&y)[n], T (&a)[n], Run<T> (&runs)[n], T *scratch, Place place = {}) {
  constexpr int threads = warps * 32;
  const int own = warp_index() & mask, first = thread_index() & ~(mask * 32);
  barrier(place); // whoever used the scratch memory before is done
  for_each<n>([&](int r) {
    if ((r & joined) == 0) {
      put(&scratch[2 * r * threads + thread_index()], runs[r].decay, place);
      put(&scratch[(2 * r + 1) * threads + thread_index()], runs[r].last, place);
    }
  });
  barrier(place);
  Run<T> before[n];
  TK_UNROLL
  for (int r = 0; r < n; ++r) {
    const int leader = r & ~joined;
    if (r == leader) {
      constexpr int begin = backward ? mask : 0;
      auto runOf = [&](int warp) {
        const T *at = &scratch[2 * r * threads + first + warp * 32];
        return Run<T>{get(at, place), get(at + threads, place)};
      };
      Run<T> all = runOf(begin);
      before[r] = all;
      TK_UNROLL
      for (int step = 1; step < warps; ++step) {
        const int warp = backward ? begin - step : step;
        if (warp >= 0 && (warp & ~mask) == 0) {
          all = Run<T>::after(all, runOf(warp));
          if (backward ? warp > own : warp < own)
            before[r] = all;
        }
      }
      runs[r] = all;
    } else {
      runs[r] = runs[leader];
    }
    if (backward ? own < mask : own > 0) {
      y[r] = a[r] * before[leader].last + y[r];
      a[r] = before[leader].decay * a[r];
    }
  }
}

} // namespace tk
