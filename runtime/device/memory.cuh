// Global and shared memory.
#pragma once

namespace tk {

// The machine word that moves `bytes` bytes at once.
template <int bytes> struct Word;
template <> struct Word<1> {
  using Type = u8;
};
template <> struct Word<2> {
  using Type = u16;
};
template <> struct Word<4> {
  using Type = u32;
};
template <> struct Word<8> {
  using Type = uint2;
};
template <> struct Word<16> {
  using Type = uint4;
};
template <class T, int n> union Packed {
  typename Word<sizeof(T) * n>::Type word;
  T element[n];
  TK_DEVICE Packed() {}
};

// The 32-bit word that begins at element 0 of x. Copied as a word: what an instruction leaves is
// what the next one takes, without taking elements apart.
template <class T> TK_DEVICE u32 word_of(const T *x) {
  u32 word;
  memcpy(&word, x, 4);
  return word;
}
template <class T> TK_DEVICE void split_word(T *y, u32 word) { memcpy(y, &word, 4); }

// T, but not for deduction: a literal is converted.
template <class T> struct Same {
  using Type = T;
};

// One element.
template <class T> TK_DEVICE T get(const T *from, Place = {}) { return *from; }
template <class T> TK_DEVICE void put(T *to, T x, Place = {}) { *to = x; }

// n neighbouring elements, sizeof(T) * n at most 16 bytes and a power of two, aligned to that.
template <int n, class T> TK_DEVICE void load(T *y, const T *from) {
  Packed<T, n> packed;
  packed.word = *reinterpret_cast<const decltype(packed.word) *>(from);
  for_each<n>([&](int i) { y[i] = packed.element[i]; });
}
// Where `mask` is false memory is not touched, and all n elements are `other`.
template <int n, class T>
TK_DEVICE void load(T *y, const T *from, bool mask, typename Same<T>::Type other) {
  Packed<T, n> packed;
  for_each<n>([&](int i) { packed.element[i] = other; });
  if (mask)
    packed.word = *reinterpret_cast<const decltype(packed.word) *>(from);
  for_each<n>([&](int i) { y[i] = packed.element[i]; });
}
template <int n, class T> TK_DEVICE void store(T *to, const T *x, bool mask = true) {
  Packed<T, n> packed;
  for_each<n>([&](int i) { packed.element[i] = x[i]; });
  if (mask)
    *reinterpret_cast<decltype(packed.word) *>(to) = packed.word;
}

// The same with a mask for each element: one access where all are true.
template <int n, class T>
TK_DEVICE void load_run(T *y, const T *from, const bool *mask, typename Same<T>::Type other) {
  bool all = true;
  for_each<n>([&](int i) { all = all && mask[i]; });
  if (all)
    load<n>(y, from);
  else
    for_each<n>([&](int i) { y[i] = mask[i] ? get(from + i) : other; });
}
template <int n, class T> TK_DEVICE void store_run(T *to, const T *x, const bool *mask) {
  bool all = true;
  for_each<n>([&](int i) { all = all && mask[i]; });
  if (all)
    store<n>(to, x);
  else
    for_each<n>([&](int i) {
      if (mask[i])
        put(to + i, x[i]);
    });
}

// Hides where the elements, of 1 or 2 bytes, came from: what was computed from them before is not
// known to be what they give again.
template <int n, class T> TK_DEVICE void hold(T (&x)[n]) {
  constexpr int step = 4 / sizeof(T);
  static_assert(n % step == 0, "the elements fill words");
  TK_UNROLL
  for (int i = 0; i < n; i += step) {
    u32 word = word_of(x + i);
    asm volatile("" : "+r"(word));
    split_word(x + i, word);
  }
}

TK_DEVICE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// Begins to copy `bytes` (4, 8 or 16) from global to shared memory; where `mask` is false zeros
// are written and `from` is not touched.
template <int bytes> TK_DEVICE void copy_async(void *to, const void *from, bool mask = true) {
  const int size = mask ? bytes : 0;
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(size)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
                 "l"(from), "n"(bytes), "r"(size)
                 : "memory");
}
// The same for n elements of less than 4 bytes together, complete when it returns.
template <int n, class T> TK_DEVICE void copy_now(T *to, const T *from, bool mask = true) {
  T x[n];
  load<n>(x, from, mask, T{});
  store<n>(to, x);
}
TK_DEVICE void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most `pending` of this thread's latest groups are incomplete.
template <int pending> TK_DEVICE void async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

} // namespace tk
