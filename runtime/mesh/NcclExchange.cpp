// Blocks of rows that go from rank to rank on GPUs: an exchange, and transfers beside launches.
#include "runtime/mesh/NcclRank.h"

namespace tk::detail {

/// Counts that the host reads, which waits for the stream. Later exchanges of the same launch read
/// the same tensors, and do not wait.
const std::vector<int32_t> &NcclRank::counts_of(const void *counts, size_t ranks, Stream stream) {
  auto [known, is_new] = m_counts.try_emplace(counts, ranks);
  if (is_new) {
    m_device.check(m_device.driver->memcpy_dtoh_async(known->second.data(), address_of(counts),
                                                      ranks * sizeof(int32_t),
                                                      static_cast<cuda::CUstream>(stream.handle)),
                   "cuMemcpyDtoHAsync");
    cuda::synchronize(m_device, stream.handle);
  }
  return known->second;
}

/// Blocks of rows are contiguous: they go from tensor to tensor. While the stream captures nobody
/// can read the counts, so whole blocks are sent.
void NcclRank::exchange_rows(const CollectiveCall &given, NcclComm comm, size_t ranks,
                             Stream stream) {
  CollectiveCall call = given;
  const bool counts = call.sent && !cuda::is_capturing(m_device, stream.handle);
  call.sent = counts ? counts_of(given.sent, ranks, stream).data() : nullptr;
  call.received = counts ? counts_of(given.received, ranks, stream).data() : nullptr;
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

/// Whether copies by copy engines do what a collective asks for: blocks lie one behind the other,
/// in memory that the peers reach.
bool NcclRank::is_copied(const CollectiveCall &call) const {
  const auto ranks = static_cast<size_t>(m_axes[call.axis].size);
  if (ranks < 2 || !m_memory.reaches(call.axis, address_of(call.to)))
    return false;
  if (array_bytes(call, ranks) < call.bounds.copied_from)
    return false;
  if (call.step->kind == MeshStep::Kind::exchange)
    return !call.sent;
  if (call.step->kind != MeshStep::Kind::all_gather)
    return false;
  for (uint32_t d = 0; d < call.step->dim; ++d)
    if (call.from_shape[d] != 1)
      return false;
  return true;
}

/// Gathers and exchanges over one axis, by copies; a peer's blocks arrive together.
void NcclRank::run_by_copies(std::span<const CollectiveCall> calls, Stream stream) {
  const std::vector<int64_t> members = peers_along(m_axes, m_rank, calls[0].axis);
  const size_t ranks = members.size(), own = static_cast<size_t>(position(calls[0].axis));
  auto copies = [&](size_t peer) {
    std::vector<PeerMemory::Copy> found;
    for (const CollectiveCall &call : calls) {
      const bool gathers = call.step->kind == MeshStep::Kind::all_gather;
      const size_t bytes =
          gathers ? static_cast<size_t>(byte_count(call.dtype, call.from_shape).value())
                  : block_bytes(call, ranks);
      found.push_back({address_of(call.to) + own * bytes,
                       address_of(call.from) + (gathers ? 0 : peer * bytes), bytes});
    }
    return found;
  };
  for (size_t i = 1; i < ranks; ++i)
    m_memory.allow(members[(own + i) % ranks], stream.handle);
  for (size_t i = 1; i < ranks; ++i)
    m_memory.send(members[(own + i) % ranks], copies((own + i) % ranks), stream.handle);
  for (const auto &[to, from, bytes] : copies(own))
    copy(to, bytes, from, bytes, bytes, 1, stream);
  for (size_t i = 1; i < ranks; ++i)
    m_memory.await(members[(own + ranks - i) % ranks], stream.handle);
}

/// Has a stream go on only behind what another one has been given.
void NcclRank::follow(void *later, void *earlier, size_t number) {
  event(number).record(earlier);
  event(number).hold(later);
}

/// As gather_by_rows, by copies into the memory of the peers. The first block to arrive is that of
/// the rank before this one, whose next one this is.
void NcclRank::gather_by_copies(const CollectiveCall &call, Stream stream,
                                const LaunchBlock &launch) {
  const std::vector<int64_t> members = peers_along(m_axes, m_rank, call.axis);
  const size_t ranks = members.size(), own = static_cast<size_t>(position(call.axis));
  const auto bytes = static_cast<size_t>(byte_count(call.dtype, call.from_shape).value());
  const CUdeviceptr to = address_of(call.to) + own * bytes;
  for (size_t i = 1; i < ranks; ++i)
    m_memory.allow(members[(own + i) % ranks], stream.handle);
  follow(m_transfers.handle(), stream.handle, 0);
  for (size_t i = 1; i < ranks; ++i)
    m_memory.send(members[(own + i) % ranks],
                  std::vector<PeerMemory::Copy>{{to, address_of(call.from), bytes}},
                  m_transfers.handle());
  copy(to, bytes, address_of(call.from), bytes, bytes, 1, stream);
  launch(own);
  for (size_t i = 1; i < ranks; ++i) {
    const size_t before = (own + ranks - i) % ranks;
    m_memory.await(members[before], stream.handle);
    launch(before);
  }
  follow(stream.handle, m_transfers.handle(), 1);
}

void NcclRank::exchange_by_copies(const CollectiveCall &call, Stream stream,
                                  const LaunchBlock &launch) {
  const std::vector<int64_t> members = peers_along(m_axes, m_rank, call.axis);
  const size_t ranks = members.size(), own = static_cast<size_t>(position(call.axis));
  const size_t bytes = block_bytes(call, ranks);
  const CUdeviceptr from = address_of(call.from), to = address_of(call.to) + own * bytes;
  for (size_t i = 1; i < ranks; ++i)
    m_memory.allow(members[(own + i) % ranks], stream.handle);
  for (size_t i = 1; i < ranks; ++i) {
    const size_t next = (own + i) % ranks;
    launch(next);
    follow(m_transfers.handle(), stream.handle, i);
    m_memory.send(members[next], std::vector<PeerMemory::Copy>{{to, from + next * bytes, bytes}},
                  m_transfers.handle());
  }
  launch(own);
  copy(to, bytes, from + own * bytes, bytes, bytes, 1, stream);
  for (size_t i = 1; i < ranks; ++i)
    m_memory.await(members[(own + ranks - i) % ranks], stream.handle);
  if (ranks > 1)
    follow(stream.handle, m_transfers.handle(), 0);
}

void NcclRank::run_by_rows(const CollectiveCall &call, Stream stream, const LaunchBlock &launch) {
  cuda::ScopedContext scope(m_device);
  const bool gathers = call.step->kind == MeshStep::Kind::gather_launch;
  if (m_axes[call.axis].size > 1 && m_memory.reaches(call.axis, address_of(call.to)))
    return gathers ? gather_by_copies(call, stream, launch)
                   : exchange_by_copies(call, stream, launch);
  if (call.step->kind == MeshStep::Kind::gather_launch)
    return gather_by_rows(call, stream, launch);
  exchange_by_rows(call, stream, launch);
}

} // namespace tk::detail
