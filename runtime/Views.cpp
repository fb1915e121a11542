#include "runtime/Views.h"

#include <algorithm>
#include <vector>

namespace tk::detail {

namespace {

/// The axes from the innermost to the outermost, `unit` first.
std::vector<unsigned> inwards_first(const TensorView &view, int32_t unit) {
  std::vector<unsigned> axes;
  if (unit >= 0)
    axes.push_back(static_cast<unsigned>(unit));
  for (unsigned axis = view.rank(); axis-- > 0;)
    if (static_cast<int32_t>(axis) != unit)
      axes.push_back(axis);
  return axes;
}

bool is_empty(const TensorView &view) {
  return std::find(view.shape.begin(), view.shape.end(), 0) != view.shape.end();
}

bool is_dense(const TensorView &view, int32_t unit) {
  int64_t expected = 1;
  for (unsigned axis : inwards_first(view, unit)) {
    if (view.shape[axis] != 1 && view.strides[axis] != expected)
      return false;
    if (__builtin_mul_overflow(expected, view.shape[axis], &expected))
      return false;
  }
  return true;
}

} // namespace

AxisOrder axis_order(const TensorView &view) {
  if (view.rank() == 0 || view.is_contiguous())
    return {last_axis, true};
  const unsigned last = view.rank() - 1;
  for (unsigned axis = view.rank(); axis-- > 0;)
    if (view.shape[axis] > 1 && view.strides[axis] == 1)
      return axis == last ? AxisOrder{last_axis, false}
                          : AxisOrder{static_cast<int32_t>(axis),
                                      is_dense(view, static_cast<int32_t>(axis))};
  return {view.shape[last] == 1 ? last_axis : no_axis, false};
}

void settle_strides(TensorView &view, const AxisOrder &order) {
  const bool empty = is_empty(view);
  int64_t next = 1;
  for (unsigned axis : inwards_first(view, order.unit_axis)) {
    int64_t &stride = view.strides[axis];
    if (empty || view.shape[axis] == 1)
      stride = next;
    // A size beyond 64 bits is refused elsewhere.
    const int64_t distance = stride < 0 ? -stride : stride;
    if (__builtin_mul_overflow(distance, std::max<int64_t>(view.shape[axis], 1), &next) ||
        next == 0)
      next = 1;
  }
}

bool may_overlap_itself(const TensorView &view) {
  if (is_empty(view))
    return false;
  std::vector<unsigned> axes = inwards_first(view, no_axis);
  std::sort(axes.begin(), axes.end(),
            [&](unsigned a, unsigned b) { return view.strides[a] < view.strides[b]; });
  int64_t reach = 0; // from the first to the last element of the axes so far
  for (unsigned axis : axes) {
    if (view.shape[axis] == 1)
      continue;
    int64_t length = 0;
    if (view.strides[axis] <= reach ||
        __builtin_mul_overflow(view.shape[axis] - 1, view.strides[axis], &length) ||
        __builtin_add_overflow(reach, length, &reach))
      return true;
  }
  return false;
}

} // namespace tk::detail
