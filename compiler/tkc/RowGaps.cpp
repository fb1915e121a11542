//===- RowGaps.cpp - tensors whose rows do not touch ----------------------===//
#include "compiler/tkc/RowGaps.h"

#include <algorithm>
#include <cstring>

namespace tk::tkc {

/// What stands between rows: a NaN of every type of floats, so that a read of it shows.
static constexpr std::byte gapByte{0xFF};

Extents stridesWithGap(const Extents &shape, int64_t gap) {
  Extents strides = row_major_strides(shape);
  for (unsigned axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = std::max<int64_t>(shape[axis], 1) * strides[axis] + gap;
  return strides;
}

namespace {

/// Calls `visit` with where each row begins in memory and in the dense tensor, in bytes.
template <typename Visit>
void forEachRow(const HostTensor &tensor, int64_t gap, const Visit &visit) {
  const auto rank = tensor.shape.size();
  const auto size = static_cast<int64_t>(size_of(tensor.dtype));
  const Extents strides = stridesWithGap(tensor.shape, gap);
  const int64_t rowBytes = rank ? tensor.shape[rank - 1] * size : size;
  const auto bytes = static_cast<int64_t>(tensor.bytes.size());
  for (int64_t dense = 0, row = 0; dense < bytes; dense += rowBytes, ++row) {
    int64_t rest = row, at = 0;
    for (unsigned axis = rank > 0 ? rank - 1 : 0; axis-- > 0; rest /= tensor.shape[axis])
      at += rest % tensor.shape[axis] * strides[axis];
    visit(at * size, dense, rowBytes);
  }
}

} // namespace

std::vector<std::byte> spreadRows(const HostTensor &tensor, int64_t gap) {
  int64_t end = 0;
  forEachRow(tensor, gap, [&](int64_t at, int64_t, int64_t count) { end = at + count; });
  std::vector<std::byte> memory(static_cast<size_t>(end), gapByte);
  forEachRow(tensor, gap, [&](int64_t at, int64_t dense, int64_t count) {
    std::memcpy(memory.data() + at, tensor.bytes.data() + dense, static_cast<size_t>(count));
  });
  return memory;
}

bool gatherRows(const std::vector<std::byte> &memory, int64_t gap, HostTensor &tensor) {
  bool intact = true;
  int64_t last = 0;
  forEachRow(tensor, gap, [&](int64_t at, int64_t dense, int64_t count) {
    intact &= std::all_of(memory.begin() + last, memory.begin() + at,
                          [](std::byte byte) { return byte == gapByte; });
    std::memcpy(tensor.bytes.data() + dense, memory.data() + at, static_cast<size_t>(count));
    last = at + count;
  });
  return intact;
}

} // namespace tk::tkc
