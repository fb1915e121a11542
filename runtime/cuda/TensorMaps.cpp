#include "runtime/cuda/GpuLaunch.h"

namespace tk::cuda {
namespace {

/// CUtensorMapDataType of an element type, or -1.
int data_type(DType dtype) {
  switch (dtype) {
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
    return 7;
  case DType::f64:
    return 8;
  case DType::bf16:
    return 9;
  }
  return -1;
}

} // namespace

ResolvedMap resolve_map(const TensorMap &map, std::span<const Scalar> variables,
                        std::span<const TensorView> tensors) {
  ResolvedMap result;
  auto size = static_cast<int64_t>(size_of(map.dtype));
  for (size_t i = 0; i < map.extents.size(); ++i) {
    int64_t extent = map.extents[i].evaluate_integer(variables).value();
    result.extents.push_back(static_cast<uint64_t>(extent));
    result.empty |= extent <= 0;
    if (i + 1 == map.extents.size())
      break;
    int64_t stride = !map.stride_axes.empty() && map.stride_axes[i] >= 0
                         ? tensors[map.index].strides[static_cast<unsigned>(map.stride_axes[i])]
                         : map.strides[i].evaluate_integer(variables).value();
    int64_t bytes = 0;
    if (__builtin_mul_overflow(stride, size, &bytes))
      throw Error(ErrorCode::overflow, "tensor size overflows 64 bits");
    // A stride is never used where the outer extent is 1, but the driver checks it all the same.
    if (bytes <= 0 || bytes % 16 != 0)
      bytes = (std::max<int64_t>(bytes, 16) + 15) / 16 * 16;
    result.strides.push_back(static_cast<uint64_t>(bytes));
  }
  return result;
}

void encode_map(DeviceContext &device, const TensorMap &map, const ResolvedMap &resolved,
                void *address, CUtensorMap &encoded) {
  if (resolved.empty) {
    encoded = {};
    return;
  }
  if (!device.driver->tensor_map_encode_tiled)
    throw Error(ErrorCode::driver_too_old, "the CUDA driver lacks cuTensorMapEncodeTiled");
  constexpr uint32_t ones[5] = {1, 1, 1, 1, 1};
  constexpr int promote_to_256_bytes = 3;
  CUresult result = device.driver->tensor_map_encode_tiled(
      &encoded, data_type(map.dtype), static_cast<unsigned>(resolved.extents.size()), address,
      resolved.extents.data(), resolved.strides.data(), map.box.data(), ones, 0, map.swizzle,
      promote_to_256_bytes, map.fill_nan);
  device.check(result, "cuTensorMapEncodeTiled");
}

} // namespace tk::cuda
