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
template <class T> TK_DEVICE void put(T *to, typename Same<T>::Type x, Place = {}) { *to = x; }
// One element of 2 or 4 bytes of global memory, begun here: waits that follow do not come first.
template <class T> TK_DEVICE T get_ahead(const T *from, Place = {}) {
  typename Word<sizeof(T)>::Type word;
  const u64 at = __cvta_generic_to_global(from);
  if constexpr (sizeof(T) == 2)
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(word) : "l"(at));
  else
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(word) : "l"(at));
  T x;
  memcpy(&x, &word, sizeof(T));
  return x;
}

// n neighbouring elements, sizeof(T) * n at most 16 bytes and a power of two, aligned to that.
template <int n, class T> TK_DEVICE void load(T *y, const T *from) {
  Packed<T, n> packed;
  packed.word = *reinterpret_cast<const decltype(packed.word) *>(from);
  memcpy(y, &packed, sizeof(packed));
}
// The same of 16 bytes that nothing writes while the kernel runs; where `kept` is true their lines
// stay in the second-level cache longer than others.
template <int n, class T> TK_DEVICE void load_kept(T *y, const T *from, bool kept) {
  static_assert(sizeof(T) * n == 16, "the access that has this form");
  const u64 policy = kept ? 0x14f0000000000000 : 0x1000000000000000; // evict last, evict normal
  uint4 word;
  asm("ld.global.nc.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
      : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
      : "l"(__cvta_generic_to_global(from)), "l"(policy));
  memcpy(y, &word, sizeof(word));
}
// Reads a word where `mask` is true, else leaves it. One instruction under a predicate: in a branch
// the compiler would take the word apart, and wait for it, before it reads the next.
TK_DEVICE void read_word(u32 &word, const void *from, bool mask) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\n@p ld.global.u32 %0, [%1];\n}"
               : "+r"(word)
               : "l"(__cvta_generic_to_global(from)), "r"((int)mask));
}
TK_DEVICE void read_word(uint2 &word, const void *from, bool mask) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %3, 0;\n@p ld.global.v2.u32 {%0, %1}, [%2];\n}"
               : "+r"(word.x), "+r"(word.y)
               : "l"(__cvta_generic_to_global(from)), "r"((int)mask));
}
TK_DEVICE void read_word(uint4 &word, const void *from, bool mask) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\n"
               "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
               : "+r"(word.x), "+r"(word.y), "+r"(word.z), "+r"(word.w)
               : "l"(__cvta_generic_to_global(from)), "r"((int)mask));
}
template <class Word> TK_DEVICE void read_word(Word &word, const void *from, bool mask) {
  if (mask)
    word = *static_cast<const Word *>(from);
}
// Makes the compiler see a word as one value.
TK_DEVICE void keep_word(u32 &word) { asm("" : "+r"(word)); }
TK_DEVICE void keep_word(uint2 &word) { asm("" : "+r"(word.x), "+r"(word.y)); }
TK_DEVICE void keep_word(uint4 &word) {
  asm("" : "+r"(word.x), "+r"(word.y), "+r"(word.z), "+r"(word.w));
}
template <class Word> TK_DEVICE void keep_word(Word &) {}

// Where `mask` is false memory is not touched, and all n elements are `other`.
template <int n, class T>
TK_DEVICE void load(T *y, const T *from, bool mask, typename Same<T>::Type other) {
  Packed<T, n> packed;
  for_each<n>([&](int i) { packed.element[i] = other; });
  read_word(packed.word, from, mask);
  for_each<n>([&](int i) { y[i] = packed.element[i]; });
}
// 16 bytes of a parameter that nobody reads again: the first-level cache does not keep them.
template <int n, class T> TK_DEVICE void load_once(T *y, const T *from) {
  static_assert(sizeof(T) * n == 16, "whole vectors");
  Packed<T, n> packed;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(packed.word.x), "=r"(packed.word.y), "=r"(packed.word.z), "=r"(packed.word.w)
               : "l"(__cvta_generic_to_global(from)));
  memcpy(y, &packed, sizeof(packed));
}
template <int n, class T>
TK_DEVICE void load_once(T *y, const T *from, bool mask, typename Same<T>::Type other) {
  for_each<n>([&](int i) { y[i] = other; });
  if (mask)
    load_once<n>(y, from);
}
// The same without a branch, so that the compiler reads once what it finds to be read twice: where
// `mask` is false, zeros of its own.
__device__ const uint4 zero_word = {};
template <int n, class T>
TK_DEVICE void load_common(T *y, const T *from, bool mask, typename Same<T>::Type other) {
  load<n>(y, mask ? from : reinterpret_cast<const T *>(&zero_word));
  u64 bits = 0;
  memcpy(&bits, &other, sizeof(T));
  if (bits != 0)
    for_each<n>([&](int i) { y[i] = mask ? y[i] : (T)other; });
}
template <int n, class T> TK_DEVICE void store(T *to, const T *x, bool mask = true) {
  Packed<T, n> packed;
  for_each<n>([&](int i) { packed.element[i] = x[i]; });
  if (mask)
    *reinterpret_cast<decltype(packed.word) *>(to) = packed.word;
}
// Writes a word where `mask` is true: one instruction under a predicate, as in read_word.
TK_DEVICE void write_word(uint2 word, void *to, bool mask) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %3, 0;\n@p st.global.v2.u32 [%2], {%0, %1};\n}"
               :
               : "r"(word.x), "r"(word.y), "l"(__cvta_generic_to_global(to)), "r"((int)mask)
               : "memory");
}
TK_DEVICE void write_word(uint4 word, void *to, bool mask) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\n"
               "@p st.global.v4.u32 [%4], {%0, %1, %2, %3};\n}"
               :
               : "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w),
                 "l"(__cvta_generic_to_global(to)), "r"((int)mask)
               : "memory");
}
// As `store`, of 8 or 16 bytes at an address that is computed in 64 bits: NVVM takes such a vector
// apart, into accesses of 4 bytes.
template <int n, class T> TK_DEVICE void store_far(T *to, const T *x, bool mask = true) {
  Packed<T, n> packed;
  for_each<n>([&](int i) { packed.element[i] = x[i]; });
  write_word(packed.word, to, mask);
}

