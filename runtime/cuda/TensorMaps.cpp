#include "runtime/cuda/GpuLaunch.h"

namespace tk::cuda {
namespace {

/// CUtensorMapDataType of what a map describes, or -1.
int data_type(const TensorMap &map) {
  switch (map.dtype) {
  case DType::u8:
  case DType::i8:
  case DType::boolean:
  case DType::f8e4m3:
  case DType::f8e5m2:
    return 0;
  case DType::i16:
    return 1;
  case DType::i32:
    return 3;
  case DType::i64:
    return 5;
  case DType::f16:
    return 6;
  case DType::f32:
    return map.rounds_to_tf32 ? 11 : 7;
  case DType::f64:
    return 8;
  case DType::bf16:
    return 9;
  }
  return -1;
}

void encode_map(DeviceContext &device, const TensorMap &map, const detail::ResolvedMap &resolved,
                void *address, CUtensorMap &encoded) {
  if (resolved.empty) {
    encoded = {};
    return;
  }
  if (!device.driver->tensor_map_encode_tiled)
    throw Error(ErrorCode::driver_too_old, "the CUDA driver lacks cuTensorMapEncodeTiled");
  if (reinterpret_cast<uintptr_t>(address) % 16 != 0)
    throw Error(ErrorCode::invalid_argument,
                "bulk copies need an address aligned to 16 bytes for tensor " +
                    std::to_string(map.index));
  if (map.before > 0)
    address = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(address) -
                                       map.before * resolved.strides[0]);
  constexpr uint32_t ones[5] = {1, 1, 1, 1, 1};
  // What the second-level cache asks memory for at least. With 256 bytes few rows of a product take
  // 1 to 4 % longer, decoding with 16 queries 4 %, rows that straddle lines 4 %; nothing is faster.
  constexpr int promote_to_128_bytes = 2;
  CUresult result = device.driver->tensor_map_encode_tiled(
      &encoded, data_type(map), static_cast<unsigned>(resolved.extents.size()), address,
      resolved.extents.data(), resolved.strides.data(), map.box.data(), ones, 0, map.swizzle,
      promote_to_128_bytes, map.fill_nan);
  device.check(result, "cuTensorMapEncodeTiled");
}

} // namespace

EncodedMap::EncodedMap(const TensorMap &map, detail::ResolvedMap resolved)
    : m_map(&map), m_resolved(std::move(resolved)) {}

void EncodedMap::at(DeviceContext &device, void *address, CUtensorMap &encoded) const {
  std::lock_guard lock(m_mutex);
  if (!m_valid || address != m_address) {
    m_valid = false;
    encode_map(device, *m_map, m_resolved, address, m_encoded);
    m_address = address;
    m_valid = true;
  }
  encoded = m_encoded;
}

} // namespace tk::cuda
