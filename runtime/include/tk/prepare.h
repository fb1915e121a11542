// Compiling ahead for sizes that an application will meet.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tk/plan.h"

namespace tk {

/// The sizes first, first + step, … up to last, which belongs to them.
struct SizeRange {
  int64_t first = 1;
  int64_t last = 1;
  int64_t step = 1;
  bool operator==(const SizeRange &) const = default;
};

/// The sizes that a dimension will have: one, a list, or a range. Each size of a list has the
/// variant of its own key. A range is served by at most max_size_classes variants.
class SizeSet {
public:
  SizeSet(std::integral auto size) : m_sizes(std::vector{static_cast<int64_t>(size)}) {}
  SizeSet(std::initializer_list<int64_t> sizes) : m_sizes(std::vector(sizes)) {}
  SizeSet(std::vector<int64_t> sizes) : m_sizes(std::move(sizes)) {}
  SizeSet(SizeRange range) : m_sizes(range) {}

  /// Null for a list.
  const SizeRange *range() const { return std::get_if<SizeRange>(&m_sizes); }
  /// Null for a range.
  const std::vector<int64_t> *list() const { return std::get_if<std::vector<int64_t>>(&m_sizes); }

private:
  std::variant<SizeRange, std::vector<int64_t>> m_sizes;
};

/// Sizes by the name of their dimension.
using SizeRequest = std::map<std::string, SizeSet>;

struct PrepareOptions {
  /// How many variants are compiled at once; 0: as many as the machine has threads.
  unsigned threads = 0;
  /// Called on the caller's thread: first with 0, then after each variant. What it throws ends the
  /// work once the compilations that have begun are done.
  std::function<void(size_t done, size_t total)> progress;
  /// The values of scalars. A scalar that is left out has its default, or is 1.
  std::map<std::string, Scalar> scalars;
};

inline constexpr unsigned max_size_classes = 4;

/// Sizes of a range that one variant serves: multiples of `divisor` from `first` to `last`.
struct SizeClass {
  int64_t first = 1;
  int64_t last = 1;
  uint32_t divisor = 1; ///< a power of two
  int64_t upper = 1;    ///< the bound that the variant assumes

  bool holds(int64_t size) const { return size >= first && size <= last && size % divisor == 0; }
  DimFact fact() const;
  bool operator==(const SizeClass &) const = default;
};

/// The classes of a range, in ascending order, without the size 0. A range of at most
/// max_size_classes sizes has none: each size has its own key. Fails with `invalid_argument` for a
/// range without sizes.
Expected<std::vector<SizeClass>> size_classes(const SizeRange &range);

} // namespace tk
