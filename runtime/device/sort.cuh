// A row sorted by the threads of a block. Included by tk_device.cuh, the device's or its twin.
#pragma once

namespace tk {

// Where sorted element i lies. Threads write neighbours, and read elements that are far apart: without
// the exchange of places those would lie in one bank.
template <int n> TK_DEVICE int sorted_place(int i) { return i ^ (i / n % n); }

// The smaller one of each pair of elements at a distance of `stride` comes first, then of half of it.
template <int stride, int n> TK_DEVICE void order_pairs(i64 (&x)[n]) {
  if constexpr (stride > 0) {
    for_each<n>([&](int r) {
      if ((r & stride) == 0) {
        const i64 a = x[r], b = x[r + stride];
        x[r] = b < a ? b : a;
        x[r + stride] = b < a ? a : b;
      }
    });
    order_pairs<stride / 2>(x);
  }
}

// Sorts runs of `width` elements whose halves are sorted, then longer ones: the second half is compared
// from its end on.
template <int width, int n> TK_DEVICE void sort_registers(i64 (&x)[n]) {
  if constexpr (width <= n) {
    for_each<n>([&](int r) {
      const int other = r ^ (width - 1);
      if (r < other) {
        const i64 a = x[r], b = x[other];
        x[r] = b < a ? b : a;
        x[other] = b < a ? a : b;
      }
    });
    order_pairs<width / 4>(x);
    sort_registers<width * 2>(x);
  }
}

// Compares the elements with those of the thread whose number differs in the bits of `mask`. Of the two
// threads the one with bit `upper` keeps the larger ones. With `reversed` the other thread's elements
// come from its last one on.
template <int threads, bool reversed, int n>
TK_DEVICE void exchange_elements(i64 (&x)[n], i64 *memory, int mask, int upper, Place place) {
  const bool larger = (thread_index() & upper) != 0;
  auto keep = [&](i64 own, i64 other) { return (other < own) != larger ? other : own; };
  if (mask < 32) {
    for_each<n / 2>([&](int r) {
      const int last = n - 1 - r;
      const i64 a = shuffle_xor(x[reversed ? last : r], mask, place),
                b = shuffle_xor(x[reversed ? r : last], mask, place);
      x[r] = keep(x[r], a);
      x[last] = keep(x[last], b);
    });
    return;
  }
  barrier(place); // whoever read the memory before is done
  for_each<n>([&](int r) { put(&memory[r * threads + thread_index()], x[r], place); });
  barrier(place);
  for_each<n>([&](int r) {
    const int from = reversed ? n - 1 - r : r;
    x[r] = keep(x[r], get(&memory[from * threads + (thread_index() ^ mask)], place));
  });
}

// Sorts the n * threads elements in `memory`, in any order there. Sorted element i is left at
// sorted_place<n>(i). All are different, or their order does not matter.
template <int n, int threads> TK_DEVICE void sort_block(i64 *memory, Place place = {}) {
  i64 x[n];
  barrier(place); // all elements are written
  for_each<n>([&](int r) { x[r] = get(&memory[r * threads + thread_index()], place); });
  sort_registers<2>(x);
  TK_KEEP_LOOP
  for (int width = 2; width <= threads; width *= 2) {
    exchange_elements<threads, true>(x, memory, width - 1, width / 2, place);
    TK_KEEP_LOOP
    for (int mask = width / 4; mask > 0; mask /= 2)
      exchange_elements<threads, false>(x, memory, mask, mask, place);
    order_pairs<n / 2>(x);
  }
  barrier(place); // whoever read the memory before is done
  for_each<n>([&](int r) {
    put(&memory[sorted_place<n>(thread_index() * n + r)], x[r], place);
  });
  barrier(place);
}

} // namespace tk
