#include "runtime/TensorMaps.h"

namespace tk::detail {
namespace {

constexpr int64_t max_extent = int64_t{1} << 32;
constexpr int64_t max_stride_bytes = (int64_t{1} << 40) - 16;
constexpr int64_t stride_unit = 16;

std::string name_of(const TensorMap &map, const Signature &signature) {
  return map.of_scratch ? "scratch buffer " + std::to_string(map.index)
                        : "tensor '" + signature.tensor(map.index).name + "'";
}

/// The distance in bytes between neighbours along axis `axis` + 1.
int64_t stride_bytes(const TensorMap &map, size_t axis, std::span<const Scalar> variables,
                     std::span<const TensorView> tensors) {
  const bool given = !map.stride_axes.empty() && map.stride_axes[axis] >= 0;
  const int64_t stride =
      given ? tensors[map.index].strides[static_cast<unsigned>(map.stride_axes[axis])]
            : map.strides[axis].evaluate_integer(variables).value();
  int64_t bytes = 0;
  if (__builtin_mul_overflow(stride, static_cast<int64_t>(size_of(map.dtype)), &bytes))
    throw Error(ErrorCode::overflow, "tensor size overflows 64 bits");
  return bytes;
}

/// The largest corner of a box of places, of which the hardware has 16, 8 or 5 bits.
int64_t most_corner(const TensorMap &map) {
  return map.places.size() == 1 ? 32767 : map.places.size() == 2 ? 127 : 15;
}

} // namespace

ResolvedMap resolve_map(const TensorMap &map, const Signature &signature,
                        std::span<const Scalar> variables, std::span<const TensorView> tensors) {
  ResolvedMap result;
  for (const DimExpr &expr : map.extents) {
    const int64_t extent = expr.evaluate_integer(variables).value();
    if (extent > max_extent)
      throw Error(ErrorCode::overflow, name_of(map, signature) +
                                           ": an axis for bulk copies has at most 2^32 elements, "
                                           "got " +
                                           std::to_string(extent));
    result.extents.push_back(static_cast<uint64_t>(std::max<int64_t>(extent, 0)));
    result.empty |= extent <= 0;
  }
  for (size_t i = 0; i + 1 < result.extents.size(); ++i) {
    int64_t bytes = stride_bytes(map, i, variables, tensors);
    // Not used along an axis of one element, but the driver checks it all the same. Where there is
    // no element, it may be a product with an extent of none.
    if (result.extents[i + 1] <= 1 || result.empty)
      bytes = stride_unit;
    if (bytes <= 0 || bytes % stride_unit != 0 || bytes > max_stride_bytes)
      throw Error(ErrorCode::invalid_argument,
                  name_of(map, signature) +
                      ": bulk copies need positive strides that are multiples of 16 bytes and "
                      "below 2^40, got " +
                      std::to_string(bytes) + " bytes");
    result.strides.push_back(static_cast<uint64_t>(bytes));
  }
  for (const WindowPlaces &along : map.places) {
    const int64_t count = along.count.evaluate_integer(variables).value();
    result.counts.push_back(count);
    result.empty |= count <= 0;
  }
  if (result.empty)
    return result;
  for (size_t i = 0; i < map.places.size(); ++i) {
    const int64_t upper = upper_corner(map, result, i), most = most_corner(map);
    if (map.places[i].lower < -most - 1 || upper < -most - 1 || upper > most)
      throw Error(ErrorCode::overflow,
                  name_of(map, signature) + ": windows reach " + std::to_string(upper) +
                      " elements beyond an axis, and bulk copies take from " +
                      std::to_string(-most - 1) + " to " + std::to_string(most));
  }
  return result;
}

int64_t upper_corner(const TensorMap &map, const ResolvedMap &resolved, size_t axis) {
  const WindowPlaces &along = map.places[axis];
  return along.lower + int64_t{along.step} * (resolved.counts[axis] - 1) + 1 -
         static_cast<int64_t>(resolved.extents[axis + 1]);
}

} // namespace tk::detail
