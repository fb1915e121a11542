// A rank that is a GPU, which communicates through NCCL.
#pragma once

#include <optional>

#include "runtime/cuda/Memory.h"
#include "runtime/mesh/Communicator.h"
#include "runtime/mesh/Nccl.h"
#include "runtime/mesh/PeerMemory.h"
#include "tk/mesh.h"

namespace tk::detail {

using cuda::CUdeviceptr;
using cuda::Nccl;
using cuda::NcclComm;
using cuda::NcclType;

inline CUdeviceptr address_of(const void *pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

/// Bytes to or from a peer.
struct Message {
  CUdeviceptr address;
  size_t bytes, peer;
};

class NcclRank : public Communicator {
public:
  NcclRank(NcclComm world, bool owns, std::vector<MeshAxis> axes, int device, MeshOptions options)
      : m_nccl(*Nccl::get().value()), m_device(*cuda::DeviceContext::get(device).value()),
        m_axes(std::move(axes)), m_options(std::move(options)), m_world(world), m_owns(owns),
        m_stream(m_device), m_transfers(m_device), m_scratch(m_device), m_temporaries(m_device),
        m_memory(
            m_device, m_axes, rank_of(world),
            [this](const void *bytes, size_t count) { return gather_bytes(bytes, count); },
            PeerMemory::mode_of_environment(), m_options.timeout) {
    int ranks = 0;
    m_nccl.check(m_nccl.functions().count(world, &ranks), "ncclCommCount");
    m_rank = rank_of(world);
    if (ranks != size())
      throw Error(ErrorCode::invalid_argument, "the communicator has " + std::to_string(ranks) +
                                                   " ranks, and the axes of the mesh have " +
                                                   std::to_string(size()));
    split();
  }
  ~NcclRank() override {
    for (NcclComm comm : m_comms)
      if (comm != m_world && !m_aborted)
        m_nccl.functions().destroy(comm);
    if (m_owns && !m_aborted)
      m_nccl.functions().destroy(m_world);
  }

  const std::vector<MeshAxis> &axes() const override { return m_axes; }
  int64_t rank() const override { return m_rank; }
  const std::string &network() const override { return m_options.network; }
  bool takes(std::string_view target) const override { return target.starts_with("sm_"); }
  Device device() const override { return Device::cuda(m_device.index); }
  bool compares_once() const override { return true; }

  std::shared_ptr<void> temporaries(int64_t bytes, Stream stream, bool has_blocks) override;
  /// Why blocks beside launches go through NCCL; empty if they do not, or none has gone yet.
  const std::string &reason_for_nccl() const { return m_memory.reason(); }
  const std::string &reason_for_no_one_shot() const { return m_memory.reason_for_no_one_shot(); }
  int64_t landing_bytes(const CollectiveCall &call, bool is_in_window) const override;
  void run(const CollectiveCall &call, Stream stream) override;
  void run_together(std::span<const CollectiveCall> calls, Stream stream) override;
  void run_alone(const CollectiveCall &call, Stream stream) override;
  void run_by_rows(const CollectiveCall &call, Stream stream, const LaunchBlock &launch) override;
  std::vector<std::string> exchange(const std::string &own) override;
  void abort(std::string_view) override {
    if (std::exchange(m_aborted, true))
      return;
    m_memory.abandon();
    for (NcclComm comm : m_comms)
      if (comm != m_world)
        m_nccl.functions().abort(comm);
    m_nccl.functions().abort(m_world);
  }

private:
  void split();
  int64_t rank_of(NcclComm world) const {
    int rank = 0;
    m_nccl.check(m_nccl.functions().user_rank(world, &rank), "ncclCommUserRank");
    return rank;
  }
  std::vector<std::byte> gather_bytes(const void *bytes, size_t count);
  CUdeviceptr acquire(cuda::ScratchPool &pool, int64_t bytes, Stream stream) {
    return pool.acquire(stream.handle, bytes, cuda::is_capturing(m_device, stream.handle),
                        /*restored=*/false);
  }
  void copy(CUdeviceptr to, size_t to_pitch, CUdeviceptr from, size_t from_pitch, size_t bytes,
            size_t rows, Stream stream);
  void gather(const CollectiveCall &call, NcclComm comm, size_t ranks, Stream stream);
  void scatter(const CollectiveCall &call, NcclComm comm, size_t ranks, Stream stream);
  void exchange_blocks(const CollectiveCall &call, NcclComm comm, size_t ranks, Stream stream);
  void exchange_rows(const CollectiveCall &call, NcclComm comm, size_t ranks, Stream stream);
  const std::vector<int32_t> &counts_of(const void *counts, size_t ranks, Stream stream);
  void send_and_receive(const Message &out, const Message &in, NcclComm comm, void *stream);
  void gather_by_rows(const CollectiveCall &call, Stream stream, const LaunchBlock &launch);
  void exchange_by_rows(const CollectiveCall &call, Stream stream, const LaunchBlock &launch);
  bool is_copied(const CollectiveCall &call) const;
  std::optional<one_shot::Move> move_for(const CollectiveCall &call) const;
  void run_at_once(std::span<const CollectiveCall> calls, Stream stream);
  void run_by_copies(std::span<const CollectiveCall> calls, Stream stream);
  void gather_by_copies(const CollectiveCall &call, Stream stream, const LaunchBlock &launch);
  void exchange_by_copies(const CollectiveCall &call, Stream stream, const LaunchBlock &launch);
  void follow(void *later, void *earlier, size_t number);
  cuda::Event &event(size_t number);
  void await(cuda::Event &begin, cuda::Event &end);

  const Nccl &m_nccl;
  cuda::DeviceContext &m_device;
  std::vector<MeshAxis> m_axes;
  MeshOptions m_options;
  NcclComm m_world;
  bool m_owns, m_aborted = false;
  int64_t m_rank = 0;
  std::vector<NcclComm> m_comms; ///< one an axis
  cuda::OwnedStream m_stream;    ///< of exchanges of digests
  cuda::OwnedStream m_transfers; ///< of blocks that move beside launches
  std::vector<std::unique_ptr<cuda::Event>> m_events;
  std::map<const void *, std::vector<int32_t>> m_counts; ///< that this launch has read, by tensor
  cuda::ScratchPool m_scratch, m_temporaries;
  PeerMemory m_memory;
};

} // namespace tk::detail
