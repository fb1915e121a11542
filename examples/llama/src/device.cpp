#include "device.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include <tk/error.h>

#include "cuda_device.h"

namespace llama {

namespace {

class HostDevice : public Device {
public:
  tk::Device place() const override { return tk::Device::cpu(); }
  void *allocate(size_t bytes) override {
    constexpr size_t line = 64;
    void *data = std::aligned_alloc(line, (bytes / line + 1) * line);
    if (!data)
      throw tk::Error(tk::ErrorCode::out_of_memory,
                      "cannot allocate " + std::to_string(bytes) + " bytes");
    std::memset(data, 0, bytes);
    return data;
  }
  void release(void *data) noexcept override { std::free(data); }
  void upload(void *device, const void *host, size_t bytes) override {
    std::memcpy(device, host, bytes);
  }
  void download(void *host, const void *device, size_t bytes) override {
    std::memcpy(host, device, bytes);
  }
};

} // namespace

std::unique_ptr<Device> make_device(std::string_view target) {
  if (target.starts_with("sm_"))
    return make_cuda_device();
  return std::make_unique<HostDevice>();
}

Tensor::Tensor(Device &device, tk::DType dtype, tk::Extents shape)
    : m_buffer(device, tk::byte_count(dtype, shape).value()),
      m_view(m_buffer.data(), dtype, shape, device.place()) {
  m_view.storage_bytes = tk::byte_count(dtype, shape).value();
}

tk::TensorView Tensor::as(tk::Extents shape) const {
  tk::TensorView view(m_view.data, m_view.dtype, shape, m_view.device);
  view.storage_bytes = m_view.storage_bytes;
  return view;
}

void Tensor::write(Device &device, const void *host, size_t bytes) const {
  if (bytes != static_cast<size_t>(m_view.storage_bytes))
    throw tk::Error(tk::ErrorCode::internal, "expected " + std::to_string(m_view.storage_bytes) +
                                                 " bytes for " + m_view.str() + ", got " +
                                                 std::to_string(bytes));
  device.upload(m_view.data, host, bytes);
}

} // namespace llama
