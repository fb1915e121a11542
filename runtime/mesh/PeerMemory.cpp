#include "runtime/mesh/PeerMemory.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include <unistd.h>

#include "runtime/Environment.h"
#include "runtime/mesh/Communicator.h"

namespace tk::detail {

using cuda::CUdeviceptr;
using cuda::CUstream;
using cuda::StreamOperation;

/// What a rank tells the others about its window.
struct PeerMemory::Card {
  char machine[64] = {}; ///< the boot of the machine
  int64_t process = 0;
  CUdeviceptr address = 0; ///< in that process
  int64_t device = 0;
  cuda::IpcHandle handle = {};
  bool is_shared = false; ///< there is a handle
  bool wants = false;     ///< no one asked for NCCL
};

PeerMemory::Mode PeerMemory::mode_of_environment() {
  const std::string value = environment(EnvVar::mesh_copies).value_or("auto");
  if (value == "auto")
    return Mode::automatic;
  if (value == "nccl")
    return Mode::nccl;
  if (value == "engines")
    return Mode::engines;
  if (value == "handles")
    return Mode::handles;
  throw Error(ErrorCode::invalid_argument,
              "TK_MESH_COPIES: expected auto, engines or nccl, got '" + value + "'");
}

PeerMemory::~PeerMemory() {
  m_device.driver->ctx_push_current(m_device.context);
  for (const std::unique_ptr<Window> &window : m_windows)
    for (CUdeviceptr address : window->opened)
      m_device.driver->ipc_close(address);
  cuda::CUcontext previous;
  m_device.driver->ctx_pop_current(&previous);
}

size_t PeerMemory::flag_bytes() const {
  constexpr size_t page = 4096;
  size_t ranks = 1;
  for (const MeshAxis &axis : m_axes)
    ranks *= static_cast<size_t>(axis.size);
  return (2 * ranks * sizeof(uint32_t) + page - 1) / page * page;
}

size_t PeerMemory::head_bytes() const {
  constexpr size_t page = 4096;
  return (signals_at(m_axes.size()) + page - 1) / page * page;
}

CUdeviceptr PeerMemory::flag(CUdeviceptr window, int64_t of, bool arrived) const {
  return window + (2 * static_cast<size_t>(of) + (arrived ? 1 : 0)) * sizeof(uint32_t);
}

std::vector<int64_t> PeerMemory::peers() const {
  std::vector<int64_t> found;
  for (size_t axis = 0; axis < m_axes.size(); ++axis)
    for (int64_t peer : peers_along(m_axes, m_rank, axis))
      if (peer != m_rank && m_reached[axis])
        found.push_back(peer);
  return found;
}

static void copy_text(char (&to)[64]) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  if (!(file >> text)) {
    char name[64] = {};
    ::gethostname(name, sizeof name - 1);
    text = name;
  }
  std::snprintf(to, sizeof to, "%s", text.c_str());
}

PeerMemory::Card PeerMemory::card_of(const cuda::DeviceBuffer &buffer) {
  Card card;
  copy_text(card.machine);
  card.process = ::getpid();
  card.address = buffer.address();
  card.device = m_device.index;
  card.wants = m_mode != Mode::nccl && m_device.driver->stream_batch_mem_op;
  card.is_shared = m_device.driver->ipc_get_handle &&
                   m_device.driver->ipc_get_handle(&card.handle, buffer.address()) == 0;
  return card;
}

/// An axis is reached if all ranks that stand along it are on one machine.
void PeerMemory::choose_axes(const std::vector<Card> &cards) {
  const auto ranks = static_cast<int64_t>(cards.size());
  m_reached.assign(m_axes.size(), true);
  for (size_t axis = 0; axis < m_axes.size(); ++axis)
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (int64_t peer : peers_along(m_axes, rank, axis))
        if (std::strcmp(cards[peer].machine, cards[rank].machine) != 0)
          m_reached[axis] = false;
}

/// Finds the windows of the peers; returns why that cannot be.
std::string PeerMemory::open(Window &window, const std::vector<Card> &cards) {
  for (int64_t peer : peers()) {
    const Card &card = cards[static_cast<size_t>(peer)];
    const std::string who = "rank " + std::to_string(peer) + ": ";
    if (card.process == ::getpid() && m_mode != Mode::handles) {
      cuda::DeviceContext &other = *cuda::DeviceContext::get(static_cast<int>(card.device)).value();
      constexpr int already = 704; // CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
      const int failed =
          other.index == m_device.index ? 0 : m_device.driver->enable_peer_access(other.context, 0);
      if (failed != 0 && failed != already)
        return who + m_device.driver->error(failed, "cuCtxEnablePeerAccess", ErrorCode::unsupported)
                         .message();
      window.peers[peer] = card.address;
      continue;
    }
    if (!card.is_shared)
      return who + "its memory has no handle for other processes";
    constexpr unsigned lazy_peer_access = 1;
    CUdeviceptr address = 0;
    if (const int failed = m_device.driver->ipc_open(&address, card.handle, lazy_peer_access))
      return who +
             m_device.driver->error(failed, "cuIpcOpenMemHandle", ErrorCode::unsupported).message();
    window.opened.push_back(address);
    window.peers[peer] = address;
  }
  return {};
}

