// An NCCL of ranks that are threads of the process, on host memory: each call waits for all ranks.
// Sums are those of f32 alone.
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace {

struct Group {
  explicit Group(int ranks) : from(ranks), colors(ranks), keys(ranks) {}
  void meet() {
    std::unique_lock lock(mutex);
    const unsigned long own = number;
    if (++here == from.size()) {
      here = 0;
      ++number;
      changed.notify_all();
      return;
    }
    changed.wait(lock, [&] { return number != own; });
  }
  std::mutex mutex;
  std::condition_variable changed;
  size_t here = 0;
  unsigned long number = 0;
  std::vector<const void *> from;
  std::vector<int> colors, keys;
  std::map<std::pair<unsigned long, int>, Group *> parts; ///< by split and colour
};

struct Comm {
  Group *group;
  int rank;
};

struct UniqueId {
  char bytes[128];
};

struct Message {
  const char *from;
  char *to;
  size_t bytes;
  int peer;
  Comm *comm;
};

thread_local std::vector<Message> messages;
std::mutex registry;
std::map<char, Group *> groups;
char next_id = 1;

size_t size_of(int type) { return type <= 1 ? 1 : type == 7 || type == 2 ? 4 : 8; }

void reduce(const std::vector<const void *> &from, size_t offset, float *to, size_t count, int op) {
  for (size_t i = 0; i < count; ++i) {
    float value = static_cast<const float *>(from[0])[offset + i];
    for (size_t rank = 1; rank < from.size(); ++rank) {
      const float other = static_cast<const float *>(from[rank])[offset + i];
      value = op == 0 ? value + other : op == 2 ? (value > other ? value : other) : value * other;
    }
    to[i] = value;
  }
}

} // namespace

extern "C" {
int ncclGetVersion(int *version) {
  *version = FAKE_NCCL_VERSION;
  return 0;
}
const char *ncclGetErrorString(int) { return "planted error"; }
int ncclGetUniqueId(UniqueId *id) {
  std::lock_guard lock(registry);
  std::memset(id->bytes, 0, sizeof id->bytes);
  id->bytes[0] = next_id++;
  return 0;
}
int ncclCommInitRank(Comm **comm, int ranks, UniqueId id, int rank) {
  std::unique_lock lock(registry);
  Group *group = nullptr;
  Group *&known = groups[id.bytes[0]];
  if (!known)
    known = new Group(ranks);
  group = known;
  *comm = new Comm{group, rank};
  lock.unlock();
  group->meet(); // as NCCL does
  return 0;
}
#ifndef FAKE_NCCL_INCOMPLETE
int ncclCommSplit(Comm *comm, int color, int key, Comm **made, void *) {
  Group &group = *comm->group;
  group.colors[comm->rank] = color, group.keys[comm->rank] = key;
  group.meet();
  int ranks = 0;
  for (int other : group.colors)
    ranks += other == color ? 1 : 0;
  {
    std::lock_guard lock(registry);
    Group *&part = group.parts[{group.number, color}];
    if (!part)
      part = new Group(ranks);
    *made = new Comm{part, key};
  }
  group.meet();
  return 0;
}
#endif
int ncclCommCount(Comm *comm, int *ranks) {
  *ranks = static_cast<int>(comm->group->from.size());
  return 0;
}
int ncclCommUserRank(Comm *comm, int *rank) {
  *rank = comm->rank;
  return 0;
}
int ncclCommGetAsyncError(Comm *, int *error) {
  *error = 0;
  return 0;
}
int ncclCommAbort(Comm *) { return 0; }
int ncclCommDestroy(Comm *comm) {
  delete comm;
  return 0;
}
int ncclAllGather(const void *from, void *to, size_t count, int type, Comm *comm, void *) {
  Group &group = *comm->group;
  group.from[comm->rank] = from;
  group.meet();
  const size_t bytes = count * size_of(type);
  for (size_t rank = 0; rank < group.from.size(); ++rank)
    std::memmove(static_cast<char *>(to) + rank * bytes, group.from[rank], bytes);
  group.meet();
  return 0;
}
int ncclAllReduce(const void *from, void *to, size_t count, int, int op, Comm *comm, void *) {
  Group &group = *comm->group;
  group.from[comm->rank] = from;
  group.meet();
  reduce(group.from, 0, static_cast<float *>(to), count, op);
  group.meet();
  return 0;
}
int ncclReduceScatter(const void *from, void *to, size_t count, int, int op, Comm *comm, void *) {
  Group &group = *comm->group;
  group.from[comm->rank] = from;
  group.meet();
  reduce(group.from, static_cast<size_t>(comm->rank) * count, static_cast<float *>(to), count, op);
  group.meet();
  return 0;
}
int ncclGroupStart() {
  messages.clear();
  return 0;
}
int ncclSend(const void *from, size_t count, int type, int peer, Comm *comm, void *) {
  messages.push_back({static_cast<const char *>(from), nullptr, count * size_of(type), peer, comm});
  return 0;
}
int ncclRecv(void *to, size_t count, int type, int peer, Comm *comm, void *) {
  messages.push_back({nullptr, static_cast<char *>(to), count * size_of(type), peer, comm});
  return 0;
}
int ncclGroupEnd() {
  if (messages.empty()) // collectives alone, which are done
    return 0;
  Comm &comm = *messages.front().comm;
  Group &group = *comm.group;
  const std::vector<Message> own = messages;
  group.from[comm.rank] = &own;
  group.meet();
  for (const Message &message : own)
    if (message.to)
      for (const Message &sent :
           *static_cast<const std::vector<Message> *>(group.from[message.peer]))
        if (sent.from && sent.peer == comm.rank)
          std::memcpy(message.to, sent.from, message.bytes);
  group.meet();
  return 0;
}
}