// Is a run of n elements at `at` one access? If not, is anything `left` of it to single ones?
template <int n, class I> TK_DEVICE bool is_whole_run(const I *at, const bool *mask, bool &left) {
  const bool joined = at[n - 1] - at[0] == n - 1, whole = joined && mask[n - 1];
  left = !whole && (mask[0] || !joined);
  return whole;
}

// Elements at offsets of their own from `from`, each with its own mask, in runs of n. Where those
// of a run are neighbours the first is aligned and the masks hold up to one of them: one access if
// they hold for the last. What is left to single accesses is so of few threads, and comes last.
template <int n, int count, class T, class I>
TK_DEVICE void load_runs(T (&y)[count], const T *from, const I (&at)[count],
                         const bool (&mask)[count], typename Same<T>::Type other) {
  Packed<T, n> packed[count / n];
  bool left[count / n], any = false;
  for_each<count / n>([&](int v) {
    const int first = v * n;
    const bool whole = is_whole_run<n>(&at[first], &mask[first], left[v]);
    any = any || left[v];
    for_each<n>([&](int i) { packed[v].element[i] = other; });
    read_word(packed[v].word, from + at[first], whole);
  });
  if (any)
    for_each<count / n>([&](int v) {
      if (!left[v])
        return;
      Packed<T, n> parts;
      for_each<n>(
          [&](int i) { parts.element[i] = mask[v * n + i] ? from[at[v * n + i]] : (T)other; });
      keep_word(parts.word);
      packed[v].word = parts.word;
    });
  for_each<count>([&](int i) { y[i] = packed[i / n].element[i % n]; });
}
template <int n, int count, class T, class I>
TK_DEVICE void store_runs(T *to, const T (&x)[count], const I (&at)[count],
                          const bool (&mask)[count]) {
  bool left[count / n], any = false;
  for_each<count / n>([&](int v) {
    const int first = v * n;
    const bool whole = is_whole_run<n>(&at[first], &mask[first], left[v]);
    any = any || left[v];
    store<n>(to + at[first], &x[first], whole);
  });
  if (any)
    for_each<count>([&](int i) {
      if (left[i / n] && mask[i])
        to[at[i]] = x[i];
    });
}

// In each group of n elements of `before` and `here`, the words from the `skipped`th on, moved by
// `bits`. Where it is not `skipped` but more: in code of its own for each number, which threads
// choose together. Words of what might be chosen would all have to be moved.
template <int n, int skipped, class T, int count>
TK_DEVICE void funnel_words(T (&y)[count], const T (&before)[count], const T (&here)[count],
                            int wanted, u32 bits) {
  constexpr int perWord = 4 / sizeof(T), words = n / perWord;
  if constexpr (skipped < words)
    if (wanted != skipped)
      return funnel_words<n, skipped + 1>(y, before, here, wanted, bits);
  for_each<count / perWord>([&](int w) {
    const int group = w / words * n, at = w % words + skipped;
    auto word = [&](int i) {
      return word_of((i < words ? before : here) + group + i % words * perWord);
    };
    // What lies behind the last word is moved by no bits.
    const u32 low = word(at), high = word(at < 2 * words - 1 ? at + 1 : at);
    split_word(&y[w * perWord], __funnelshift_r(low, high, bits));
  });
}
// In each group of n elements y[i] = here[i - shift], where that is before the first,
// before[i - shift + n]; 0 <= shift < n is the same for all threads.
template <int n, class T, int count>
TK_DEVICE void funnel(T (&y)[count], const T (&before)[count], const T (&here)[count], int shift) {
  if constexpr (sizeof(T) * n < 4 || sizeof(T) > 4) {
    for_each<count>([&](int i) {
      T x = here[i];
      for_each<n>([&](int s) {
        if (s > 0 && s == shift)
          x = i % n >= s ? here[i % n >= s ? i - s : i] : before[i % n >= s ? i : i - s + n];
      });
      y[i] = x;
    });
  } else {
    constexpr int perWord = 4 / sizeof(T);
    int first = n - shift;          // of the elements of `before` and `here`, the one to begin with
    asm volatile("" : "+r"(first)); // or all that follows would be there for each number, too
    funnel_words<n, 0>(y, before, here, first / perWord, (u32)(first % perWord) * 8 * sizeof(T));
  }
}

// Hides where the elements, of 1, 2 or 4 bytes, came from: what was computed from them before is
// not known to be what they give again.
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

// Adds to a word of shared memory that other threads add to, too.
TK_DEVICE void add_shared(i32 *to, i32 x, Place = {}) { ::atomicAdd(to, x); }

TK_DEVICE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// A place in shared memory, and the float so many further on: one instruction, which the compiler
// neither joins with others nor moves across them, but the assembler does.
struct SharedRow {
  u32 at;
};
TK_DEVICE SharedRow shared_row(const float *from) { return {shared_address(from)}; }
template <int offset> TK_DEVICE float get_at(SharedRow row, Place = {}) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1+%2];" : "=f"(x) : "r"(row.at), "n"(offset * 4));
  return x;
}

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
