// An array on the stack of a launch, for what usual launches have.
#ifndef TK_RUNTIME_LAUNCHARRAY_H
#define TK_RUNTIME_LAUNCHARRAY_H

#include <array>
#include <cstddef>
#include <vector>

namespace tk::detail {

/// Up to `in_place` elements take no memory of the heap. Elements are not initialised.
template <typename T, size_t in_place = 32> class LaunchArray {
public:
  LaunchArray() : m_data(m_few.data()) {}
  LaunchArray(const LaunchArray &) = delete;
  LaunchArray &operator=(const LaunchArray &) = delete;

  /// The elements have no values then.
  void resize(size_t size) {
    if (size > in_place)
      m_many.resize(size);
    m_data = size > in_place ? m_many.data() : m_few.data();
  }
  T &operator[](size_t at) { return m_data[at]; }
  T *data() { return m_data; }

private:
  std::array<T, in_place> m_few;
  std::vector<T> m_many;
  T *m_data;
};

} // namespace tk::detail

#endif // TK_RUNTIME_LAUNCHARRAY_H
