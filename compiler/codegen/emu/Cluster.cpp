//===- Cluster.cpp - a cluster of blocks, run as fibers: order ------------===//
#include "compiler/codegen/emu/Cluster.h"

#include <algorithm>

namespace tk::emu {

/// Registers of a multiprocessor, and how many a thread may have.
static constexpr unsigned numRegisters = 65536, maxRegisters = 256;

Cluster::Cluster(const LaunchShape &shape, Timing timing, Order &order, Sites &sites,
                 GlobalMemory &global, const std::vector<TensorBox> &maps)
    : shape(shape), numBlocks(shape.cluster[0] * shape.cluster[1] * shape.cluster[2]),
      warpsPerBlock((shape.threads + warpSize - 1) / warpSize), timing(timing), random(timing.seed),
      order(order), sites(sites), global(global), maps(maps), stacks(numBlocks * shape.threads) {
  for (unsigned b = 0; b < numBlocks; ++b)
    blocks.push_back(std::make_unique<Block>(order, sites));
  for (int axis = 0; axis < 3; ++axis)
    grid[axis] = shape.grid[axis];
  // Whoever relies on which lane is elected finds out.
  electedLane = timing.kind == Timing::Kind::random ? random() % warpSize : 0;
}

const char *Cluster::name(Waiting what) {
  switch (what) {
  case Waiting::nothing:
    return "nothing";
  case Waiting::barrier:
    return "a barrier";
  case Waiting::warp:
    return "sync_warp";
  case Waiting::shuffle:
    return "a shuffle";
  case Waiting::broadcast:
    return "warp_uniform";
  case Waiting::election:
    return "elect_one";
  case Waiting::loadMatrix:
    return "load_matrix";
  case Waiting::storeMatrix:
    return "store_matrix";
  case Waiting::multiply:
    return "a matrix product";
  case Waiting::namedBarrier:
    return "a named barrier";
  case Waiting::cluster:
    return "a barrier of the cluster";
  case Waiting::phase:
    return "a phase barrier";
  case Waiting::registers:
    return "set_registers_more";
  case Waiting::product:
    return "a product of its warpgroup";
  }
  return "";
}

void Cluster::beginBlocks() {
  // What a thread may have when all have the same.
  const unsigned registers =
      std::min(maxRegisters - 1, numRegisters / (shape.threads * shape.blocks)) / 8 * 8;
  for (auto &block : blocks) {
    block->shared.reset(shape.sharedBytes);
    block->atBarrier = 0;
    block->live = shape.threads;
    std::fill(std::begin(block->named), std::end(block->named), NamedBarrier());
    block->phases.clear();
    block->notes.clear();
    block->warpgroups.assign((shape.threads + warpgroupSize - 1) / warpgroupSize, Warpgroup());
    block->freeRegisters = 0;
  }
  threads.assign(numBlocks * shape.threads, Thread());
  warps.assign(numBlocks * warpsPerBlock, Warp());
  for (unsigned i = 0; i < threads.size(); ++i) {
    Thread &thread = threads[i];
    thread.block = i / shape.threads;
    thread.index = i % shape.threads;
    thread.registers = registers;
    thread.context = stacks.prepare(i, &Cluster::enter, this);
    ++warps[thread.block * warpsPerBlock + thread.index / warpSize].lanes;
    makeReady(static_cast<Agent>(i));
  }
}

std::optional<Fault> Cluster::run(int x, int y, int z, Kernel entry, const void *const *values) {
  kernel = entry;
  arguments = values;
  firstBlock[0] = x, firstBlock[1] = y, firstBlock[2] = z;
  order.beginCluster(shape.threads, numBlocks);
  ready.clear();
  readyBegin = 0;
  loads.clear();
  atCluster = clusterPhase = 0;
  beginBlocks();
  live = static_cast<unsigned>(threads.size());
  fault.reset();
  resumeNext(scheduler);
  if (!fault && live > 0) {
    auto stuck =
        std::find_if(threads.begin(), threads.end(), [](const Thread &t) { return !t.exited; });
    fault = Fault{deadlockText(), stuck->place, stuck->block};
  }
  return fault;
}

void Cluster::enter(void *self) {
  auto *cluster = static_cast<Cluster *>(self);
  cluster->kernel(cluster->arguments);
  cluster->checkExit();
  cluster->me().exited = true;
  --cluster->myBlock().live;
  --cluster->live;
  leaveFor(cluster->chooseNext());
}

/// What a thread may not leave behind.
void Cluster::checkExit() {
  for (BulkStore &store : me().stores) {
    if (!store.read)
      fail(store.place, "ends while its bulk store still reads shared memory");
    writeStore(store, access(store.place), viewer());
  }
  for (const Product &product : myWarpgroup().products)
    fail(product.place, "ends while products of its warpgroup are in flight");
}

void Cluster::makeReady(Agent thread) {
  threads[thread].waitsFor = Waiting::nothing;
  ready.push_back(thread);
}

void Cluster::setCurrent(Agent next) {
  current = next;
  const Thread &to = threads[next];
  thread = static_cast<int>(to.index);
  rank = static_cast<int>(to.block);
  const unsigned x = shape.cluster[0], y = shape.cluster[1];
  block[0] = firstBlock[0] + static_cast<int>(to.block % x);
  block[1] = firstBlock[1] + static_cast<int>(to.block / x % y);
  block[2] = firstBlock[2] + static_cast<int>(to.block / (x * y));
}

const Context &Cluster::chooseNext() {
  // Late: bulk loads arrive when nobody can go on without them.
  while (readyBegin == ready.size() && completeOneLoad()) {
  }
  if (timing.kind == Timing::Kind::random && !loads.empty() && random() % 4 == 0)
    completeOneLoad();
  if (readyBegin == ready.size())
    return scheduler;
  if (timing.kind == Timing::Kind::random)
    std::swap(ready[readyBegin], ready[readyBegin + random() % (ready.size() - readyBegin)]);
  const Agent next = ready[readyBegin++];
  if (readyBegin == ready.size())
    ready.clear(), readyBegin = 0;
  setCurrent(next);
  return threads[next].context;
}

void Cluster::resumeNext(Context &from) {
  const Context &next = chooseNext();
  if (&from != &next) // else it goes on as it is
    switchContext(from, next);
}

void Cluster::wait(Waiting what, Place place) {
  Thread &mine = me();
  mine.waitsFor = what;
  mine.place = place;
  resumeNext(mine.context);
}

void Cluster::fail(Place place, const std::string &text) {
  const Thread &mine = me();
  fault = Fault{"thread " + std::to_string(mine.index) + " (warp " +
                    std::to_string(mine.index / warpSize) + ", lane " +
                    std::to_string(mine.index % warpSize) + ") " + text,
                place, mine.block};
  leaveFor(scheduler);
}

//===----------------------------------------------------------------------===//
// Deadlocks
//===----------------------------------------------------------------------===//

std::string Cluster::threadsText(const std::vector<Agent> &list) const {
  std::string text;
  for (size_t i = 0; i < list.size();) {
    size_t end = i + 1;
    while (end < list.size() && list[end] == list[end - 1] + 1)
      ++end;
    auto number = [&](size_t at) { return std::to_string(threads[list[at]].index); };
    text += (text.empty() ? "" : ", ") + number(i);
    if (end > i + 1)
      text += "-" + number(end - 1);
    i = end;
  }
  return (list.size() == 1 ? "thread " : "threads ") + text;
}

std::string Cluster::waitText(const Thread &thread) const {
  if (thread.exited)
    return "ended";
  std::string text =
      std::string("at ") + name(thread.waitsFor) + " at " + Sites::text(thread.place);
  const Block &block = *blocks[thread.block];
  if (thread.waitsFor == Waiting::phase)
    text += " for the end of a phase of parity " + std::to_string(thread.phaseParity) + " (" +
            block.phases[thread.phaseBarrier].text() + ")";
  if (thread.waitsFor == Waiting::namedBarrier) {
    const NamedBarrier &barrier = block.named[thread.namedBarrier];
    text += " (number " + std::to_string(thread.namedBarrier) + ": " +
            std::to_string(barrier.arrived) + " of " + std::to_string(barrier.expected) +
            " threads are there)";
  }
  return text;
}

std::string Cluster::deadlockText() const {
  struct Group {
    std::string doing;
    unsigned block;
    std::vector<Agent> threads;
  };
  std::vector<Group> groups;
  for (unsigned i = 0; i < threads.size(); ++i) {
    std::string doing = waitText(threads[i]);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group &g) {
      return g.block == threads[i].block && g.doing == doing;
    });
    if (group == groups.end())
      group = groups.insert(groups.end(), {std::move(doing), threads[i].block, {}});
    group->threads.push_back(static_cast<Agent>(i));
  }
  std::string text = "deadlock: ";
  for (size_t i = 0; i < groups.size(); ++i)
    text +=
        (i ? "; " : "") + threadsText(groups[i].threads) +
        (numBlocks > 1 ? " of block " + std::to_string(groups[i].block) + " of the cluster" : "") +
        " " + groups[i].doing;
  return text;
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

Warp *Cluster::meet(Waiting what, int detail, Place place) {
  Warp &warp = myWarp();
  if (warp.arrived == 0) {
    warp.what = what;
    warp.detail = detail;
    warp.place = place;
    warp.first = current;
  } else if (warp.what != what || warp.detail != detail || warp.place.line != place.line) {
    fail(place, std::string("is at ") + name(what) + " while " + order.text(warp.first) +
                    " waits for its warp at " + name(warp.what) + " at " + Sites::text(warp.place) +
                    ": the warp diverged");
  }
  if (++warp.arrived == warp.lanes)
    return &warp;
  wait(what, place);
  return nullptr;
}

void Cluster::finish(Warp &warp) {
  warp.arrived = 0;
  const Agent first = firstOfWarp();
  for (unsigned i = first; i < first + warp.lanes; ++i)
    if (i != current)
      makeReady(static_cast<Agent>(i));
}

void Cluster::requireFullWarp(const Warp &warp, const char *what, Place place) {
  if (warp.lanes != warpSize)
    fail(place, "is in a warp of " + std::to_string(warp.lanes) + " threads at " + what);
}

} // namespace tk::emu
