// Calling a kernel with its arguments in an array, and describing them.
#pragma once

namespace tk::emu {

template <int... n> struct Indices {};
template <int n, int... rest> struct Count : Count<n - 1, n - 1, rest...> {};
template <int... rest> struct Count<0, rest...> {
  using Type = Indices<rest...>;
};

template <class T> struct Describe {
  static constexpr Parameter parameter{(int)sizeof(T), false, false, 0, false};
};
template <class T> struct Describe<T *> {
  static constexpr Parameter parameter{8, true, true, (int)sizeof(T), false};
};
template <class T> struct Describe<const T *> {
  static constexpr Parameter parameter{8, true, false, (int)sizeof(T), false};
};

// Returns how many parameters there are; writes those that fit.
template <class... T> int describe(void (*)(T...), Parameter *to, int room) {
  const Parameter all[sizeof...(T) + 1] = {Describe<T>::parameter..., {}};
  for (int i = 0; i < (int)sizeof...(T) && i < room; ++i)
    to[i] = all[i];
  return sizeof...(T);
}

template <class... T, int... n>
void call(void (*kernel)(T...), const void *const *arguments, Indices<n...>) {
  kernel(*(const T *)arguments[n]...);
}
template <class... T> void call(void (*kernel)(T...), const void *const *arguments) {
  call(kernel, arguments, typename Count<sizeof...(T)>::Type());
}

} // namespace tk::emu
