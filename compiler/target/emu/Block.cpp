//===- Block.cpp - a block of threads, run as fibers: order ---------------===//
#include "compiler/target/emu/Block.h"

#include <algorithm>

namespace tk::emu {

Block::Block(unsigned threads, size_t sharedBytes, Timing timing, Order &order, Sites &sites,
             GlobalMemory &global)
    : numThreads(threads), sharedBytes(sharedBytes), timing(timing), random(timing.seed),
      order(order), sites(sites), global(global), shared(order, sites), stacks(threads) {}

const char *Block::name(Together what) {
  switch (what) {
  case Together::nothing:
    return "nothing";
  case Together::barrier:
    return "a barrier";
  case Together::shuffle:
    return "a shuffle";
  case Together::loadMatrix:
    return "load_matrix";
  case Together::multiply:
    return "a matrix product";
  }
  return "";
}

std::optional<Fault> Block::run(int x, int y, int z, Kernel entry, const void *const *values) {
  kernel = entry;
  arguments = values;
  block[0] = x, block[1] = y, block[2] = z;
  order.beginBlock();
  shared.reset(sharedBytes);
  threads.assign(numThreads, Thread());
  warps.assign((numThreads + warpSize - 1) / warpSize, Warp());
  ready.clear();
  readyBegin = 0;
  atBarrier = 0;
  live = numThreads;
  for (unsigned i = 0; i < numThreads; ++i) {
    threads[i].context = stacks.prepare(i, &Block::enter, this);
    ++warps[i / warpSize].lanes;
    makeReady(i);
  }
  fault.reset();
  resumeNext(scheduler);
  if (!fault && live > 0) {
    auto stuck =
        std::find_if(threads.begin(), threads.end(), [](const Thread &t) { return !t.exited; });
    fault = Fault{deadlockText(), stuck->place};
  }
  return fault;
}

void Block::enter(void *self) {
  auto *block = static_cast<Block *>(self);
  block->kernel(block->arguments);
  block->threads[static_cast<unsigned>(block->thread)].exited = true;
  --block->live;
  block->leave();
}

void Block::leave() {
  Context gone;
  resumeNext(gone);
  __builtin_unreachable();
}

void Block::makeReady(unsigned index) {
  threads[index].waitsFor = Together::nothing;
  ready.push_back(index);
}

void Block::resumeNext(Context &from) {
  if (readyBegin == ready.size()) {
    switchContext(from, scheduler);
    return;
  }
  if (timing.kind == Timing::Kind::random)
    std::swap(ready[readyBegin], ready[readyBegin + random() % (ready.size() - readyBegin)]);
  const unsigned next = ready[readyBegin++];
  if (readyBegin == ready.size())
    ready.clear(), readyBegin = 0;
  thread = static_cast<int>(next);
  if (&from != &threads[next].context) // else it goes on as it is
    switchContext(from, threads[next].context);
}

void Block::wait(Together what, Place place) {
  Thread &mine = threads[static_cast<unsigned>(thread)];
  mine.waitsFor = what;
  mine.place = place;
  resumeNext(mine.context);
}

void Block::fail(Place place, const std::string &text) {
  fault = Fault{threadText(static_cast<unsigned>(thread)) + " " + text, place};
  Context gone;
  switchContext(gone, scheduler);
  __builtin_unreachable();
}

std::string Block::threadsText(const std::vector<unsigned> &indices) const {
  std::string text;
  for (size_t i = 0; i < indices.size();) {
    size_t end = i + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1)
      ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(indices[i]);
    if (end > i + 1)
      text += "-" + std::to_string(indices[end - 1]);
    i = end;
  }
  return (indices.size() == 1 ? "thread " : "threads ") + text;
}

std::string Block::deadlockText() const {
  struct Group {
    std::string doing;
    std::vector<unsigned> indices;
  };
  std::vector<Group> groups;
  for (unsigned i = 0; i < numThreads; ++i) {
    const Thread &t = threads[i];
    std::string doing = t.exited
                            ? std::string("ended")
                            : std::string("at ") + name(t.waitsFor) + " at " + Sites::text(t.place);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group &g) { return g.doing == doing; });
    if (group == groups.end())
      group = groups.insert(groups.end(), {std::move(doing), {}});
    group->indices.push_back(i);
  }
  std::string text = "deadlock: ";
  for (size_t i = 0; i < groups.size(); ++i)
    text += (i ? "; " : "") + threadsText(groups[i].indices) + " " + groups[i].doing;
  return text;
}

void Block::barrier(Place place) {
  threads[static_cast<unsigned>(thread)].place = place;
  if (++atBarrier < numThreads) {
    wait(Together::barrier, place);
    return;
  }
  atBarrier = 0;
  for (unsigned i = 0; i < numThreads; ++i) {
    const Place &first = threads[i / warpSize * warpSize].place, &other = threads[i].place;
    if (first.line != other.line)
      fail(place, "meets a barrier that its warp has not in common: thread " +
                      std::to_string(i / warpSize * warpSize) + " is at " + Sites::text(first) +
                      ", thread " + std::to_string(i) + " at " + Sites::text(other));
  }
  order.meet();
  // This thread queues up as well: reports are easier to follow when thread 0 goes first.
  for (unsigned i = 0; i < numThreads; ++i)
    makeReady(i);
  resumeNext(threads[static_cast<unsigned>(thread)].context);
}

Block::Warp *Block::meet(Together what, int detail, Place place) {
  const auto me = static_cast<unsigned>(thread);
  Warp &warp = warps[me / warpSize];
  if (warp.arrived == 0) {
    warp.what = what;
    warp.detail = detail;
    warp.place = place;
    warp.first = me;
  } else if (warp.what != what || warp.detail != detail || warp.place.line != place.line) {
    fail(place, std::string("is at ") + name(what) + " while " + threadText(warp.first) +
                    " waits for its warp at " + name(warp.what) + " at " + Sites::text(warp.place) +
                    ": the warp diverged");
  }
  if (++warp.arrived == warp.lanes)
    return &warp;
  wait(what, place);
  return nullptr;
}

void Block::finish(Warp &warp) {
  warp.arrived = 0;
  const auto me = static_cast<unsigned>(thread), first = me / warpSize * warpSize;
  for (unsigned i = first; i < first + warp.lanes; ++i)
    if (i != me)
      makeReady(i);
}

} // namespace tk::emu