bool PeerMemory::all_agree(bool own) {
  const std::vector<std::byte> all = m_gather(&own, sizeof own);
  return std::all_of(all.begin(), all.end(), [](std::byte value) { return value != std::byte{0}; });
}

/// From here on blocks go through NCCL.
void PeerMemory::give_up(std::string reason) {
  m_is_off = true;
  m_reason = std::move(reason);
  log_message("blocks go through NCCL: " + m_reason);
  if (m_mode == Mode::engines)
    throw Error(ErrorCode::unsupported, "TK_MESH_COPIES=engines: rank " + std::to_string(m_rank) +
                                            " of the mesh cannot copy to its peers: " + m_reason);
}

/// Makes a window with room for `bytes`, which all ranks know; false if that cannot be.
bool PeerMemory::grow(int64_t bytes) {
  constexpr size_t block = size_t{2} << 20;  // that a handle shares
  constexpr size_t least = size_t{64} << 10; // what exchanges are tried out with
  size_t size = head_bytes() + std::max(static_cast<size_t>(bytes), least);
  if (!m_windows.empty())
    size = std::max(size, 2 * m_windows.back()->buffer.size());
  auto window = std::make_unique<Window>();
  window->buffer = cuda::DeviceBuffer(m_device, (size + block - 1) / block * block);
  std::vector<uint32_t> flags(head_bytes() / sizeof(uint32_t));
  flags[2 * static_cast<size_t>(m_rank) + 1] = 1; // no peer's; what abandon() copies
  window->buffer.upload(flags.data(), head_bytes(), 0, m_stream.handle());
  const Card own = card_of(window->buffer);
  const std::vector<std::byte> texts = m_gather(&own, sizeof own);
  std::vector<Card> cards(texts.size() / sizeof(Card));
  std::memcpy(static_cast<void *>(cards.data()), texts.data(), texts.size());
  const bool wanted =
      std::all_of(cards.begin(), cards.end(), [](const Card &card) { return card.wants; });
  if (!wanted) {
    give_up("a rank takes NCCL, or its driver has no operations of streams on memory");
    return false;
  }
  choose_axes(cards);
  std::string problem = open(*window, cards);
  const bool is_first = m_windows.empty();
  m_windows.push_back(std::move(window));
  if (!all_agree(problem.empty())) {
    give_up(problem.empty() ? "another rank cannot reach its peers" : problem);
    return false;
  }
  if (!is_first)
    return true;
  problem = try_out();
  if (!all_agree(problem.empty())) {
    give_up(problem.empty() ? "copies of another rank do not arrive" : problem);
    return false;
  }
  m_captures = all_agree(can_capture());
  prepare_one_shot();
  return true;
}

