// Writing structs to bytes and reading them back from bytes that nobody vouches for. One function
// `visit(archive, value)` a struct, in tk::detail, names the fields in order for both directions.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tk::detail {

class Writer {
public:
  std::string bytes;

  void raw(const void *data, size_t size) { bytes.append(static_cast<const char *>(data), size); }
  void fail() {}
  /// Writes a count and returns it.
  size_t count(size_t value) {
    auto narrow = static_cast<uint32_t>(value);
    raw(&narrow, sizeof narrow);
    return value;
  }
};

/// Never trusts a count: it is bounded by the bytes that are left.
class Reader {
public:
  explicit Reader(std::string_view bytes) : m_rest(bytes) {}

  void raw(void *data, size_t size) {
    if (size == 0) // neither pointer need be valid then
      return;
    if (size > m_rest.size()) {
      fail();
      std::memset(data, 0, size);
      return;
    }
    std::memcpy(data, m_rest.data(), size);
    m_rest.remove_prefix(size);
  }
  void fail() {
    m_failed = true;
    m_rest = {};
  }
  /// Every element takes at least one byte, so a larger count is damage.
  size_t count(size_t) {
    uint32_t value = 0;
    raw(&value, sizeof value);
    if (value > m_rest.size()) {
      fail();
      return 0;
    }
    return value;
  }
  bool done() const { return !m_failed && m_rest.empty(); }

private:
  std::string_view m_rest;
  bool m_failed = false;
};

template <typename A, typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
void visit(A &archive, T &value) {
  if constexpr (std::is_same_v<T, bool>) {
    uint8_t byte = value;
    archive.raw(&byte, 1);
    if (byte > 1)
      archive.fail();
    value = byte == 1;
  } else {
    archive.raw(&value, sizeof value);
  }
}

template <typename A> void visit(A &archive, std::string &text) {
  text.resize(archive.count(text.size()));
  archive.raw(text.data(), text.size());
}

template <typename A, typename T> void visit(A &archive, std::vector<T> &values) {
  values.resize(archive.count(values.size()));
  for (T &value : values)
    visit(archive, value);
}

template <typename A> void visit(A &archive, std::vector<bool> &values) {
  values.resize(archive.count(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    bool value = values[i];
    visit(archive, value);
    values[i] = value;
  }
}

template <typename A, typename... T> void fields(A &archive, T &...values) {
  (visit(archive, values), ...);
}

/// A number below `limit`, such as an enumerator.
template <typename A, typename E> void bounded(A &archive, E &value, unsigned limit) {
  visit(archive, value);
  if (static_cast<unsigned>(value) >= limit) {
    archive.fail();
    value = {};
  }
}

template <typename T> std::string write(const T &value) {
  Writer writer;
  T copy = value; // visit takes a mutable reference
  visit(writer, copy);
  return std::move(writer.bytes);
}

/// Nullopt for bytes that are not exactly one value.
template <typename T> std::optional<T> read(std::string_view bytes) {
  Reader reader(bytes);
  T value;
  visit(reader, value);
  return reader.done() ? std::optional<T>(std::move(value)) : std::nullopt;
}

} // namespace tk::detail
