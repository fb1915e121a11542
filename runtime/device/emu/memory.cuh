// Global and shared memory. Twin of ../memory.cuh.
#pragma once

namespace tk {

template <class T> struct Same {
  using Type = T;
};

template <class T> TK_DEVICE T get(const T *from, Place place = {}) {
  T x;
  tk_emu_engine->read(&x, from, sizeof(T), alignof(T), place);
  return x;
}
template <class T> TK_DEVICE T get_ahead(const T *from, Place place = {}) {
  return get(from, place);
}
template <class T> TK_DEVICE void put(T *to, typename Same<T>::Type x, Place place = {}) {
  tk_emu_engine->write(to, &x, sizeof(T), alignof(T), place);
}
TK_DEVICE void add_shared(i32 *to, i32 x, Place place = {}) {
  tk_emu_engine->add_shared(to, (u32)x, place);
}
struct SharedRow {
  const float *at;
};
TK_DEVICE SharedRow shared_row(const float *from) { return {from}; }
template <int offset> TK_DEVICE float get_at(SharedRow row, Place place = {}) {
  return get(row.at + offset, place);
}

template <int n, class T> TK_DEVICE void load(T *y, const T *from, Place place = {}) {
  tk_emu_engine->read(y, from, n * sizeof(T), n * sizeof(T), place);
}
template <int n, class T>
TK_DEVICE void load(T *y, const T *from, bool mask, typename Same<T>::Type other,
                    Place place = {}) {
  if (mask)
    load<n>(y, from, place);
  else
    for_each<n>([&](int i) { y[i] = other; });
}
template <int n, class T> TK_DEVICE void load_once(T *y, const T *from, Place place = {}) {
  load<n>(y, from, place);
}
template <int n, class T>
TK_DEVICE void load_once(T *y, const T *from, bool mask, typename Same<T>::Type other,
                         Place place = {}) {
  load<n>(y, from, mask, other, place);
}
template <int n, class T>
TK_DEVICE void load_kept(T *y, const T *from, bool, Place place = {}) {
  load<n>(y, from, place);
}
template <int n, class T>
TK_DEVICE void load_common(T *y, const T *from, bool mask, typename Same<T>::Type other,
                           Place place = {}) {
  load<n>(y, from, mask, other, place);
}
template <int n, class T>
TK_DEVICE void store(T *to, const T *x, bool mask = true, Place place = {}) {
  if (mask)
    tk_emu_engine->write(to, x, n * sizeof(T), n * sizeof(T), place);
}
template <int n, class T>
TK_DEVICE void store_far(T *to, const T *x, bool mask = true, Place place = {}) {
  store<n>(to, x, mask, place);
}

template <int n, int count, class T, class I>
TK_DEVICE void load_runs(T (&y)[count], const T *from, const I (&at)[count],
                         const bool (&mask)[count], typename Same<T>::Type other,
                         Place place = {}) {
  for (int v = 0; v < count; v += n)
    if (at[v + n - 1] - at[v] == n - 1 && mask[v + n - 1])
      load<n>(&y[v], from + at[v], place);
    else
      for (int i = v; i < v + n; ++i)
        y[i] = mask[i] ? get(from + at[i], place) : (T)other;
}
template <int n, int count, class T, class I>
TK_DEVICE void store_runs(T *to, const T (&x)[count], const I (&at)[count],
                          const bool (&mask)[count], Place place = {}) {
  for (int v = 0; v < count; v += n)
    if (at[v + n - 1] - at[v] == n - 1 && mask[v + n - 1])
      store<n>(to + at[v], &x[v], true, place);
    else
      for (int i = v; i < v + n; ++i)
        if (mask[i])
          put(to + at[i], x[i], place);
}

template <int n, class T, int count>
TK_DEVICE void funnel(T (&y)[count], const T (&before)[count], const T (&here)[count], int shift) {
  for_each<count>([&](int i) { y[i] = i % n >= shift ? here[i - shift] : before[i - shift + n]; });
}

template <int n, class T> TK_DEVICE void hold(T (&)[n]) {
  static_assert(n * sizeof(T) % 4 == 0, "the elements fill words");
}

template <int bytes>
TK_DEVICE void copy_async(void *to, const void *from, bool mask = true, Place place = {}) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  tk_emu_engine->copy_async(to, from, bytes, mask, place);
}
template <int n, class T>
TK_DEVICE void copy_now(T *to, const T *from, bool mask = true, Place place = {}) {
  T x[n];
  load<n>(x, from, mask, T{}, place);
  store<n>(to, x, true, place);
}
TK_DEVICE void async_commit(Place place = {}) { tk_emu_engine->async_commit(place); }
template <int pending> TK_DEVICE void async_wait(Place place = {}) {
  tk_emu_engine->async_wait(pending, place);
}

} // namespace tk
