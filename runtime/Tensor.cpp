#include "tk/tensor.h"

#include <algorithm>

namespace tk {
namespace {

Error size_overflow() { return Error(ErrorCode::overflow, "tensor size overflows 64 bits"); }

std::string list(const Extents &values) {
  std::string text = "[";
  for (unsigned i = 0; i < values.size(); ++i)
    text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

} // namespace

Extents::Extents(std::span<const int64_t> values) {
  for (int64_t value : values)
    push_back(value);
}

void Extents::push_back(int64_t value) {
  if (m_size == max_rank)
    throw Error(ErrorCode::unsupported, "expected a tensor of rank at most 8");
  m_values[m_size++] = value;
}

bool Extents::operator==(const Extents &other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string Device::str() const {
  return kind == Kind::cpu ? "cpu" : "cuda:" + std::to_string(index);
}

TensorView::TensorView(void *data, DType dtype, Extents shape, Device device)
    : data(data), dtype(dtype), shape(shape), strides(row_major_strides(shape)), device(device) {}

TensorView::TensorView(void *data, DType dtype, Extents shape, Extents strides, Device device)
    : data(data), dtype(dtype), shape(shape), strides(strides), device(device) {
  if (shape.size() != strides.size())
    throw Error(ErrorCode::invalid_argument, "expected as many strides as extents");
}

bool TensorView::is_contiguous() const {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return true;
  int64_t expected = 1;
  for (unsigned axis = rank(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != expected)
      return false;
    if (__builtin_mul_overflow(expected, shape[axis], &expected))
      return false;
  }
  return true;
}

std::string TensorView::str() const {
  std::string text(name(dtype));
  text += list(shape);
  if (!is_contiguous())
    text += " with strides " + list(strides);
  return text;
}

Extents row_major_strides(const Extents &shape) {
  Extents strides = shape;
  int64_t stride = 1;
  for (unsigned axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    // An empty tensor's strides are never used, but must not be zero or overflow either.
    if (__builtin_mul_overflow(stride, std::max<int64_t>(shape[axis], 1), &stride))
      throw size_overflow();
  }
  return strides;
}

Expected<int64_t> element_count(const Extents &shape) {
  int64_t count = 1;
  bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (int64_t extent : shape) {
    if (extent < 0)
      return Error(ErrorCode::invalid_argument,
                   "expected extents of at least 0, got " + std::to_string(extent));
    if (!empty && __builtin_mul_overflow(count, extent, &count))
      return size_overflow();
  }
  return empty ? 0 : count;
}

Expected<int64_t> byte_count(DType dtype, const Extents &shape) {
  Expected<int64_t> count = element_count(shape);
  if (!count)
    return count;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(*count, static_cast<int64_t>(size_of(dtype)), &bytes))
    return size_overflow();
  return bytes;
}

Expected<std::pair<int64_t, int64_t>> byte_range(const TensorView &view) {
  Expected<int64_t> count = element_count(view.shape);
  if (!count)
    return std::move(count.error());
  if (*count == 0)
    return std::pair<int64_t, int64_t>(0, 0);
  int64_t low = 0, high = 0, size = static_cast<int64_t>(size_of(view.dtype));
  for (unsigned axis = 0; axis < view.rank(); ++axis) {
    int64_t reach = 0;
    int64_t &bound = view.strides[axis] < 0 ? low : high;
    if (__builtin_mul_overflow(view.shape[axis] - 1, view.strides[axis], &reach) ||
        __builtin_add_overflow(bound, reach, &bound))
      return size_overflow();
  }
  if (__builtin_add_overflow(high, int64_t{1}, &high) || __builtin_mul_overflow(low, size, &low) ||
      __builtin_mul_overflow(high, size, &high))
    return size_overflow();
  return std::pair<int64_t, int64_t>(low, high);
}

} // namespace tk
