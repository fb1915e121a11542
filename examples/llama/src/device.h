// Memory, streams and graphs: host memory for the targets `cpu` and `emu`, the CUDA driver for
// GPUs.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include <tk/module.h>
#include <tk/tensor.h>

namespace llama {

/// Launches that were captured, to be launched again at once.
class Graph {
public:
  virtual ~Graph() = default;
  virtual void launch() = 0;
};

/// Where the model lives: its memory, and one stream on which all work is ordered.
class Device {
public:
  virtual ~Device() = default;
  virtual tk::Device place() const = 0;
  virtual tk::Stream stream() const { return {}; }
  virtual void *allocate(size_t bytes) = 0;
  virtual void release(void *data) noexcept = 0;
  /// Copies are ordered on the stream. The host's memory may be changed when `upload` returns, and
  /// read when `download` returns.
  virtual void upload(void *device, const void *host, size_t bytes) = 0;
  virtual void download(void *host, const void *device, size_t bytes) = 0;
  virtual void synchronize() {}
  /// Whether launches can be captured in a graph.
  virtual bool has_graphs() const { return false; }
  virtual void begin_capture() {}
  virtual std::unique_ptr<Graph> end_capture() { return nullptr; }
};

/// The device of a resolved target: "cpu", "emu…" or "sm_…".
std::unique_ptr<Device> make_device(std::string_view target);

/// Memory of a device, freed at the end of its scope.
class Buffer {
public:
  Buffer() = default;
  Buffer(Device &device, size_t bytes) : m_device(&device), m_data(device.allocate(bytes)) {}
  Buffer(Buffer &&other) noexcept { swap(other); }
  Buffer &operator=(Buffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (m_data)
      m_device->release(m_data);
  }
  void *data() const { return m_data; }

private:
  void swap(Buffer &other) noexcept {
    std::swap(m_device, other.m_device);
    std::swap(m_data, other.m_data);
  }
  Device *m_device = nullptr;
  void *m_data = nullptr;
};

/// A dense tensor in memory of its own.
class Tensor {
public:
  Tensor() = default;
  Tensor(Device &device, tk::DType dtype, tk::Extents shape);
  /// With the elements of a host array, whose size must be the tensor's.
  template <typename Element>
  Tensor(Device &device, tk::DType dtype, tk::Extents shape, std::span<const Element> elements)
      : Tensor(device, dtype, shape) {
    write(device, elements.data(), elements.size_bytes());
  }

  const tk::TensorView &view() const { return m_view; }
  operator const tk::TensorView &() const { return m_view; }
  /// The same memory with another shape of as many elements.
  tk::TensorView as(tk::Extents shape) const;
  /// Copies from the host; throws `internal` if the number of bytes is not the tensor's.
  void write(Device &device, const void *host, size_t bytes) const;

private:
  Buffer m_buffer;
  tk::TensorView m_view;
};

} // namespace llama
