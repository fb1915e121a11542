// Boxes of dense tensors: parts that a rank holds, copied from one tensor to another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tk/tensor.h"

namespace tk::detail {

/// A box of a dense row-major tensor: where it begins along each axis.
struct BoxPlace {
  Extents shape;  ///< of the tensor
  Extents offset; ///< of the box; one an axis
};

/// Calls `row(from, to, count)` with the positions, in elements, of each row of a box in two
/// tensors.
template <typename Row>
void for_each_row(const Extents &box, const BoxPlace &from, const BoxPlace &to, Row row) {
  const unsigned rank = box.size();
  for (int64_t extent : box)
    if (extent == 0)
      return;
  if (rank == 0) {
    row(int64_t{0}, int64_t{0}, int64_t{1});
    return;
  }
  Extents position;
  for (unsigned axis = 0; axis < rank; ++axis)
    position.push_back(0);
  for (;;) {
    int64_t source = 0, target = 0;
    for (unsigned axis = 0; axis < rank; ++axis) {
      source = source * from.shape[axis] + from.offset[axis] + position[axis];
      target = target * to.shape[axis] + to.offset[axis] + position[axis];
    }
    row(source, target, box[rank - 1]);
    unsigned axis = rank - 1;
    while (axis > 0 && ++position[axis - 1] == box[axis - 1])
      position[--axis] = 0;
    if (axis == 0)
      return;
  }
}

/// Copies a box between dense tensors of one element type.
void copy_box(DType dtype, const Extents &box, const void *source, const BoxPlace &from,
              void *target, const BoxPlace &to);

/// Offsets of 0.
Extents origin(unsigned rank);

} // namespace tk::detail
