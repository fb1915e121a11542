// Which axis of a view has stride 1, and which views may be written.
#include "tests/unit/catch.h"

#include "runtime/Views.h"

using namespace tk;
using namespace tk::detail;

namespace {

TensorView view(Extents shape, Extents strides) {
  return {nullptr, DType::f32, shape, strides, Device::cpu()};
}

std::pair<int, bool> order(Extents shape, Extents strides) {
  const AxisOrder found = axis_order(view(shape, strides));
  return {found.unit_axis, found.dense};
}

using Order = std::pair<int, bool>;

} // namespace

TEST_CASE("the axis with stride 1 is found", "[views]") {
  CHECK(order({4, 6}, {6, 1}) == Order{last_axis, true});
  CHECK(order({4, 6}, {8, 1}) == Order{last_axis, false});
  CHECK(order({4, 6}, {1, 4}) == Order{0, true});
  CHECK(order({4, 6}, {1, 5}) == Order{0, false});
  CHECK(order({4, 6}, {12, 2}) == Order{no_axis, false});
  CHECK(order({4, 6}, {0, 1}) == Order{last_axis, false});
  CHECK(order({4, 6}, {1, 0}) == Order{0, false});
  CHECK(order({4, 6}, {0, 0}) == Order{no_axis, false});
  CHECK(order({4, 6}, {6, -1}) == Order{no_axis, false});
  // Channels last, and axes in another order than one moved to the end.
  CHECK(order({2, 3, 4, 5}, {60, 1, 15, 3}) == Order{1, true});
  CHECK(order({2, 3, 4}, {4, 8, 1}) == Order{last_axis, false});
  CHECK(order({}, {}) == Order{last_axis, true});
}

TEST_CASE("axes of extent 1 and empty views have no order", "[views]") {
  CHECK(order({4, 1}, {1, 77}) == Order{last_axis, true});
  CHECK(order({4, 1}, {5, 77}) == Order{last_axis, false});
  CHECK(order({1, 6}, {-3, 1}) == Order{last_axis, true});
  CHECK(order({1, 6}, {1, 3}) == Order{no_axis, false});
  CHECK(order({0, 6}, {1, 3}) == Order{last_axis, true});
  TensorView channelsLast = view({1, 3, 4, 1}, {-9, 1, 3, 0});
  CHECK(axis_order(channelsLast).unit_axis == 1);
  settle_strides(channelsLast, axis_order(channelsLast));
  CHECK(channelsLast.strides == Extents{12, 1, 3, 3});
  TensorView empty = view({0, 6}, {1, 3});
  settle_strides(empty, axis_order(empty));
  CHECK(empty.strides == Extents{6, 1});
}

TEST_CASE("views that overlap themselves are told", "[views]") {
  CHECK_FALSE(may_overlap_itself(view({4, 6}, {6, 1})));
  CHECK_FALSE(may_overlap_itself(view({4, 6}, {1, 4})));
  CHECK_FALSE(may_overlap_itself(view({4, 6}, {2, 9})));
  CHECK_FALSE(may_overlap_itself(view({4, 1}, {2, 0})));
  CHECK_FALSE(may_overlap_itself(view({0, 6}, {0, 0})));
  CHECK(may_overlap_itself(view({4, 6}, {5, 1})));
  CHECK(may_overlap_itself(view({4, 6}, {1, 1})));
  CHECK(may_overlap_itself(view({4, 6}, {1, 3})));
}
