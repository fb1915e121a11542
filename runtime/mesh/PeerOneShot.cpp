// One-shot exchanges between the windows of ranks: whether they work, and their launches.
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "runtime/Environment.h"
#include "runtime/mesh/Communicator.h"
#include "runtime/mesh/PeerMemory.h"

namespace tk::detail {

using one_shot::Call;
using one_shot::Move;
using one_shot::Word;

bool PeerMemory::has_one_shot(size_t axis) const {
  const int64_t ranks = m_axes[axis].size;
  return m_has_one_shot && !m_is_off && m_reached[axis] && ranks > 1 &&
         ranks <= static_cast<int64_t>(one_shot::most_ranks);
}

Call PeerMemory::call_along(size_t axis) const {
  const Window &window = *m_windows.back();
  Call call;
  call.signals = signals_at(axis);
  call.timeout = static_cast<one_shot::Size>(std::chrono::nanoseconds(m_timeout).count());
  for (int64_t rank : peers_along(m_axes, m_rank, axis)) {
    if (rank == m_rank)
      call.own = call.ranks;
    call.windows[call.ranks] = rank == m_rank ? window.buffer.address() : window.peers.at(rank);
    call.numbers[call.ranks++] = static_cast<Word>(rank);
  }
  return call;
}

/// As many thread blocks on all ranks: each waits for those of its number.
void PeerMemory::exchange_at_once(const Call &call, OneShotKind kind, void *stream) {
  constexpr one_shot::Size bytes_of_block = 8192; // one access of 16 bytes for each thread
  one_shot::Size bytes = 0;
  for (Word i = 0; i < call.num_moves; ++i)
    bytes += call.moves[i].width * call.moves[i].rows * (call.ranks - 1);
  const auto blocks = std::clamp<one_shot::Size>((bytes + bytes_of_block - 1) / bytes_of_block, 1,
                                                 one_shot::most_blocks);
  m_one_shot.launch(call, kind, static_cast<unsigned>(blocks), stream);
}

void PeerMemory::check_ranks() const {
  if (const int64_t rank = m_one_shot.lost_rank(); rank >= 0)
    throw Error(ErrorCode::rank_lost, "rank " + std::to_string(m_rank) + " of the mesh: rank " +
                                          std::to_string(rank) +
                                          " has given up, or did not come within " +
                                          std::to_string(m_timeout.count()) + " ms");
}

/// Exchanges words along each axis, gathered and added up, for some seconds at most; returns what
/// is wrong, and throws where a call fails.
std::string PeerMemory::try_one_shot() {
  constexpr auto limit = std::chrono::seconds(5);
  constexpr size_t count = 1024; // floats of a block: thread blocks of one exchange
  void *stream = m_stream.handle();
  for (size_t axis = 0; axis < m_axes.size(); ++axis) {
    const auto ranks = static_cast<size_t>(m_axes[axis].size);
    if (!m_reached[axis] || ranks < 2 || ranks > one_shot::most_ranks)
      continue;
    Call call = call_along(axis);
    call.timeout = static_cast<one_shot::Size>(std::chrono::nanoseconds(limit).count());
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), static_cast<float>(call.own));
    cuda::DeviceBuffer own(m_device, 2 * count * sizeof(float)); // values, and then the sum
    own.upload(values.data(), count * sizeof(float), 0, stream);
    Move &move = call.moves[call.num_moves++];
    move.from = own.address(), move.result = own.address() + count * sizeof(float);
    move.to = head_bytes(), move.to_peer = move.width = count * sizeof(float);
    move.from_pitch = move.to_pitch = move.width;
    move.unit = 16, move.is_combined = true;
    for (int round = 0; round < 2; ++round) // flags are used again
      m_one_shot.launch(call, {DType::f32, MeshCombine::sum}, 2, stream);
    m_stream.synchronize();
    own.download(values.data(), count * sizeof(float), count * sizeof(float), stream);
    if (m_one_shot.lost_rank() >= 0)
      return "rank " + std::to_string(m_one_shot.lost_rank()) + " did not answer within 5 s";
    const auto n = static_cast<float>(ranks);
    for (size_t i = 0; i < count; ++i)
      if (values[i] != n * (n - 1) / 2 + n * static_cast<float>(i))
        return "what another rank stored changed on its way";
  }
  return {};
}

/// Finds out whether all ranks can. Afterwards all know the same.
void PeerMemory::prepare_one_shot() {
  if (m_mode == Mode::engines)
    return;
  std::string problem = m_one_shot.prepare();
  if (all_agree(problem.empty())) {
    try {
      problem = try_one_shot();
    } catch (const Error &error) {
      problem = error.message();
    }
    m_has_one_shot = all_agree(problem.empty());
  }
  m_one_shot.forget_lost_rank();
  if (m_has_one_shot)
    return;
  m_one_shot_reason = problem.empty() ? "another rank cannot" : problem;
  log_message("no one-shot exchanges: " + m_one_shot_reason);
}

/// Has no kernel of a peer wait for this rank.
void PeerMemory::tell_gone(const Window &window) {
  if (!m_has_one_shot)
    return;
  for (size_t axis = 0; axis < m_axes.size(); ++axis) {
    if (!m_reached[axis] || m_axes[axis].size > static_cast<int64_t>(one_shot::most_ranks))
      continue;
    const Call call = call_along(axis);
    for (Word rank = 0; rank < call.ranks; ++rank)
      if (rank != call.own)
        m_device.driver->memcpy_dtod_async(
            call.windows[rank] + call.signals + offsetof(one_shot::Signals, gone) +
                call.own * sizeof(Word),
            flag(window.buffer.address(), m_rank, true), sizeof(Word),
            static_cast<cuda::CUstream>(m_stream.handle()));
  }
}

} // namespace tk::detail
