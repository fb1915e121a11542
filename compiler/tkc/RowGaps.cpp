//===- RowGaps.cpp - tensors whose rows do not touch ----------------------===//
#include "compiler/tkc/RowGaps.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tk::tkc {

/// What stands between rows: a NaN of every type of floats, so that a read of it shows.
static constexpr std::byte gapByte{0xFF};

static std::vector<unsigned> orderOf(const Extents &shape, const RowLayout &layout) {
  if (!layout.order.empty())
    return layout.order;
  std::vector<unsigned> order(shape.size());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

Extents stridesOf(const Extents &shape, const RowLayout &layout) {
  Extents strides = shape;
  std::vector<unsigned> order = orderOf(shape, layout);
  int64_t stride = layout.step;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[*axis] = stride;
    stride = std::max<int64_t>(shape[*axis], 1) * stride + layout.gap;
  }
  return strides;
}

namespace {

/// Calls `visit` with where each run of elements begins in memory and in the dense tensor, and its
/// length, in bytes, in the order of memory.
template <typename Visit>
void forEachRun(const HostTensor &tensor, const RowLayout &layout, const Visit &visit) {
  const auto size = static_cast<int64_t>(size_of(tensor.dtype));
  const Extents strides = stridesOf(tensor.shape, layout), dense = row_major_strides(tensor.shape);
  std::vector<unsigned> order = orderOf(tensor.shape, layout);
  // What both have contiguous is one run.
  int64_t run = 1;
  if (!order.empty() && layout.step == 1 && order.back() + 1 == order.size()) {
    run = tensor.shape[order.back()];
    order.pop_back();
  }
  const int64_t runs = run == 0 ? 0 : static_cast<int64_t>(tensor.bytes.size()) / size / run;
  for (int64_t number = 0; number < runs; ++number) {
    int64_t rest = number, at = 0, from = 0;
    for (auto axis = order.rbegin(); axis != order.rend(); rest /= tensor.shape[*axis++]) {
      const int64_t index = rest % tensor.shape[*axis];
      at += index * strides[*axis];
      from += index * dense[*axis];
    }
    visit(at * size, from * size, run * size);
  }
}

} // namespace

std::vector<std::byte> spreadRows(const HostTensor &tensor, const RowLayout &layout) {
  int64_t end = 0;
  forEachRun(tensor, layout, [&](int64_t at, int64_t, int64_t count) { end = at + count; });
  std::vector<std::byte> memory(static_cast<size_t>(end), gapByte);
  forEachRun(tensor, layout, [&](int64_t at, int64_t dense, int64_t count) {
    std::memcpy(memory.data() + at, tensor.bytes.data() + dense, static_cast<size_t>(count));
  });
  return memory;
}

bool gatherRows(const std::vector<std::byte> &memory, const RowLayout &layout, HostTensor &tensor) {
  bool intact = true;
  int64_t last = 0;
  forEachRun(tensor, layout, [&](int64_t at, int64_t dense, int64_t count) {
    intact &= std::all_of(memory.begin() + last, memory.begin() + at,
                          [](std::byte byte) { return byte == gapByte; });
    std::memcpy(tensor.bytes.data() + dense, memory.data() + at, static_cast<size_t>(count));
    last = at + count;
  });
  return intact;
}

} // namespace tk::tkc
