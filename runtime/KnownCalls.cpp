#include "runtime/KnownCalls.h"

#include <algorithm>
#include <cstring>

namespace tk::detail {
namespace {

/// Above this many distinct calls the table starts anew.
constexpr size_t max_calls = 1024;

/// The largest alignment that code is chosen by (facts_of).
constexpr uintptr_t max_alignment = 16;

int64_t bits_of(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

void set_value(tk_value &value, const Value &given) {
  value = {};
  if (const auto *view = std::get_if<TensorView>(&given)) {
    value.kind = TK_TENSOR;
    value.dtype = static_cast<int32_t>(view->dtype);
    value.rank = static_cast<int32_t>(view->rank());
    value.device = view->device.kind == Device::Kind::cpu ? -1 : view->device.index;
    value.data = view->data;
    value.shape = view->shape.begin();
    value.strides = view->strides.begin();
    value.storage_bytes = view->storage_bytes;
    return;
  }
  const Scalar &scalar = std::get<Scalar>(given);
  value.kind = scalar.is_float ? TK_REAL : TK_INTEGER;
  if (scalar.is_float)
    value.real = scalar.f;
  else
    value.integer = scalar.i;
}

/// The place of an argument among all of them; their number if there is none of that name.
size_t place_of(const Signature &signature, std::string_view name) {
  size_t at = 0;
  for (const auto *list : {&signature.params, &signature.results})
    for (const Parameter &parameter : *list) {
      if (parameter.name == name)
        return at;
      ++at;
    }
  return at;
}

} // namespace

bool CallKey::add(int64_t word) {
  if (m_size == m_words.size())
    return false;
  m_words[m_size++] = word;
  return true;
}

bool CallKey::add_tensor(const tk_value &value) {
  if (value.rank < 0 || value.rank > static_cast<int32_t>(max_rank) ||
      (value.rank > 0 && !value.shape))
    return false;
  const auto address = reinterpret_cast<uintptr_t>(value.data);
  const uintptr_t alignment =
      address == 0 ? max_alignment : std::min(address & -address, max_alignment);
  const bool dense = !value.strides;
  if (!add(value.kind | value.dtype << 4 | value.rank << 12 | int64_t{dense} << 20 |
           static_cast<int64_t>(alignment) << 24 | int64_t{value.device} << 32) ||
      !add(value.storage_bytes))
    return false;
  for (int32_t axis = 0; axis < value.rank; ++axis)
    if (!add(value.shape[axis]) || (!dense && !add(value.strides[axis])))
      return false;
  return true;
}

CallKey::CallKey(std::span<const tk_value> values) {
  m_valid = values.size() <= max_known_arguments;
  for (const tk_value &value : values) {
    if (!m_valid)
      return;
    switch (value.kind) {
    case TK_ABSENT:
      m_valid = add(TK_ABSENT);
      break;
    case TK_TENSOR:
      m_valid =
          value.dtype >= 0 && value.dtype < static_cast<int32_t>(num_dtypes) && add_tensor(value);
      break;
    case TK_INTEGER:
      m_valid = add(TK_INTEGER) && add(value.integer);
      break;
    case TK_REAL:
      m_valid = add(TK_REAL) && add(bits_of(value.real));
      break;
    default:
      m_valid = false;
    }
  }
}

bool KnownCall::addresses_of(std::span<const tk_value> values, std::span<void *> pointers) const {
  struct Range {
    uintptr_t begin, end;
  };
  std::array<Range, max_known_arguments> ranges;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const Tensor &tensor = tensors[t];
    pointers[t] = values[tensor.value].data;
    const auto base = reinterpret_cast<uintptr_t>(pointers[t]);
    ranges[t] = {base + static_cast<uintptr_t>(tensor.low),
                 base + static_cast<uintptr_t>(tensor.high)};
    if (tensor.low == tensor.high)
      continue;
    if (base == 0 || base % tensor.element_bytes != 0)
      return false;
    for (size_t other = 0; other < t; ++other)
      if ((tensor.written || tensors[other].written) && ranges[t].begin < ranges[other].end &&
          ranges[other].begin < ranges[t].end)
        return false;
  }
  return true;
}

std::shared_ptr<const KnownCall> KnownCalls::find(const CallKey &key) const {
  std::lock_guard lock(m_mutex);
  auto it = m_calls.find(key.bytes());
  return it == m_calls.end() ? nullptr : it->second;
}

void KnownCalls::add(const CallKey &key, std::shared_ptr<const BoundImpl> bound) {
  auto call = std::make_shared<KnownCall>();
  const Signature &signature = *bound->signature;
  unsigned value = 0;
  for (const auto *list : {&signature.params, &signature.results})
    for (const Parameter &parameter : *list) {
      if (parameter.is_tensor) {
        const TensorView &view = bound->checked.tensors[call->tensors.size()];
        auto [low, high] = byte_range(view).value();
        call->tensors.push_back({value, low, high, size_of(view.dtype),
                                 list == &signature.results || parameter.in_out});
      }
      ++value;
    }
  call->bound = std::move(bound);
  std::lock_guard lock(m_mutex);
  if (m_calls.size() >= max_calls)
    m_calls.clear();
  m_calls.insert_or_assign(std::string(key.bytes()), std::move(call));
}

void KnownCalls::clear() {
  std::lock_guard lock(m_mutex);
  m_calls.clear();
}

bool in_order(const Signature &signature, std::span<const NamedValue> inputs,
              std::span<const NamedValue> outputs, std::span<tk_value> values) {
  for (tk_value &value : values)
    value.kind = TK_ABSENT;
  for (std::span<const NamedValue> list : {inputs, outputs})
    for (const NamedValue &named : list) {
      const size_t at = place_of(signature, named.name);
      if (at >= values.size() || values[at].kind != TK_ABSENT)
        return false;
      set_value(values[at], named.value);
    }
  return true;
}

} // namespace tk::detail
