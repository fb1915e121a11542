// Ranks that are threads of one process. Each shows the others where its tensor lies, waits until
// all have, computes its part of the collective from their tensors, and waits until all have read.
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "runtime/mesh/HostRank.h"
#include "tk/mesh.h"

namespace tk {
namespace detail {

int64_t Communicator::size() const {
  int64_t ranks = 1;
  for (const MeshAxis &axis : axes())
    ranks *= axis.size;
  return ranks;
}

int64_t Communicator::position(size_t axis) const {
  int64_t stride = 1;
  for (size_t a = axes().size() - 1; a > axis; --a)
    stride *= axes()[a].size;
  return rank() / stride % axes()[axis].size;
}

void Communicator::run_alone(const CollectiveCall &call, Stream) {
  const void *const own[] = {call.from};
  combine_on_host(call, own, 0);
}

std::shared_ptr<void> Communicator::temporaries(int64_t bytes, Stream, bool) {
  constexpr size_t alignment = 256;
  const size_t whole = (static_cast<size_t>(bytes) / alignment + 1) * alignment;
  std::shared_ptr<void> memory(std::aligned_alloc(alignment, whole), std::free);
  if (!memory)
    throw Error(ErrorCode::out_of_memory,
                "no memory for " + std::to_string(bytes) + " bytes between kernels");
  return memory;
}

std::vector<int64_t> peers_along(const std::vector<MeshAxis> &axes, int64_t rank, size_t axis) {
  int64_t stride = 1;
  for (size_t a = axes.size() - 1; a > axis; --a)
    stride *= axes[a].size;
  const int64_t first = rank - rank / stride % axes[axis].size * stride;
  std::vector<int64_t> peers;
  for (int64_t p = 0; p < axes[axis].size; ++p)
    peers.push_back(first + p * stride);
  return peers;
}

namespace {

/// What the ranks of a group share.
class ThreadGroup {
public:
  ThreadGroup(std::vector<MeshAxis> axes, MeshOptions options, size_t ranks)
      : axes(std::move(axes)), options(std::move(options)), slots(ranks), texts(ranks) {}

  /// Waits until all of `members`, of which `rank` is one, are here.
  void meet(int64_t rank, const std::vector<int64_t> &members);
  void abort(std::string_view reason);

  const std::vector<MeshAxis> axes;
  const MeshOptions options;
  std::vector<const void *>
      slots; ///< each written by its rank, and read by others between meetings
  std::vector<std::string> texts;

private:
  struct Meeting {
    std::set<int64_t> here;
    uint64_t number = 0;
  };
  void throw_aborted(int64_t rank) const {
    throw Error(ErrorCode::rank_lost, "rank " + std::to_string(rank) + " of the mesh: " + m_reason);
  }

  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::map<std::vector<int64_t>, Meeting> m_meetings;
  bool m_aborted = false;
  std::string m_reason;
};

void ThreadGroup::abort(std::string_view reason) {
  std::lock_guard lock(m_mutex);
  if (!m_aborted)
    m_reason = reason;
  m_aborted = true;
  m_changed.notify_all();
}

void ThreadGroup::meet(int64_t rank, const std::vector<int64_t> &members) {
  std::unique_lock lock(m_mutex);
  if (m_aborted)
    throw_aborted(rank);
  Meeting &meeting = m_meetings[members];
  const uint64_t number = meeting.number;
  meeting.here.insert(rank);
  if (meeting.here.size() == members.size()) {
    meeting.here.clear();
    ++meeting.number;
    m_changed.notify_all();
    return;
  }
  const bool met = m_changed.wait_for(lock, options.timeout,
                                      [&] { return m_aborted || meeting.number != number; });
  if (meeting.number != number)
    return;
  if (!met) {
    std::string missing;
    for (int64_t member : members)
      if (!meeting.here.count(member))
        missing += (missing.empty() ? "" : ", ") + std::to_string(member);
    m_reason = "rank " + missing + " did not come within " +
               std::to_string(options.timeout.count()) + " ms";
    m_aborted = true;
    m_changed.notify_all();
  }
  throw_aborted(rank);
}

class ThreadRank : public HostRank {
public:
  ThreadRank(std::shared_ptr<ThreadGroup> group, int64_t rank)
      : m_group(std::move(group)), m_rank(rank) {
    for (size_t r = 0; r < m_group->slots.size(); ++r)
      m_all.push_back(static_cast<int64_t>(r));
  }
  const std::vector<MeshAxis> &axes() const override { return m_group->axes; }
  int64_t rank() const override { return m_rank; }
  const std::string &network() const override { return m_group->options.network; }
  std::vector<std::string> exchange(const std::string &own) override {
    m_group->texts[m_rank] = own;
    m_group->meet(m_rank, m_all);
    std::vector<std::string> texts = m_group->texts;
    m_group->meet(m_rank, m_all);
    return texts;
  }

  void abort(std::string_view reason) override { m_group->abort(reason); }

private:
  std::vector<const void *> show(const CollectiveCall &call,
                                 const std::vector<int64_t> &members) override {
    m_group->slots[m_rank] = call.from;
    m_group->meet(m_rank, members);
    std::vector<const void *> tensors;
    for (int64_t member : members)
      tensors.push_back(m_group->slots[member]);
    return tensors;
  }
  void meet(size_t, const std::vector<int64_t> &members) override {
    m_group->meet(m_rank, members);
  }

  std::shared_ptr<ThreadGroup> m_group;
  int64_t m_rank;
  std::vector<int64_t> m_all;
};

} // namespace
} // namespace detail

std::vector<Mesh> Mesh::threads(std::span<const MeshAxis> axes, MeshOptions options) {
  constexpr int64_t most_ranks = 1024;
  int64_t ranks = 1;
  std::set<std::string> names;
  for (const MeshAxis &axis : axes) {
    if (axis.size < 1 || axis.size > most_ranks / ranks)
      throw Error(ErrorCode::invalid_argument,
                  "axis '" + axis.name + "' of the mesh: expected 1 to " +
                      std::to_string(most_ranks) + " ranks in all, got " +
                      std::to_string(axis.size));
    ranks *= axis.size;
    if (!names.insert(axis.name).second)
      throw Error(ErrorCode::invalid_argument, "the mesh has axis '" + axis.name + "' twice");
  }
  auto group =
      std::make_shared<detail::ThreadGroup>(std::vector<MeshAxis>(axes.begin(), axes.end()),
                                            std::move(options), static_cast<size_t>(ranks));
  std::vector<Mesh> meshes;
  for (int64_t rank = 0; rank < ranks; ++rank)
    meshes.emplace_back(std::make_shared<detail::ThreadRank>(group, rank));
  return meshes;
}

detail::Communicator &Mesh::impl() const {
  if (!m_impl)
    throw Error(ErrorCode::invalid_argument, "this mesh is empty: nothing was assigned to it");
  return *m_impl;
}
const std::vector<MeshAxis> &Mesh::axes() const { return impl().axes(); }
int64_t Mesh::size() const { return impl().size(); }
int64_t Mesh::rank() const { return impl().rank(); }
int64_t Mesh::position(size_t axis) const { return impl().position(axis); }
void Mesh::abort(std::string_view reason) const { impl().abort(reason); }

} // namespace tk
