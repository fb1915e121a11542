//===- Order.cpp - which accesses come before which -----------------------===//
#include "compiler/codegen/emu/Order.h"

#include <algorithm>

namespace tk::emu {

static void maxInto(std::vector<uint32_t> &into, const std::vector<uint32_t> &from) {
  if (into.empty()) {
    into = from;
    return;
  }
  for (size_t i = 0; i < from.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}
static void minInto(std::vector<uint32_t> &into, const std::vector<uint32_t> &from) {
  for (size_t i = 0; i < into.size(); ++i)
    into[i] = std::min(into[i], from[i]);
}

void Clock::join(const Clock &other) {
  maxInto(seen, other.seen);
  maxInto(fenced, other.fenced);
  fencedBefore = std::max(fencedBefore, other.fencedBefore);
}

void Clock::meet(const Clock &other) {
  minInto(seen, other.seen);
  minInto(fenced, other.fenced);
  fencedBefore = std::min(fencedBefore, other.fencedBefore);
}

void Order::beginCluster(unsigned threads, unsigned numBlocks) {
  base = start = ++counter;
  starts.push_back(start);
  threadsPerBlock = threads;
  blocks = numBlocks;
  warpgroupsPerBlock = (threads + 127) / 128;
  firstWarpgroup = blocks * threads;
  firstBarrier = firstWarpgroup + blocks * warpgroupsPerBlock;
  agents = firstBarrier + blocks * barriersPerBlock;
  clocks.clear();
  own.clear();
  counted.clear();
  counting = {};
}

void Order::count(Agent thread, const void *with, bool isFirst) {
  std::vector<Count> &others = counts[with];
  if (isFirst)
    others.clear();
  counted.insert(counted.end(), others.begin(), others.end());
  counting = access(thread, 0);
  others.push_back({start, counter, base, thread, clocks.empty() ? Clock() : clocks[thread]});
}

bool Order::isCounted(const Access &access, const Viewer &viewer) const {
  if (!counting || !before(counting, viewer))
    return false;
  return std::any_of(counted.begin(), counted.end(), [&](const Count &count) {
    const bool isKnown =
        access.stamp < count.base || access.agent == count.agent ||
        (!count.clock.seen.empty() && access.stamp <= count.clock.seen[access.agent]);
    return access.stamp >= count.start && access.stamp <= count.end && isKnown;
  });
}

void Order::track() {
  if (!clocks.empty())
    return;
  Clock nothing;
  nothing.seen.assign(agents, 0);
  nothing.fenced.assign(agents, 0);
  clocks.assign(firstWarpgroup, nothing);
  own.assign(firstWarpgroup, base);
}

void Order::meetAll() {
  if (!clocks.empty()) {
    // What all have seen is below the base now; what is fenced still counts.
    Clock &all = clocks.front();
    for (const Clock &clock : clocks) {
      maxInto(all.fenced, clock.fenced);
      all.fencedBefore = std::max(all.fencedBefore, clock.fencedBefore);
    }
    for (Clock &clock : clocks) {
      clock.fenced = all.fenced;
      clock.fencedBefore = all.fencedBefore;
    }
  }
  base = ++counter;
}

void Order::meet(Agent first, unsigned count) {
  track();
  Clock all;
  for (unsigned t = first; t < first + count; ++t)
    release(static_cast<Agent>(t), all);
  for (unsigned t = first; t < first + count; ++t)
    clocks[t].join(all);
}

void Order::release(Agent thread, Clock &into) {
  track();
  Clock &mine = clocks[thread];
  mine.seen[thread] = stampOf(thread);
  into.join(mine);
  own[thread] = ++counter;
}

void Order::acquire(Agent thread, const Clock &from) {
  track();
  if (!from.seen.empty())
    clocks[thread].join(from);
}

void Order::fence(Agent thread) {
  track();
  Clock &mine = clocks[thread];
  mine.seen[thread] = stampOf(thread);
  maxInto(mine.fenced, mine.seen);
  mine.fencedBefore = std::max(mine.fencedBefore, base);
  own[thread] = ++counter;
}

void Order::see(Agent thread, Agent agent, uint32_t stamp) {
  track();
  uint32_t &seen = clocks[thread].seen[agent];
  seen = std::max(seen, stamp);
}

void Order::show(Agent agent, uint32_t stamp, Clock &into) {
  if (into.seen.empty()) {
    into.seen.assign(agents, 0);
    into.fenced.assign(agents, 0);
  }
  into.seen[agent] = std::max(into.seen[agent], stamp);
}

Clock Order::common(Agent first, unsigned warps) {
  constexpr unsigned lanes = 32;
  track();
  Clock result;
  for (unsigned warp = 0; warp < warps; ++warp) {
    Clock ofWarp;
    for (unsigned t = first + warp * lanes; t < first + (warp + 1) * lanes; ++t) {
      clocks[t].seen[t] = stampOf(static_cast<Agent>(t));
      ofWarp.join(clocks[t]);
    }
    if (warp == 0)
      result = std::move(ofWarp);
    else
      result.meet(ofWarp);
  }
  return result;
}

unsigned Order::clusterOf(const Access &access) const {
  auto next = std::upper_bound(starts.begin(), starts.end(), access.stamp);
  return static_cast<unsigned>(next - starts.begin()) - 1;
}

std::string Order::text(Agent agent) const {
  std::string text;
  unsigned block = 0;
  if (agent < firstWarpgroup) {
    const unsigned thread = agent % threadsPerBlock;
    block = agent / threadsPerBlock;
    text = "thread " + std::to_string(thread) + " (warp " + std::to_string(thread / 32) +
           ", lane " + std::to_string(thread % 32) + ")";
  } else if (agent < firstBarrier) {
    const unsigned number = agent - firstWarpgroup, first = number % warpgroupsPerBlock * 4;
    block = number / warpgroupsPerBlock;
    text = "a product of warps " + std::to_string(first) + "-" + std::to_string(first + 3);
  } else {
    block = (agent - firstBarrier) / barriersPerBlock;
    text = "a bulk copy";
  }
  return text + (block ? " of block " + std::to_string(block) + " of the cluster" : "");
}

} // namespace tk::emu
