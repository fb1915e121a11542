// Ranks that are processes of one machine, on memory that they share: a file of counters, and one
// file a rank that holds what it shows the others. A rank copies its tensor there, waits until all
// have, computes its part of the collective from their tensors, and waits until all have read.
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/mesh/HostRank.h"
#include "tk/mesh.h"

namespace tk {
namespace detail {
namespace {

constexpr int64_t most_ranks = 64;
constexpr size_t most_axes = 8, most_reason = 256;

/// A rank's meetings so far: of each axis, and of all ranks.
struct Counters {
  std::atomic<uint64_t> meetings[most_axes + 1];
};

/// Memory that all ranks share; a new file is all 0.
struct Shared {
  std::atomic<uint32_t> aborted;
  char reason[most_reason];
  Counters ranks[most_ranks];
};

[[noreturn]] void fail(const std::string &what, const std::string &path) {
  throw Error(ErrorCode::io, what + " '" + path + "': " + std::strerror(errno));
}

/// A file in memory.
class Mapping {
public:
  Mapping() = default;
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;
  ~Mapping() {
    unmap();
    if (m_file >= 0)
      ::close(m_file);
  }
  void open(const std::string &path) {
    m_path = path;
    m_file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (m_file < 0)
      fail("cannot open", path);
  }
  /// Makes the file at least that long, and maps so much of it.
  std::byte *resize(size_t bytes) {
    if (bytes <= m_bytes)
      return m_address;
    struct stat state = {};
    if (::fstat(m_file, &state) != 0)
      fail("cannot read", m_path);
    if (static_cast<size_t>(state.st_size) < bytes &&
        ::ftruncate(m_file, static_cast<off_t>(bytes)) != 0)
      fail("cannot enlarge", m_path);
    unmap();
    void *address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m_file, 0);
    if (address == MAP_FAILED)
      fail("cannot map", m_path);
    m_address = static_cast<std::byte *>(address), m_bytes = bytes;
    return m_address;
  }

private:
  void unmap() {
    if (m_address)
      ::munmap(m_address, m_bytes);
    m_address = nullptr, m_bytes = 0;
  }
  std::string m_path;
  int m_file = -1;
  std::byte *m_address = nullptr;
  size_t m_bytes = 0;
};

class ProcessRank : public HostRank {
public:
  ProcessRank(const std::string &path, int64_t rank, std::vector<MeshAxis> axes,
              MeshOptions options)
      : m_axes(std::move(axes)), m_options(std::move(options)), m_rank(rank),
        m_shown(static_cast<size_t>(size())) {
    m_file.open(path);
    m_shared = reinterpret_cast<Shared *>(m_file.resize(sizeof(Shared)));
    for (int64_t r = 0; r < size(); ++r) {
      m_all.push_back(r);
      m_shown[static_cast<size_t>(r)].open(path + "." + std::to_string(r));
    }
    meet(most_axes, m_all);
    // All have opened the files: they go with the last process.
    ::unlink((path + "." + std::to_string(rank)).c_str());
    if (rank == 0)
      ::unlink(path.c_str());
  }

  const std::vector<MeshAxis> &axes() const override { return m_axes; }
  int64_t rank() const override { return m_rank; }
  const std::string &network() const override { return m_options.network; }

  std::vector<std::string> exchange(const std::string &own) override {
    std::byte *shown = m_shown[static_cast<size_t>(m_rank)].resize(sizeof(size_t) + own.size());
    const size_t bytes = own.size();
    std::memcpy(shown, &bytes, sizeof bytes);
    std::memcpy(shown + sizeof bytes, own.data(), bytes);
    meet(most_axes, m_all);
    std::vector<std::string> texts;
    for (Mapping &other : m_shown) {
      size_t count = 0;
      std::memcpy(&count, other.resize(sizeof count), sizeof count);
      const std::byte *text = other.resize(sizeof count + count) + sizeof count;
      texts.emplace_back(reinterpret_cast<const char *>(text), count);
    }
    meet(most_axes, m_all);
    return texts;
  }

  void abort(std::string_view reason) override {
    if (m_shared->aborted.exchange(1) == 0) {
      reason.copy(m_shared->reason, most_reason - 1);
      m_shared->aborted.store(2);
    }
  }

private:
  std::vector<const void *> show(const CollectiveCall &call,
                                 const std::vector<int64_t> &members) override {
    const auto bytes = static_cast<size_t>(byte_count(call.dtype, call.from_shape).value());
    const size_t room = std::max<size_t>(bytes, 1);
    std::memcpy(m_shown[static_cast<size_t>(m_rank)].resize(room), call.from, bytes);
    meet(call.axis, members);
    std::vector<const void *> tensors;
    for (int64_t member : members)
      tensors.push_back(m_shown[static_cast<size_t>(member)].resize(room));
    return tensors;
  }
  void meet(size_t number, const std::vector<int64_t> &members) override;
  [[noreturn]] void throw_aborted() const {
    throw Error(ErrorCode::rank_lost,
                "rank " + std::to_string(m_rank) + " of the mesh: " +
                    (m_shared->aborted.load() == 2 ? m_shared->reason : "the group was aborted"));
  }

  std::vector<MeshAxis> m_axes;
  MeshOptions m_options;
  int64_t m_rank;
  Mapping m_file;
  Shared *m_shared = nullptr;
  std::vector<Mapping> m_shown; ///< by rank
  std::vector<int64_t> m_all;
};

/// Counts this rank's meetings, and waits until all members have had as many.
void ProcessRank::meet(size_t number, const std::vector<int64_t> &members) {
  const uint64_t own = m_shared->ranks[m_rank].meetings[number].fetch_add(1) + 1;
  const auto limit = std::chrono::steady_clock::now() + m_options.timeout;
  auto missing = [&] {
    std::string ranks;
    for (int64_t member : members)
      if (m_shared->ranks[member].meetings[number].load() < own)
        ranks += (ranks.empty() ? "" : ", ") + std::to_string(member);
    return ranks;
  };
  for (unsigned turn = 0;; ++turn) {
    if (m_shared->aborted.load() != 0)
      throw_aborted();
    const std::string absent = missing();
    if (absent.empty())
      return;
    if (std::chrono::steady_clock::now() >= limit) {
      abort("rank " + absent + " did not come within " + std::to_string(m_options.timeout.count()) +
            " ms");
      throw_aborted();
    }
    constexpr unsigned turns_without_sleep = 100;
    if (turn < turns_without_sleep)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

} // namespace
} // namespace detail

Mesh Mesh::process(const std::string &path, int64_t rank, std::span<const MeshAxis> axes,
                   MeshOptions options) {
  int64_t ranks = 1;
  for (const MeshAxis &axis : axes)
    ranks = ranks > 0 && axis.size >= 1 && axis.size <= detail::most_ranks / ranks
                ? ranks * axis.size
                : 0;
  if (ranks < 1 || axes.size() > detail::most_axes)
    throw Error(ErrorCode::invalid_argument, "expected axes with 1 to " +
                                                 std::to_string(detail::most_ranks) +
                                                 " ranks in all for a mesh of processes");
  if (rank < 0 || rank >= ranks)
    throw Error(ErrorCode::invalid_argument,
                "expected a rank below " + std::to_string(ranks) + ", got " + std::to_string(rank));
  return Mesh(std::make_shared<detail::ProcessRank>(
      path, rank, std::vector<MeshAxis>(axes.begin(), axes.end()), std::move(options)));
}

} // namespace tk
