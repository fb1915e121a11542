// Device memory, streams and events that tk itself owns.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda/Driver.h"

namespace tk::cuda {

/// Device memory that is freed with its owner. Freeing waits for the device.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  /// Throws `out_of_memory`. At least one byte is allocated, so that the address is never null.
  DeviceBuffer(DeviceContext &device, size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer &&other) noexcept { swap(other); }
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept {
    swap(other);
    return *this;
  }

  void *data() const { return reinterpret_cast<void *>(m_address); }
  CUdeviceptr address() const { return m_address; }
  size_t size() const { return m_bytes; }
  /// Copies at an offset, and waits until the host memory may be used again.
  void upload(const void *from, size_t bytes, size_t offset = 0, void *stream = nullptr);
  void download(void *to, size_t bytes, size_t offset = 0, void *stream = nullptr) const;
  void fill(uint8_t byte, void *stream = nullptr);

private:
  void swap(DeviceBuffer &other) noexcept {
    std::swap(m_device, other.m_device);
    std::swap(m_address, other.m_address);
    std::swap(m_bytes, other.m_bytes);
  }
  DeviceContext *m_device = nullptr;
  CUdeviceptr m_address = 0;
  size_t m_bytes = 0;
};

class OwnedStream {
public:
  explicit OwnedStream(DeviceContext &device);
  ~OwnedStream();
  OwnedStream(const OwnedStream &) = delete;
  OwnedStream &operator=(const OwnedStream &) = delete;
  void *handle() const { return m_stream; }
  /// Waits for all work; throws what it failed with.
  void synchronize() const;

private:
  DeviceContext &m_device;
  CUstream m_stream = nullptr;
};

class Event {
public:
  explicit Event(DeviceContext &device);
  ~Event();
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  void record(void *stream);
  void synchronize() const;
  /// Has a stream wait until what was recorded is reached.
  void hold(void *stream) const;
  /// Milliseconds from `start` to this event; both must have been reached.
  float since(const Event &start) const;
  /// 0 once both have been reached, CUDA_ERROR_NOT_READY before, else what failed.
  CUresult state_since(const Event &start) const;

private:
  DeviceContext &m_device;
  CUevent m_event = nullptr;
};

bool is_capturing(DeviceContext &device, void *stream);
/// While it lives, this thread may allocate and load code although a stream captures. Neither is
/// part of the graph.
class RelaxedCapture {
public:
  explicit RelaxedCapture(DeviceContext &device);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  DeviceContext &m_device;
  int m_mode = 2; ///< CU_STREAM_CAPTURE_MODE_RELAXED, then that of the thread before
};

/// Waits for a stream (null: the legacy default stream).
void synchronize(DeviceContext &device, void *stream);

/// Bytes before each scratch buffer for what launches leave at 0.
inline constexpr int64_t restored_bytes = 4096;

/// Scratch memory of one kernel on one device. Launches on one stream share a buffer, since they
/// run one after another. A captured graph keeps the buffer that it was captured with, so that
/// buffer is never handed out again. prepare() leaves spare ones for that; else a capture
/// allocates.
class ScratchPool {
public:
  explicit ScratchPool(DeviceContext &device) : m_device(device) {}
  ~ScratchPool();
  ScratchPool(const ScratchPool &) = delete;
  ScratchPool &operator=(const ScratchPool &) = delete;

  /// A buffer for work on that stream; allocates where there is none. Where the launch counts on
  /// it, the restored_bytes before the buffer are 0.
  CUdeviceptr acquire(void *stream, int64_t bytes, bool capturing, bool restored);
  /// The same for a stream that does not capture, where its buffer is known: without a lock. 0
  /// where it is not.
  CUdeviceptr find(void *stream, int64_t bytes, bool restored) const;
  /// Makes sure that a spare buffer of that size exists.
  void reserve(int64_t bytes);

private:
  struct Buffer {
    CUdeviceptr address = 0; ///< of the restored bytes
    int64_t bytes = 0;       ///< behind them
    bool cleared = false;    ///< the restored bytes were set to 0
  };
  bool take_spare(int64_t bytes, Buffer &buffer);
  Buffer allocate(int64_t bytes);
  void assign(Buffer &slot, int64_t bytes, bool capturing);

  /// What find() reads: the buffers of streams, a stream's latest first.
  struct Known {
    void *const stream;
    const CUdeviceptr address;
    std::atomic<int64_t> bytes; ///< 0 while the stream captures
    std::atomic<bool> cleared;
    Known *const before;
  };
  Known *known_of(void *stream) const;
  void publish(void *stream, const Buffer &buffer);

  DeviceContext &m_device;
  std::mutex m_mutex;
  std::atomic<Known *> m_known = nullptr;
  unsigned m_num_known = 0;
  std::map<void *, Buffer> m_streams;
  std::map<void *, Buffer> m_captures; ///< by capturing stream
  std::vector<Buffer> m_spares;
  std::vector<Buffer> m_retired; ///< referenced by graphs
};

} // namespace tk::cuda
