// Blocks of rows that go from rank to rank on GPUs: an exchange, and transfers beside launches.
#include "runtime/mesh/NcclRank.h"

namespace tk::detail {

/// Blocks of rows are contiguous: they go from tensor to tensor. The host reads the counts, which
/// waits for the stream. While the stream captures nobody can, so whole blocks are sent.
void NcclRank::exchange_rows(const CollectiveCall &given, NcclComm comm, size_t ranks,
                             Stream stream) {
  CollectiveCall call = given;
  std::vector<int32_t> sent(ranks), received(ranks);
  const bool counts = call.sent && !cuda::is_capturing(m_device, stream.handle);
  if (counts) {
    auto *handle = static_cast<cuda::CUstream>(stream.handle);
    const size_t bytes = ranks * sizeof(int32_t);
    m_device.check(
        m_device.driver->memcpy_dtoh_async(sent.data(), address_of(call.sent), bytes, handle),
        "cuMemcpyDtoHAsync");
    m_device.check(m_device.driver->memcpy_dtoh_async(received.data(), address_of(call.received),
                                                      bytes, handle),
                   "cuMemcpyDtoHAsync");
    cuda::synchronize(m_device, stream.handle);
  }
  call.sent = counts ? sent.data() : nullptr, call.received = counts ? received.data() : nullptr;
  const size_t block = block_bytes(call, ranks);
  const Nccl::Functions &f = m_nccl.functions();
  m_nccl.check(f.group_start(), "ncclGroupStart");
  for (size_t rank = 0; rank < ranks; ++rank) {
    const int peer = static_cast<int>(rank);
    m_nccl.check(f.send(static_cast<const char *>(call.from) + rank * block,
                        sent_bytes(call, rank, ranks), NcclType::i8, peer, comm, stream.handle),
                 "ncclSend");
    m_nccl.check(f.receive(static_cast<char *>(call.to) + rank * block,
                           received_bytes(call, rank, ranks), NcclType::i8, peer, comm,
                           stream.handle),
                 "ncclRecv");
  }
  m_nccl.check(f.group_end(), "ncclGroupEnd");
}

void NcclRank::send_and_receive(const Message &out, const Message &in, NcclComm comm,
                                void *stream) {
  const Nccl::Functions &f = m_nccl.functions();
  m_nccl.check(f.group_start(), "ncclGroupStart");
  m_nccl.check(f.send(reinterpret_cast<void *>(out.address), out.bytes, NcclType::i8,
                      static_cast<int>(out.peer), comm, stream),
               "ncclSend");
  m_nccl.check(f.receive(reinterpret_cast<void *>(in.address), in.bytes, NcclType::i8,
                         static_cast<int>(in.peer), comm, stream),
               "ncclRecv");
  m_nccl.check(f.group_end(), "ncclGroupEnd");
}

cuda::Event &NcclRank::event(size_t number) {
  while (m_events.size() <= number)
    m_events.push_back(std::make_unique<cuda::Event>(m_device));
  return *m_events[number];
}

/// All transfers are queued first: their kernels need few multiprocessors, which a launch that came
/// before would hold.
void NcclRank::gather_by_rows(const CollectiveCall &call, Stream stream,
                              const LaunchBlock &launch) {
  NcclComm comm = m_comms[call.axis];
  const auto ranks = static_cast<size_t>(m_axes[call.axis].size);
  const auto own = static_cast<size_t>(position(call.axis));
  const auto bytes = static_cast<size_t>(byte_count(call.dtype, call.from_shape).value());
  const CUdeviceptr to = address_of(call.to);
  if (ranks > 1) {
    event(0).record(stream.handle);
    event(0).hold(m_transfers.handle());
  }
  for (size_t i = 1; i < ranks; ++i) {
    const size_t next = (own + i) % ranks, before = (own + ranks - i) % ranks;
    send_and_receive({address_of(call.from), bytes, before}, {to + next * bytes, bytes, next}, comm,
                     m_transfers.handle());
    event(i).record(m_transfers.handle());
  }
  copy(to + own * bytes, bytes, address_of(call.from), bytes, bytes, 1, stream);
  launch(own);
  for (size_t i = 1; i < ranks; ++i) {
    event(i).hold(stream.handle);
    launch((own + i) % ranks);
  }
}

void NcclRank::exchange_by_rows(const CollectiveCall &call, Stream stream,
                                const LaunchBlock &launch) {
  NcclComm comm = m_comms[call.axis];
  const auto ranks = static_cast<size_t>(m_axes[call.axis].size);
  const auto own = static_cast<size_t>(position(call.axis));
  const size_t bytes = block_bytes(call, ranks);
  const CUdeviceptr from = address_of(call.from), to = address_of(call.to);
  for (size_t i = 1; i < ranks; ++i) {
    const size_t next = (own + i) % ranks, before = (own + ranks - i) % ranks;
    launch(next);
    event(i).record(stream.handle);
    event(i).hold(m_transfers.handle());
    send_and_receive({from + next * bytes, bytes, next}, {to + before * bytes, bytes, before}, comm,
                     m_transfers.handle());
  }
  launch(own);
  copy(to + own * bytes, bytes, from + own * bytes, bytes, bytes, 1, stream);
  if (ranks > 1) {
    event(0).record(m_transfers.handle());
    event(0).hold(stream.handle);
  }
}

void NcclRank::run_by_rows(const CollectiveCall &call, Stream stream, const LaunchBlock &launch) {
  cuda::ScopedContext scope(m_device);
  if (call.step->kind == MeshStep::Kind::gather_launch)
    return gather_by_rows(call, stream, launch);
  exchange_by_rows(call, stream, launch);
}

} // namespace tk::detail
