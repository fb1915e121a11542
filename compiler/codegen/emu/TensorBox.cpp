//===- TensorBox.cpp - a tensor map at a launch ---------------------------===//
#include "compiler/codegen/emu/TensorBox.h"

#include "compiler/codegen/emu/Fragments.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tk::emu {

TensorBox::TensorBox(const TensorMap &map, const detail::ResolvedMap &resolved, void *address)
    : axes(static_cast<unsigned>(map.box.size())), dtype(map.dtype), swizzle(map.swizzle),
      fillNan(map.fill_nan), roundsToTf32(map.rounds_to_tf32), empty(resolved.empty),
      address(static_cast<char *>(address)) {
  strides[0] = static_cast<int64_t>(size_of(dtype));
  for (unsigned axis = 0; axis < axes; ++axis) {
    extents[axis] = static_cast<int64_t>(resolved.extents[axis]);
    box[axis] = map.box[axis];
    if (axis > 0)
      strides[axis] = static_cast<int64_t>(resolved.strides[axis - 1]);
  }
  hasPlaces = !map.places.empty();
  for (size_t i = 0; i < map.places.size(); ++i) {
    lower[i + 1] = map.places[i].lower;
    steps[i + 1] = map.places[i].step;
    counts[i + 1] = empty ? 0 : resolved.counts[i];
  }
  if (map.before > 0)
    this->address -= map.before * strides[1];
}

int TensorBox::bytes() const {
  int64_t bytes = static_cast<int64_t>(size_of(dtype));
  for (int64_t side : box)
    bytes *= side;
  return static_cast<int>(bytes);
}

template <class Visit>
bool TensorBox::visitRow(int64_t element, const int64_t *at, Visit visit) const {
  const int64_t begin = std::clamp<int64_t>(-at[0], 0, box[0]);
  const int64_t end = std::clamp<int64_t>(extents[0] - at[0], begin, box[0]);
  bool inside = true;
  char *row = address;
  for (unsigned axis = 1; axis < axes; ++axis) {
    inside &= at[axis] >= 0 && at[axis] < extents[axis];
    row += at[axis] * strides[axis];
  }
  if (!inside)
    return visit(element, nullptr, box[0]);
  return (begin == 0 || visit(element, nullptr, begin)) &&
         (begin == end ||
          visit(element + begin, row + (at[0] + begin) * strides[0], end - begin)) &&
         (end == box[0] || visit(element + end, nullptr, box[0] - end));
}

bool TensorBox::isPlace(const int *at) const {
  for (unsigned axis = 1; axis + 1 < axes; ++axis) {
    const int64_t distance = at[axis] - lower[axis];
    if (distance < 0 || distance % steps[axis] != 0 || distance / steps[axis] >= counts[axis])
      return false;
  }
  return true;
}

template <class Visit>
bool TensorBox::forEachWindow(const int *at, const int *by, Visit visit) const {
  int64_t place[maxAxes], from[maxAxes];
  std::copy_n(at, axes, place);
  for (int64_t row = 0; row < box[1]; ++row) {
    std::copy_n(place, axes, from);
    for (unsigned axis = 1; axis + 1 < axes; ++axis)
      from[axis] += by[axis - 1];
    if (!visitRow(row * box[0], from, visit))
      return false;
    unsigned axis = 1;
    for (; axis + 1 < axes; ++axis) {
      place[axis] += steps[axis];
      if (place[axis] < lower[axis] + counts[axis] * steps[axis])
        break;
      place[axis] = lower[axis];
    }
    if (axis + 1 == axes)
      ++place[axis];
  }
  return true;
}

template <class Visit> bool TensorBox::forEachRun(const int *at, Visit visit) const {
  int64_t index[maxAxes] = {}, from[maxAxes];
  for (int64_t element = 0;; element += box[0]) {
    for (unsigned axis = 0; axis < axes; ++axis)
      from[axis] = at[axis] + index[axis];
    if (!visitRow(element, from, visit))
      return false;
    unsigned axis = 1;
    for (; axis < axes && ++index[axis] == box[axis]; ++axis)
      index[axis] = 0;
    if (axis >= axes)
      return true;
  }
}

bool TensorBox::isOutside(const int *at) const {
  for (unsigned axis = 0; axis < axes; ++axis)
    if (at[axis] + box[axis] <= 0 || at[axis] >= extents[axis])
      return true;
  return false;
}

/// So many elements of f32, rounded to tf32.
static std::vector<unsigned char> roundRun(const unsigned char *from, int64_t count) {
  std::vector<unsigned char> rounded(static_cast<size_t>(count) * sizeof(float));
  for (size_t at = 0; at < rounded.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, from + at, sizeof value);
    value = roundToTf32(value);
    std::memcpy(&rounded[at], &value, sizeof value);
  }
  return rounded;
}

bool TensorBox::load(GlobalMemory &global, const int *at, const int *by, int64_t to, Access mine,
                     const Viewer &viewer, std::vector<unsigned char> &data) const {
  const auto size = static_cast<int64_t>(size_of(dtype));
  data.resize(static_cast<size_t>(bytes()));
  if (!by && isOutside(at)) {
    // Nothing is moved: the tensor has to be there all the same.
    Counts *const counts = std::exchange(global.counts, nullptr);
    const bool isThere =
        global.locateRead(address, static_cast<int>(size), static_cast<int>(size), mine, viewer);
    global.counts = counts;
    if (!isThere)
      return false;
  }
  auto visit = [&](int64_t element, const char *from, int64_t count) {
    const unsigned char *source = nullptr;
    if (from) {
      source = static_cast<const unsigned char *>(global.locateRead(
          from, static_cast<int>(count * size), static_cast<int>(size), mine, viewer));
      if (!source)
        return false;
    }
    std::vector<unsigned char> rounded;
    if (source && roundsToTf32) {
      rounded = roundRun(source, count);
      source = rounded.data();
    }
    for (int64_t b = 0; b < count * size; ++b) {
      const int64_t place = swizzled(to + element * size + b, swizzle) - to;
      // The fill is a NaN whose bits are all ones.
      data[static_cast<size_t>(place)] =
          source ? source[b] : static_cast<unsigned char>(fillNan ? 0xff : 0);
    }
    return true;
  };
  return by ? forEachWindow(at, by, visit) : forEachRun(at, visit);
}

bool TensorBox::store(GlobalMemory &global, const int *at, int64_t from, const unsigned char *data,
                      bool add, Access mine, const Viewer &viewer) const {
  const auto size = static_cast<int64_t>(size_of(dtype));
  std::vector<unsigned char> row(static_cast<size_t>(rowBytes()));
  return forEachRun(at, [&](int64_t element, char *to, int64_t count) {
    if (!to)
      return true;
    for (int64_t b = 0; b < count * size; ++b)
      row[static_cast<size_t>(b)] =
          data[static_cast<size_t>(swizzled(from + element * size + b, swizzle) - from)];
    const int length = static_cast<int>(count * size);
    return add ? global.add(to, row.data(), length, dtype)
               : global.write(to, row.data(), length, static_cast<int>(size), mine, viewer);
  });
}

} // namespace tk::emu