/// Sends each peer a word and waits for theirs, for some seconds; throws where a call fails.
std::string PeerMemory::send_words() {
  constexpr auto limit = std::chrono::seconds(5);
  const CUdeviceptr base = m_windows.back()->buffer.address() + head_bytes();
  auto word = [&](int64_t rank) { return base + static_cast<size_t>(rank) * sizeof(uint32_t); };
  auto mark = [](int64_t rank) { return 0x746b0000 + static_cast<uint32_t>(rank); };
  const uint32_t own = mark(m_rank);
  void *stream = m_stream.handle();
  m_windows.back()->buffer.upload(&own, sizeof own, word(m_rank) - base + head_bytes(), stream);
  cuda::Event begin(m_device), end(m_device);
  begin.record(stream);
  for (int64_t peer : peers())
    allow(peer, stream);
  for (int64_t peer : peers())
    send(peer, std::vector<Copy>{{word(m_rank), word(m_rank), sizeof own}}, stream);
  for (int64_t peer : peers())
    await(peer, stream);
  end.record(stream);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  constexpr int not_ready = 600; // CUDA_ERROR_NOT_READY
  int state = not_ready;
  while ((state = end.state_since(begin)) == not_ready &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (state == not_ready)
    return "a copy did not arrive within 5 s";
  m_device.check(state, "a copy to a peer");
  for (int64_t peer : peers()) {
    uint32_t found = 0;
    m_windows.back()->buffer.download(&found, sizeof found, word(peer) - base + head_bytes(),
                                      stream);
    if (found != mark(peer))
      return "a copy of rank " + std::to_string(peer) + " changed on its way";
  }
  return {};
}

/// Returns what is in the way of copies to the peers.
std::string PeerMemory::try_out() {
  std::string problem;
  try {
    problem = send_words();
  } catch (const Error &error) {
    problem = error.message();
  }
  if (problem.empty())
    return {};
  // Lets the own stream go on, which may wait for a peer.
  cuda::OwnedStream other(m_device);
  const std::vector<uint32_t> ones(flag_bytes() / sizeof(uint32_t), 1);
  m_windows.back()->buffer.upload(ones.data(), flag_bytes(), 0, other.handle());
  return problem;
}

/// Whether a CUDA graph takes operations of streams on memory, and copies to a peer.
bool PeerMemory::can_capture() {
  cuda::OwnedStream stream(m_device);
  auto *handle = static_cast<CUstream>(stream.handle());
  constexpr int relaxed = 2;
  const Window &window = *m_windows.back();
  const cuda::Driver &driver = *m_device.driver;
  if (driver.stream_begin_capture(handle, relaxed) != 0)
    return false;
  StreamOperation operation;
  operation.kind = StreamOperation::write;
  operation.address = flag(window.buffer.address(), m_rank, false);
  bool is_taken = driver.stream_batch_mem_op(handle, 1, &operation, 0) == 0;
  if (!window.peers.empty())
    is_taken &= driver.memcpy_dtod_async(window.peers.begin()->second + head_bytes(),
                                         window.buffer.address() + head_bytes(), sizeof(uint32_t),
                                         handle) == 0;
  cuda::CUgraph graph = nullptr;
  cuda::CUgraphExec made = nullptr;
  is_taken &= driver.stream_end_capture(handle, &graph) == 0;
  is_taken = is_taken && driver.graph_instantiate(&made, graph, 0) == 0;
  if (made)
    driver.graph_exec_destroy(made);
  if (graph)
    driver.graph_destroy(graph);
  return is_taken;
}

CUdeviceptr PeerMemory::reserve(int64_t bytes, void *stream, bool capturing) {
  if (m_is_off || (capturing && !m_captures && !m_windows.empty()))
    return 0;
  cuda::ScopedContext scope(m_device);
  const bool fits = !m_windows.empty() &&
                    head_bytes() + static_cast<size_t>(bytes) <= m_windows.back()->buffer.size();
  if (!fits && (capturing || !grow(bytes)))
    return 0;
  if (!capturing && m_last_use && m_last_stream != stream)
    m_last_use->hold(stream);
  return m_windows.back()->buffer.address() + head_bytes();
}

void PeerMemory::release(void *stream, bool capturing) {
  if (capturing)
    return; // the caller orders launches of its graphs
  if (!m_last_use)
    m_last_use = std::make_unique<cuda::Event>(m_device);
  m_last_use->record(stream);
  m_last_stream = stream;
}

bool PeerMemory::reaches(size_t axis, CUdeviceptr address) const {
  if (m_is_off || m_windows.empty() || !m_reached[axis])
    return false;
  const cuda::DeviceBuffer &buffer = m_windows.back()->buffer;
  return address >= buffer.address() && address < buffer.address() + buffer.size();
}

void PeerMemory::set(CUdeviceptr flag, void *stream) {
  StreamOperation operation;
  operation.kind = StreamOperation::write, operation.address = flag, operation.value = 1;
  m_device.check(
      m_device.driver->stream_batch_mem_op(static_cast<CUstream>(stream), 1, &operation, 0),
      "cuStreamBatchMemOp");
}

/// Waits for a flag and clears it.
void PeerMemory::take(CUdeviceptr flag, void *stream) {
  StreamOperation operations[2];
  operations[0].kind = StreamOperation::wait, operations[0].value = 1;
  operations[0].flags = StreamOperation::until_equal;
  operations[1].kind = StreamOperation::write, operations[1].value = 0;
  for (StreamOperation &operation : operations)
    operation.address = flag;
  m_device.check(
      m_device.driver->stream_batch_mem_op(static_cast<CUstream>(stream), 2, operations, 0),
      "cuStreamBatchMemOp");
}

void PeerMemory::allow(int64_t peer, void *stream) {
  set(flag(m_windows.back()->peers.at(peer), m_rank, false), stream);
}

void PeerMemory::send(int64_t peer, std::span<const Copy> copies, void *stream) {
  const Window &window = *m_windows.back();
  const CUdeviceptr theirs = window.peers.at(peer);
  take(flag(window.buffer.address(), peer, false), stream);
  for (const auto &[to, from, bytes] : copies)
    if (bytes > 0)
      m_device.check(m_device.driver->memcpy_dtod_async(theirs + (to - window.buffer.address()),
                                                        from, bytes, static_cast<CUstream>(stream)),
                     "cuMemcpyDtoDAsync");
  set(flag(theirs, m_rank, true), stream);
}

void PeerMemory::await(int64_t peer, void *stream) {
  take(flag(m_windows.back()->buffer.address(), peer, true), stream);
}

void PeerMemory::abandon() {
  if (m_is_off || m_windows.empty())
    return;
  cuda::ScopedContext scope(m_device);
  m_is_off = true;
  const Window &window = *m_windows.back();
  for (const auto &[peer, theirs] : window.peers)
    for (bool arrived : {false, true})
      m_device.driver->memcpy_dtod_async(
          flag(theirs, m_rank, arrived), flag(window.buffer.address(), m_rank, true),
          sizeof(uint32_t), static_cast<CUstream>(m_stream.handle()));
  tell_gone(window);
}

} // namespace tk::detail
