//===- Order.h - which accesses come before which ----------------*- C++ -*-===//
//
// Accesses are made by agents: the threads of a cluster, its warpgroups (products read shared
// memory on their own) and its phase barriers (bulk copies write shared memory on their own). Each
// agent stamps what it does, stamps only grow, and each thread knows up to which stamp it has seen
// every agent: vector clocks. Where all threads of the cluster meet one number does: what was
// stamped before is seen by all. Most kernels never need more, so the clocks are kept only once one
// of another kind of synchronisation occurs.
//
// Shared memory is accessed through two proxies. What a thread writes by the generic one is seen
// by the asynchronous one only past a proxy fence; so a clock also says what has passed one.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_EMU_ORDER_H
#define TK_COMPILER_CODEGEN_EMU_ORDER_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tk::emu {

using Agent = uint16_t;

struct Access {
  uint32_t stamp = 0; ///< 0: there was none
  Agent agent = 0;
  uint16_t site = 0;
  explicit operator bool() const { return stamp != 0; }
};

/// What is known at one point of one thread, or handed over by a barrier.
struct Clock {
  std::vector<uint32_t> seen;   ///< by agent: the latest stamp that comes before
  std::vector<uint32_t> fenced; ///< by agent: the latest stamp that a proxy fence came after
  uint32_t fencedBefore = 0;    ///< every stamp below has passed a proxy fence

  void join(const Clock &other);
  /// Keeps what both know.
  void meet(const Clock &other);
};

/// From where accesses are judged: an agent and what it knows; without a clock no more than where
/// all have met.
struct Viewer {
  Agent self = 0;
  const Clock *clock = nullptr;
};

/// The order among the accesses of one launch. Clusters run one after the other, but nothing orders
/// them, unless they count themselves: what comes before that is seen by those that count later.
class Order {
public:
  static constexpr unsigned barriersPerBlock = 128;

  void beginCluster(unsigned threadsPerBlock, unsigned blocks);

  /// All threads of the cluster have met.
  void meetAll();
  /// `count` threads from `first` on have met.
  void meet(Agent first, unsigned count);
  /// What `thread` did so far comes before what those do that acquire `into` ...
  void release(Agent thread, Clock &into);
  void acquire(Agent thread, const Clock &from);
  /// What `thread` knows is from here on visible to the asynchronous proxy.
  void fence(Agent thread);
  /// `thread` has seen what an agent that is no thread did up to `stamp`.
  void see(Agent thread, Agent agent, uint32_t stamp);
  /// Those that acquire `into` will have seen it.
  void show(Agent agent, uint32_t stamp, Clock &into);
  /// `thread` counts with `counter`, as the first since that was 0 or not.
  void count(Agent thread, const void *counter, bool isFirst);
  /// A stamp after all others.
  uint32_t next() { return ++counter; }

  Agent warpgroupAgent(unsigned block, unsigned warpgroup) const {
    return static_cast<Agent>(firstWarpgroup + block * warpgroupsPerBlock + warpgroup);
  }
  Agent barrierAgent(unsigned block, unsigned barrier) const {
    return static_cast<Agent>(firstBarrier + block * barriersPerBlock + barrier);
  }
  bool isThread(Agent agent) const { return agent < firstWarpgroup; }

  Access access(Agent thread, uint16_t site) const { return {stampOf(thread), thread, site}; }
  Viewer viewer(Agent thread) const { return {thread, clocks.empty() ? nullptr : &clocks[thread]}; }
  /// What all of `count` warps from thread `first` on know, where a warp knows what one of its
  /// lanes does.
  Clock common(Agent first, unsigned count);

  /// Whether an access comes before what the viewer does now.
  bool before(const Access &access, const Viewer &viewer) const {
    if (access.stamp < start)
      return isCounted(access, viewer);
    return access.stamp < base || access.agent == viewer.self ||
           (viewer.clock && access.stamp <= viewer.clock->seen[access.agent]);
  }
  /// Whether such an access is visible to what the viewer begins in the asynchronous proxy.
  bool fenced(const Access &access, const Viewer &viewer) const {
    return !isThread(access.agent) ||
           (viewer.clock && (access.stamp < viewer.clock->fencedBefore ||
                             access.stamp <= viewer.clock->fenced[access.agent]));
  }

  /// Which of the launch's clusters, counted as they ran, made an access.
  unsigned clusterOf(const Access &access) const;
  unsigned blocksPerCluster() const { return blocks; }
  bool inCurrentCluster(const Access &access) const { return access.stamp >= start; }
  /// "thread 37 (warp 1, lane 5)", "a product of warps 0-3", "a bulk copy"; of other blocks than
  /// the cluster's first with their rank.
  std::string text(Agent agent) const;

private:
  uint32_t stampOf(Agent thread) const {
    return clocks.empty() || own[thread] < base ? base : own[thread];
  }
  /// Begins to keep clocks.
  void track();
  /// Whether an access of an earlier cluster came before that counted, and the viewer after its own
  /// cluster did.
  bool isCounted(const Access &access, const Viewer &viewer) const;

  /// A cluster that counted itself: from which stamp to which it ran, and what the thread knew.
  struct Count {
    uint32_t start, end, base;
    Agent agent;
    Clock clock;
  };

  uint32_t counter = 0, start = 0, base = 0;
  std::vector<uint32_t> starts;
  std::map<const void *, std::vector<Count>> counts; ///< by counter, since it was 0
  std::vector<Count> counted;                        ///< those before this cluster
  Access counting;                                   ///< where this cluster counted itself
  unsigned threadsPerBlock = 0, warpgroupsPerBlock = 0, blocks = 0;
  unsigned firstWarpgroup = 0, firstBarrier = 0, agents = 0;
  std::vector<Clock> clocks; ///< by thread; empty: nobody has seen more than where all met
  std::vector<uint32_t> own; ///< by thread: the stamp of what it does now
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_ORDER_H
