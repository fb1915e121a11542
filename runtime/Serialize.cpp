// One description of each struct serves writing and reading: `visit(archive, value)` names the
// fields in order. Reading never trusts a count: it is bounded by the bytes that are left.
#include "tk/plan.h"

#include <cstring>
#include <type_traits>

namespace tk {
namespace {

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

template <typename A, typename T> void visit(A &archive, std::vector<T> &values);
template <typename A> void visit(A &archive, Parameter &value);
template <typename A> void visit(A &archive, Check &value);
template <typename A> void visit(A &archive, Launch &value);
template <typename A> void visit(A &archive, Arg &value);
template <typename A> void visit(A &archive, Scratch &value);
template <typename A> void visit(A &archive, TensorMap &value);
template <typename A> void visit(A &archive, Extent &value);
template <typename A> void visit(A &archive, Expr &value);
template <typename A> void visit(A &archive, ExprStep &value);

template <typename A, typename... T> void fields(A &archive, T &...values) {
  (visit(archive, values), ...);
}

template <typename A, typename E> void bounded(A &archive, E &value, unsigned limit) {
  visit(archive, value);
  if (static_cast<unsigned>(value) >= limit) {
    archive.fail();
    value = {};
  }
}

template <typename A, typename T> void visit(A &archive, std::vector<T> &values) {
  values.resize(archive.count(values.size()));
  for (T &value : values)
    visit(archive, value);
}

template <typename A> void visit(A &archive, ExprStep &value) {
  fields(archive, value.op, value.value);
}
template <typename A> void visit(A &archive, Expr &value) { visit(archive, value.steps()); }
template <typename A> void visit(A &archive, Extent &value) {
  fields(archive, value.expr, value.text);
}
template <typename A> void visit(A &archive, SourceSpan &value) {
  fields(archive, value.file, value.line, value.column, value.end_line, value.end_column);
}
template <typename A> void visit(A &archive, Parameter &value) {
  fields(archive, value.name, value.is_tensor);
  bounded(archive, value.dtype, num_dtypes);
  fields(archive, value.shape, value.strided, value.in_out, value.has_default, value.default_value,
         value.default_text, value.span);
}
template <typename A> void visit(A &archive, Check &value) {
  bounded(archive, value.kind, 2);
  fields(archive, value.condition, value.text, value.span);
}
template <typename A> void visit(A &archive, Signature &value) {
  fields(archive, value.name, value.dims, value.params, value.results, value.checks, value.span);
}
template <typename A> void visit(A &archive, Arg &value) {
  bounded(archive, value.kind, 6);
  fields(archive, value.index, value.axis);
  bounded(archive, value.dtype, num_dtypes);
  visit(archive, value.value);
}
template <typename A> void visit(A &archive, TensorMap &value) {
  fields(archive, value.of_scratch, value.index);
  bounded(archive, value.dtype, num_dtypes);
  fields(archive, value.extents, value.strides, value.stride_axes, value.box, value.swizzle,
         value.fill_nan);
}
template <typename A> void visit(A &archive, Launch &value) {
  visit(archive, value.symbol);
  for (unsigned i = 0; i < 3; ++i)
    fields(archive, value.grid[i], value.block[i], value.cluster[i]);
  fields(archive, value.shared_bytes, value.args, value.span);
}
template <typename A> void visit(A &archive, Scratch &value) {
  fields(archive, value.bytes, value.zeroed, value.purpose);
}
template <typename A> void visit(A &archive, LaunchPlan &value) {
  fields(archive, value.launches, value.scratch, value.tensor_maps);
}

template <typename T> std::string write(const T &value) {
  Writer writer;
  T copy = value; // visit takes a mutable reference; plans are small
  visit(writer, copy);
  return std::move(writer.bytes);
}

template <typename T> std::optional<T> read(std::string_view bytes) {
  Reader reader(bytes);
  T value;
  visit(reader, value);
  return reader.done() ? std::optional<T>(std::move(value)) : std::nullopt;
}

bool well_formed(const Signature &signature) {
  auto limit = static_cast<unsigned>(signature.dims.size()) + signature.num_scalars();
  for (const auto *list : {&signature.params, &signature.results})
    for (const Parameter &parameter : *list) {
      if (parameter.shape.size() > max_rank || !parameter.default_value.well_formed(limit))
        return false;
      for (const Extent &extent : parameter.shape)
        if (!extent.expr.well_formed(limit))
          return false;
    }
  for (const Check &check : signature.checks)
    if (!check.condition.well_formed(limit))
      return false;
  return true;
}

} // namespace

std::string encode(const Signature &signature) { return write(signature); }
std::string encode(const LaunchPlan &plan) { return write(plan); }

std::optional<Signature> decode_signature(std::string_view bytes) {
  std::optional<Signature> signature = read<Signature>(bytes);
  return signature && well_formed(*signature) ? signature : std::nullopt;
}

std::optional<LaunchPlan> decode_plan(std::string_view bytes) { return read<LaunchPlan>(bytes); }

} // namespace tk
