// Memory that the ranks of one machine write to one another, by copy engines or by kernels.
//
// NCCL's kernels hold multiprocessors while they transfer, which a product beside them needs. A
// copy from device to device holds none. It needs the address of the peer's memory, so each rank
// has one buffer for what lies between launches (the window), at whose beginning there are two
// flags for each peer:
//
//   free      the peer's window may be written; set by the peer, cleared by the sender
//   arrived   a block is there; set by the sender behind its copy, cleared by the receiver
//
// Both are written and awaited by operations of streams, so nothing waits on the host, and a CUDA
// graph can capture all of it. Each flag is 0 or 1, so a graph may be launched again.
//
// Behind the flags are the signals of one-shot exchanges (one_shot.cuh), one set for each axis.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/Memory.h"
#include "runtime/mesh/OneShot.h"
#include "tk/mesh_plan.h"

namespace tk::detail {

/// The bytes of all ranks, in their order; all ranks give as many.
using GatherBytes = std::function<std::vector<std::byte>(const void *bytes, size_t count)>;

class PeerMemory {
public:
  /// How TK_MESH_COPIES says that blocks are to be copied: `engines` fails where `automatic` takes
  /// NCCL, and takes no one-shot exchanges. `handles` takes no address of the own process, for
  /// tests.
  enum class Mode { automatic, nccl, engines, handles };
  /// Throws `invalid_argument` for another value of TK_MESH_COPIES.
  static Mode mode_of_environment();

  PeerMemory(cuda::DeviceContext &device, std::vector<MeshAxis> axes, int64_t rank,
             GatherBytes gather, Mode mode,
             std::chrono::milliseconds timeout = std::chrono::milliseconds(30000))
      : m_device(device), m_axes(std::move(axes)), m_rank(rank), m_gather(std::move(gather)),
        m_mode(mode), m_timeout(timeout), m_stream(device), m_one_shot(device) {}
  ~PeerMemory();

  /// The window, with room for `bytes`, ordered behind its last use; 0 where no rank can reach its
  /// peers, or where it is too small and `stream` captures. All ranks call it alike.
  cuda::CUdeviceptr reserve(int64_t bytes, void *stream, bool capturing);
  /// Says that what the stream does with the window ends here, until the next reserve().
  void release(void *stream, bool capturing);

  /// Whether the peers along an axis write to memory at this address.
  bool reaches(size_t axis, cuda::CUdeviceptr address) const;
  /// Lets a peer write into this rank's window.
  void allow(int64_t peer, void *stream);
  /// A block of this rank, and the place in this rank's window that it gets in the peer's.
  struct Copy {
    cuda::CUdeviceptr to, from;
    size_t bytes;
  };
  void send(int64_t peer, std::span<const Copy> copies, void *stream);
  /// Holds a stream until the peer's blocks are there.
  void await(int64_t peer, void *stream);
  /// Sets all flags of the peers, so that no stream of theirs waits for this rank.
  void abandon();
  /// Why blocks go through NCCL; empty if they do not.
  const std::string &reason() const { return m_reason; }

  // One-shot exchanges (PeerOneShot.cpp).
  /// Whether the ranks along an axis exchange blocks by a kernel of their own.
  bool has_one_shot(size_t axis) const;
  /// An exchange along an axis that moves nothing yet.
  one_shot::Call call_along(size_t axis) const;
  /// From the beginning of the window.
  one_shot::Size offset_of(cuda::CUdeviceptr address) const {
    return address - m_windows.back()->buffer.address();
  }
  void exchange_at_once(const one_shot::Call &call, OneShotKind kind, void *stream);
  /// Throws `rank_lost` where a one-shot exchange has waited for a rank in vain.
  void check_ranks() const;
  /// Why there are no one-shot exchanges; empty if there are, or none was asked for yet.
  const std::string &reason_for_no_one_shot() const { return m_one_shot_reason; }

private:
  struct Card;
  struct Window {
    cuda::DeviceBuffer buffer;
    std::map<int64_t, cuda::CUdeviceptr> peers; ///< where their windows begin
    std::vector<cuda::CUdeviceptr> opened;      ///< by handles
  };
  size_t flag_bytes() const;
  /// Of all that comes before the memory for tensors.
  size_t head_bytes() const;
  size_t signals_at(size_t axis) const { return flag_bytes() + axis * sizeof(one_shot::Signals); }
  cuda::CUdeviceptr flag(cuda::CUdeviceptr window, int64_t of, bool arrived) const;
  std::vector<int64_t> peers() const; ///< along all axes
  bool grow(int64_t bytes);
  Card card_of(const cuda::DeviceBuffer &buffer);
  std::string open(Window &window, const std::vector<Card> &cards);
  void choose_axes(const std::vector<Card> &cards);
  std::string send_words();
  std::string try_out();
  std::string try_one_shot();
  void prepare_one_shot();
  void tell_gone(const Window &window);
  bool can_capture();
  void set(cuda::CUdeviceptr flag, void *stream);
  void take(cuda::CUdeviceptr flag, void *stream);
  bool all_agree(bool own);
  void give_up(std::string reason);

  cuda::DeviceContext &m_device;
  std::vector<MeshAxis> m_axes;
  int64_t m_rank;
  GatherBytes m_gather;
  Mode m_mode;
  std::chrono::milliseconds m_timeout;
  cuda::OwnedStream m_stream;
  std::vector<std::unique_ptr<Window>> m_windows; ///< the last one is in use; graphs may use others
  std::vector<bool> m_reached;                    ///< by axis
  bool m_is_off = false, m_captures = false, m_has_one_shot = false;
  std::string m_reason, m_one_shot_reason;
  OneShot m_one_shot;
  std::unique_ptr<cuda::Event> m_last_use;
  void *m_last_stream = nullptr;
};

} // namespace tk::detail
