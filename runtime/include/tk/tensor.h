// Views of tensors that someone else owns.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "tk/dtype.h"
#include "tk/error.h"

struct DLTensor; // of dlpack.h

namespace tk {

inline constexpr unsigned max_rank = 8;

/// Up to max_rank integers in place: a shape or strides.
class Extents {
public:
  Extents() = default;
  Extents(std::initializer_list<int64_t> values)
      : Extents(std::span(values.begin(), values.size())) {}
  /// Throws `unsupported` above max_rank.
  Extents(std::span<const int64_t> values);

  unsigned size() const { return m_size; }
  int64_t &operator[](unsigned axis) { return m_values[axis]; }
  int64_t operator[](unsigned axis) const { return m_values[axis]; }
  const int64_t *begin() const { return m_values.data(); }
  const int64_t *end() const { return m_values.data() + m_size; }
  void push_back(int64_t value);
  bool operator==(const Extents &other) const;

private:
  std::array<int64_t, max_rank> m_values{};
  uint32_t m_size = 0;
};

struct Device {
  enum class Kind : uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  int index = 0;

  static Device cpu() { return {}; }
  static Device cuda(int index = 0) { return {Kind::cuda, index}; }
  /// "cpu" or "cuda:0".
  std::string str() const;
  bool operator==(const Device &) const = default;
};

/// A tensor's address and description; owns nothing. Strides are in elements.
struct TensorView {
  void *data = nullptr;
  DType dtype = DType::f32;
  Extents shape;
  Extents strides;
  Device device;
  /// Bytes that may be accessed from `data` on, or -1 where unknown.
  int64_t storage_bytes = -1;

  TensorView() = default;
  /// A dense row-major tensor.
  TensorView(void *data, DType dtype, Extents shape, Device device = Device::cpu());
  TensorView(void *data, DType dtype, Extents shape, Extents strides, Device device);

  unsigned rank() const { return shape.size(); }
  /// Row-major and dense; axes of extent 1 may have any stride. True where there are no elements.
  bool is_contiguous() const;
  /// "bf16[2, 8, 64]", and the strides where not dense.
  std::string str() const;
};

/// Dense row-major strides in elements; throws `overflow`.
Extents row_major_strides(const Extents &shape);
/// Number of elements; fails with "tensor size overflows 64 bits".
Expected<int64_t> element_count(const Extents &shape);
/// Bytes of a dense tensor; fails with "tensor size overflows 64 bits".
Expected<int64_t> byte_count(DType dtype, const Extents &shape);
/// The half-open byte range, relative to `data`, that a view's elements occupy; {0, 0} where empty.
Expected<std::pair<int64_t, int64_t>> byte_range(const TensorView &view);

/// A view of a DLPack tensor, without a copy. Fails on types, devices and ranks that tk has not.
Expected<TensorView> from_dlpack(const DLTensor &tensor);

} // namespace tk
