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

// Which row of a thread's recurrences register r belongs to, `axis` being the axis' bits.
TK_DEVICE constexpr int row_of_register(int r, int axis) {
  int row = 0;
  for (int before = 0; before < (r & ~axis); ++before)
    row += (before & axis) == 0;
  return row;
}

// What comes before a lane, and in `all` what its warp makes of all lanes' runs in their order.
// Returns false for the first lane, before which nothing comes.
template <int lanes, class T>
TK_DEVICE bool join_lanes(Run<T> &all, Run<T> &before, Place place = {}) {
  bool any = false;
  TK_UNROLL
  for (int bit = 1; bit < lanes; bit *= 2) {
    const Run<T> other = {shuffle_xor(all.decay, bit, place), shuffle_xor(all.last, bit, place)};
    if ((lane_index() & bit) != 0) {
      before = any ? Run<T>::after(other, before) : other;
      any = true;
      all = Run<T>::after(other, all);
    } else {
      all = Run<T>::after(all, other);
    }
  }
  return any;
}

// All runs of a row at once, where the bits of the axis are those of `joined`, of the lanes, of
// `warps` neighbouring warps, and of the registers in `high`, in this order. A thread has a run for
// each value of `high`. It gives these to the threads that have as many runs in the axis' order, so
// that lanes and warps are joined once and not for each value. A slot between two threads' runs
// keeps them in different banks.
template <int warps, int joined, int high, bool backward = false, int n, class T>
TK_DEVICE void recur_block(T (&y)[n], const T (&a)[n], Run<T> (&runs)[n], T *scratch,
                           Place place = {}) {
  constexpr int axis = joined | high, lowest = high == 0 ? 1 : high & -high;
  constexpr int groups = high / lowest + 1, threads = warps * 32, count = groups * threads;
  constexpr int rows = row_of_register(n, axis), own = groups + 1, size = own * threads;
  const int warp = warp_index() % warps, thread = thread_index() % threads;
  T *const pairs = scratch + warp_index() / warps * ((2 * size + 3 * warps) * rows);
  T *const totals = pairs + 2 * size * rows, *const befores = totals + 2 * warps * rows;
  auto placeOf = [&](int r) { // of a register's run in the order of the axis
    const int p = (r & high) / lowest * threads + thread;
    return backward ? count - 1 - p : p;
  };
  auto slotOf = [&](int r) {
    const int p = placeOf(r);
    return 2 * (row_of_register(r, axis) * size + p + p / groups);
  };
  barrier(place); // whoever used the scratch memory before is done
  for_each<n>([&](int r) {
    if ((r & joined) == 0) {
      put(&pairs[slotOf(r)], runs[r].decay, place);
      put(&pairs[slotOf(r) + 1], runs[r].last, place);
    }
  });
  barrier(place);
  Run<T> upto[rows * groups], before[rows];
  bool any = false;
  for_each<rows>([&](int row) {
    T *const at = &pairs[2 * (row * size + thread * own)];
    for_each<groups>([&](int e) {
      const Run<T> next = {get(at + 2 * e, place), get(at + 2 * e + 1, place)};
      upto[row * groups + e] =
          e == 0 ? next : Run<T>::after(upto[row * groups + (e == 0 ? 0 : e - 1)], next);
    });
    Run<T> all = upto[row * groups + groups - 1];
    before[row] = all;
    any = join_lanes<32>(all, before[row], place);
    if (lane_index() == 0) {
      put(&totals[2 * (row * warps + warp)], all.decay, place);
      put(&totals[2 * (row * warps + warp) + 1], all.last, place);
    }
  });
  barrier(place);
  const bool isFirst = warp == 0 && !any;
  T whole[rows];
  for_each<rows>([&](int row) {
    // A lane for each warp; the lane of this warp tells the others what comes before it.
    const T *const total = &totals[2 * (row * warps + lane_index() % warps)];
    Run<T> all = {get(total, place), get(total + 1, place)}, beforeWarp = all;
    join_lanes<warps>(all, beforeWarp, place);
    T *const told = &befores[row * warps + warp];
    if (lane_index() == warp)
      put(told, beforeWarp.last, place);
    sync_warp(place);
    whole[row] = all.last;
    T last = get(told, place);
    if (any)
      last = warp == 0 ? before[row].last : before[row].decay * last + before[row].last;
    T *const at = &pairs[2 * (row * size + thread * own)];
    for_each<groups>([&](int e) {
      const Run<T> here = upto[row * groups + (e == 0 ? 0 : e - 1)];
      const T behind = isFirst ? here.last : here.decay * last + here.last;
      put(at + 2 * e, e == 0 ? last : behind, place);
    });
  });
  barrier(place);
  for_each<n>([&](int r) {
    if (placeOf(r) != 0)
      y[r] = a[r] * get(&pairs[slotOf(r)], place) + y[r];
    runs[r].last = whole[row_of_register(r, axis)];
  });
}

} // namespace tk
