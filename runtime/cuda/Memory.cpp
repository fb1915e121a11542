#include "runtime/cuda/Memory.h"

#include <algorithm>
#include <utility>

namespace tk::cuda {
namespace {

CUstream as_stream(void *stream) { return static_cast<CUstream>(stream); }

} // namespace

DeviceBuffer::DeviceBuffer(DeviceContext &device, size_t bytes)
    : m_device(&device), m_bytes(bytes) {
  ScopedContext scope(device);
  device.check(device.driver->mem_alloc(&m_address, std::max<size_t>(bytes, 1)), "cuMemAlloc",
               ErrorCode::out_of_memory);
}

DeviceBuffer::~DeviceBuffer() {
  if (!m_device)
    return;
  // No ScopedContext: it throws on a poisoned context.
  m_device->driver->ctx_push_current(m_device->context);
  m_device->driver->mem_free(m_address);
  CUcontext previous;
  m_device->driver->ctx_pop_current(&previous);
}

void DeviceBuffer::upload(const void *from, size_t bytes, size_t offset, void *stream) {
  if (bytes == 0)
    return;
  ScopedContext scope(*m_device);
  m_device->check(
      m_device->driver->memcpy_htod_async(m_address + offset, from, bytes, as_stream(stream)),
      "cuMemcpyHtoDAsync");
  m_device->check(m_device->driver->stream_synchronize(as_stream(stream)), "cuStreamSynchronize");
}

void DeviceBuffer::download(void *to, size_t bytes, size_t offset, void *stream) const {
  if (bytes == 0)
    return;
  ScopedContext scope(*m_device);
  m_device->check(
      m_device->driver->memcpy_dtoh_async(to, m_address + offset, bytes, as_stream(stream)),
      "cuMemcpyDtoHAsync");
  m_device->check(m_device->driver->stream_synchronize(as_stream(stream)), "cuStreamSynchronize");
}

void DeviceBuffer::fill(uint8_t byte, void *stream) {
  if (m_bytes == 0)
    return;
  ScopedContext scope(*m_device);
  m_device->check(m_device->driver->memset_d8_async(m_address, byte, m_bytes, as_stream(stream)),
                  "cuMemsetD8Async");
}

OwnedStream::OwnedStream(DeviceContext &device) : m_device(device) {
  ScopedContext scope(device);
  constexpr unsigned non_blocking = 1;
  device.check(device.driver->stream_create(&m_stream, non_blocking), "cuStreamCreate");
}
OwnedStream::~OwnedStream() { m_device.driver->stream_destroy(m_stream); }
void OwnedStream::synchronize() const { cuda::synchronize(m_device, m_stream); }

Event::Event(DeviceContext &device) : m_device(device) {
  ScopedContext scope(device);
  device.check(device.driver->event_create(&m_event, 0), "cuEventCreate");
}
Event::~Event() { m_device.driver->event_destroy(m_event); }
void Event::record(void *stream) {
  ScopedContext scope(m_device);
  m_device.check(m_device.driver->event_record(m_event, as_stream(stream)), "cuEventRecord");
}
void Event::hold(void *stream) const {
  ScopedContext scope(m_device);
  m_device.check(m_device.driver->stream_wait_event(as_stream(stream), m_event, 0),
                 "cuStreamWaitEvent");
}
void Event::synchronize() const {
  ScopedContext scope(m_device);
  m_device.check(m_device.driver->event_synchronize(m_event), "cuEventSynchronize");
}
float Event::since(const Event &start) const {
  float milliseconds = 0;
  ScopedContext scope(m_device);
  m_device.check(m_device.driver->event_elapsed_time(&milliseconds, start.m_event, m_event),
                 "cuEventElapsedTime");
  return milliseconds;
}

CUresult Event::state_since(const Event &start) const {
  float milliseconds = 0;
  ScopedContext scope(m_device);
  return m_device.driver->event_elapsed_time(&milliseconds, start.m_event, m_event);
}

bool is_capturing(DeviceContext &device, void *stream) {
  // Asking about the legacy stream while another one captures is itself an error; it never
  // captures.
  if (!stream)
    return false;
  ScopedContext scope(device);
  int status = 0;
  device.check(device.driver->stream_is_capturing(as_stream(stream), &status),
               "cuStreamIsCapturing");
  return status != 0;
}

RelaxedCapture::RelaxedCapture(DeviceContext &device) : m_device(device) {
  device.check(device.driver->exchange_capture_mode(&m_mode), "cuThreadExchangeStreamCaptureMode");
}
RelaxedCapture::~RelaxedCapture() { m_device.driver->exchange_capture_mode(&m_mode); }

void synchronize(DeviceContext &device, void *stream) {
  ScopedContext scope(device);
  device.check(device.driver->stream_synchronize(as_stream(stream)), "cuStreamSynchronize");
}

/// Streams and changes of their buffers that find() knows at most.
static constexpr unsigned most_known = 256;

ScratchPool::~ScratchPool() {
  m_device.driver->ctx_push_current(m_device.context);
  auto release = [&](const Buffer &buffer) {
    if (buffer.address)
      m_device.driver->mem_free(buffer.address);
  };
  for (const auto &[stream, buffer] : m_streams)
    release(buffer);
  for (const auto &[stream, buffer] : m_captures)
    release(buffer);
  std::for_each(m_spares.begin(), m_spares.end(), release);
  std::for_each(m_retired.begin(), m_retired.end(), release);
  CUcontext previous;
  m_device.driver->ctx_pop_current(&previous);
  for (Known *known = m_known; known;)
    delete std::exchange(known, known->before);
}

ScratchPool::Known *ScratchPool::known_of(void *stream) const {
  Known *known = m_known.load(std::memory_order_acquire);
  while (known && known->stream != stream)
    known = known->before;
  return known;
}

CUdeviceptr ScratchPool::find(void *stream, int64_t bytes, bool restored) const {
  const Known *known = known_of(stream);
  if (!known || known->bytes < bytes || (restored && !known->cleared))
    return 0;
  return known->address + static_cast<CUdeviceptr>(restored_bytes);
}

/// An empty buffer stands for none.
void ScratchPool::publish(void *stream, const Buffer &buffer) {
  Known *known = known_of(stream);
  if (known && (buffer.bytes == 0 || known->address == buffer.address)) {
    known->cleared = buffer.cleared;
    known->bytes = buffer.bytes;
  } else if (known || (buffer.bytes > 0 && m_num_known < most_known)) {
    // Where streams come and go the list does not grow on: those that it lacks take the lock.
    ++m_num_known;
    m_known.store(new Known{stream, buffer.address, buffer.bytes, buffer.cleared, m_known},
                  std::memory_order_release);
  }
}

ScratchPool::Buffer ScratchPool::allocate(int64_t bytes) {
  ScopedContext scope(m_device);
  RelaxedCapture relaxed(m_device);
  Buffer buffer;
  m_device.check(
      m_device.driver->mem_alloc(&buffer.address, static_cast<size_t>(restored_bytes + bytes)),
      "cuMemAlloc for scratch memory", ErrorCode::out_of_memory);
  buffer.bytes = bytes;
  return buffer;
}

bool ScratchPool::take_spare(int64_t bytes, Buffer &buffer) {
  auto best = m_spares.end();
  for (auto it = m_spares.begin(); it != m_spares.end(); ++it)
    if (it->bytes >= bytes && (best == m_spares.end() || it->bytes < best->bytes))
      best = it;
  if (best == m_spares.end())
    return false;
  buffer = *best;
  m_spares.erase(best);
  return true;
}

/// Gives `slot` a buffer of that size, if it has none.
void ScratchPool::assign(Buffer &slot, int64_t bytes, bool capturing) {
  if (slot.bytes >= bytes)
    return;
  Buffer fresh;
  // Spare buffers are for captures alone: a launch before the capture must not use them up.
  if (!capturing || !take_spare(bytes, fresh))
    fresh = allocate(bytes);
  // The old buffer may still be in use by work queued on the stream; it becomes a spare only for
  // graphs of the same stream order, so it is kept until the pool goes.
  if (slot.address)
    m_retired.push_back(slot);
  slot = fresh;
}

CUdeviceptr ScratchPool::acquire(void *stream, int64_t bytes, bool capturing, bool restored) {
  if (bytes == 0)
    return 0;
  std::lock_guard lock(m_mutex);
  if (!capturing)
    // A capture on this stream, if there was one, is over: its graph owns that buffer now.
    if (auto it = m_captures.find(stream); it != m_captures.end()) {
      m_retired.push_back(it->second);
      m_captures.erase(it);
    }
  Buffer &slot = capturing ? m_captures[stream] : m_streams[stream];
  assign(slot, bytes, capturing);
  if (restored && !slot.cleared) {
    // On the stream of all launches that use the buffer; a graph that is captured does it anew.
    ScopedContext scope(m_device);
    m_device.check(m_device.driver->memset_d8_async(
                       slot.address, 0, static_cast<size_t>(restored_bytes), as_stream(stream)),
                   "cuMemsetD8Async");
    slot.cleared = true;
  }
  publish(stream, capturing ? Buffer() : slot);
  return slot.address + static_cast<CUdeviceptr>(restored_bytes);
}

void ScratchPool::reserve(int64_t bytes) {
  if (bytes == 0)
    return;
  std::lock_guard lock(m_mutex);
  for (const Buffer &spare : m_spares)
    if (spare.bytes >= bytes)
      return;
  m_spares.push_back(allocate(bytes));
}

} // namespace tk::cuda
