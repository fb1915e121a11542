#include "runtime/mesh/Boxes.h"

#include <cstring>

#include "tk/mesh.h"

namespace tk {
namespace detail {

Extents origin(unsigned rank) {
  Extents zeros;
  for (unsigned axis = 0; axis < rank; ++axis)
    zeros.push_back(0);
  return zeros;
}

void copy_box(DType dtype, const Extents &box, const void *source, const BoxPlace &from,
              void *target, const BoxPlace &to) {
  const size_t size = size_of(dtype);
  const auto *read = static_cast<const std::byte *>(source);
  auto *write = static_cast<std::byte *>(target);
  for_each_row(box, from, to, [&](int64_t begin, int64_t end, int64_t count) {
    std::memcpy(write + static_cast<size_t>(end) * size, read + static_cast<size_t>(begin) * size,
                static_cast<size_t>(count) * size);
  });
}

namespace {

struct Share {
  Extents shape, offset;
};

Expected<Share> share_in(const Extents &whole, std::span<const std::string> sharding,
                         std::span<const MeshAxis> axes, std::span<const int64_t> positions) {
  Share share{whole, origin(whole.size())};
  for (unsigned d = 0; d < whole.size() && d < sharding.size(); ++d)
    for (size_t a = 0; a < axes.size(); ++a) {
      if (sharding[d].empty() || axes[a].name != sharding[d])
        continue;
      if (whole[d] % axes[a].size != 0)
        return Error(ErrorCode::constraint_failed,
                     "axis '" + axes[a].name + "' of " + std::to_string(axes[a].size) +
                         " ranks does not divide an extent of " + std::to_string(whole[d]));
      share.shape[d] = whole[d] / axes[a].size;
      share.offset[d] = share.shape[d] * positions[a];
    }
  return share;
}

Error not_dense() {
  return Error(ErrorCode::unsupported, "only dense tensors are cut into shares");
}

} // namespace
} // namespace detail

Expected<HostTensor> share_of(const TensorView &whole, std::span<const std::string> sharding,
                              std::span<const MeshAxis> axes, std::span<const int64_t> positions) {
  if (!whole.is_contiguous())
    return detail::not_dense();
  Expected<detail::Share> share = detail::share_in(whole.shape, sharding, axes, positions);
  if (!share)
    return share.error();
  HostTensor part = HostTensor::zeros(whole.dtype, share->shape);
  detail::copy_box(whole.dtype, share->shape, whole.data, {whole.shape, share->offset},
                   part.bytes.data(), {share->shape, detail::origin(whole.rank())});
  return part;
}

Status put_share(const TensorView &part, const TensorView &whole,
                 std::span<const std::string> sharding, std::span<const MeshAxis> axes,
                 std::span<const int64_t> positions) {
  if (!whole.is_contiguous() || !part.is_contiguous())
    return detail::not_dense();
  Expected<detail::Share> share = detail::share_in(whole.shape, sharding, axes, positions);
  if (!share)
    return share.error();
  detail::copy_box(whole.dtype, share->shape, part.data,
                   {share->shape, detail::origin(whole.rank())}, whole.data,
                   {whole.shape, share->offset});
  return {};
}

} // namespace tk
