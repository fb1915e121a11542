#include "runtime/Dlpack.h"
#include "tk/tensor.h"

#include <optional>

namespace tk {
namespace {

std::optional<DType> element_type(const DLDataType &type) {
  struct Row {
    uint8_t code, bits;
    DType dtype;
  };
  constexpr Row rows[] = {{2, 64, DType::f64},  {2, 32, DType::f32},    {2, 16, DType::f16},
                          {4, 16, DType::bf16}, {10, 8, DType::f8e4m3}, {12, 8, DType::f8e5m2},
                          {0, 64, DType::i64},  {0, 32, DType::i32},    {0, 16, DType::i16},
                          {0, 8, DType::i8},    {1, 8, DType::u8},      {6, 8, DType::boolean}};
  for (const Row &row : rows)
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1)
      return row.dtype;
  return std::nullopt;
}

std::optional<Device> device_of(const DLDevice &device) {
  switch (device.device_type) {
  case 1: // kDLCPU
  case 3: // kDLCUDAHost
    return Device::cpu();
  case 2:  // kDLCUDA
  case 13: // kDLCUDAManaged
    return Device::cuda(device.device_id);
  default:
    return std::nullopt;
  }
}

} // namespace

Expected<TensorView> from_dlpack(const DLTensor &tensor) {
  std::optional<DType> dtype = element_type(tensor.dtype);
  if (!dtype)
    return Error(ErrorCode::unsupported,
                 "DLPack type with code " + std::to_string(tensor.dtype.code) + ", " +
                     std::to_string(tensor.dtype.bits) + " bits and " +
                     std::to_string(tensor.dtype.lanes) + " lanes is not supported");
  std::optional<Device> device = device_of(tensor.device);
  if (!device)
    return Error(ErrorCode::unsupported, "DLPack device type " +
                                             std::to_string(tensor.device.device_type) +
                                             " is not supported: expected cpu or cuda");
  if (tensor.ndim < 0 || tensor.ndim > static_cast<int32_t>(max_rank))
    return Error(ErrorCode::unsupported,
                 "expected a tensor of rank at most 8, got " + std::to_string(tensor.ndim));
  auto rank = static_cast<size_t>(tensor.ndim);
  try {
    Extents shape(std::span<const int64_t>(tensor.shape, rank));
    auto *data = static_cast<char *>(tensor.data) + (tensor.data ? tensor.byte_offset : 0);
    if (!tensor.strides)
      return TensorView(data, *dtype, shape, *device);
    return TensorView(data, *dtype, shape, Extents(std::span<const int64_t>(tensor.strides, rank)),
                      *device);
  } catch (const Error &error) {
    return error;
  }
}

} // namespace tk
