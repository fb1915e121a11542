//===- ClusterPhases.cpp - barriers of all kinds --------------------------===//
#include "compiler/codegen/emu/Cluster.h"

#include <algorithm>

namespace tk::emu {

//===----------------------------------------------------------------------===//
// All threads of a block
//===----------------------------------------------------------------------===//

void Cluster::barrier(Place place) {
  Block &mine = myBlock();
  me().place = place;
  if (++mine.atBarrier < shape.threads) {
    wait(Waiting::barrier, place);
    return;
  }
  mine.atBarrier = 0;
  const Agent first = static_cast<Agent>(me().block * shape.threads);
  for (unsigned i = 0; i < shape.threads; ++i) {
    const unsigned lead = i / warpSize * warpSize;
    const Place &one = threads[first + lead].place, &other = threads[first + i].place;
    if (one.line != other.line)
      fail(place, "meets a barrier that its warp has not in common: thread " +
                      std::to_string(lead) + " is at " + Sites::text(one) + ", thread " +
                      std::to_string(i) + " at " + Sites::text(other));
  }
  if (numBlocks == 1)
    order.meetAll();
  else
    order.meet(first, shape.threads);
  // This thread queues up as well: reports are easier to follow when thread 0 goes first.
  for (unsigned i = 0; i < shape.threads; ++i)
    makeReady(static_cast<Agent>(first + i));
  resumeNext(me().context);
}

//===----------------------------------------------------------------------===//
// Some warps of a block
//===----------------------------------------------------------------------===//

void Cluster::named_barrier(int id, int expected, bool waits, Place place) {
  const std::string title = "named barrier " + std::to_string(id);
  if (id < 1 || id >= static_cast<int>(numNamedBarriers))
    fail(place, "is at " + title + "; there are 1 to 15");
  if (expected <= 0 || expected % static_cast<int>(warpSize) != 0 ||
      expected > static_cast<int>(shape.threads))
    fail(place, "is at " + title + " of " + std::to_string(expected) +
                    " threads; expected whole warps of the block's " +
                    std::to_string(shape.threads) + " threads");
  NamedBarrier &barrier = myBlock().named[id];
  if (barrier.arrived == 0) {
    barrier.expected = static_cast<unsigned>(expected);
    barrier.place = place;
    barrier.first = current;
  } else if (barrier.expected != static_cast<unsigned>(expected)) {
    fail(place, "is at " + title + " of " + std::to_string(expected) + " threads, which " +
                    order.text(barrier.first) + " took for one of " +
                    std::to_string(barrier.expected) + " at " + Sites::text(barrier.place));
  }
  order.release(current, barrier.clock);
  me().namedBarrier = id;
  if (++barrier.arrived < barrier.expected) {
    if (waits)
      wait(Waiting::namedBarrier, place);
    return;
  }
  const Agent first = static_cast<Agent>(me().block * shape.threads);
  for (unsigned i = first; i < first + shape.threads; ++i)
    if (threads[i].waitsFor == Waiting::namedBarrier && threads[i].namedBarrier == id) {
      order.acquire(static_cast<Agent>(i), barrier.clock);
      threads[i].allAgree = barrier.all;
      makeReady(static_cast<Agent>(i));
    }
  if (waits)
    order.acquire(current, barrier.clock);
  me().allAgree = barrier.all;
  barrier = NamedBarrier();
}

bool Cluster::named_barrier_all(int id, int expected, bool x, Place place) {
  if (id >= 1 && id < static_cast<int>(numNamedBarriers))
    myBlock().named[id].all &= x;
  named_barrier(id, expected, true, place);
  return me().allAgree;
}

//===----------------------------------------------------------------------===//
// All blocks of a cluster
//===----------------------------------------------------------------------===//

void Cluster::cluster_arrive(bool orders, Place place) {
  if (me().arrivedAtCluster)
    fail(place, "arrives twice at the barrier of the cluster");
  me().arrivedAtCluster = true;
  me().clusterPhase = clusterPhase;
  clusterOrders &= orders;
  if (++atCluster < threads.size())
    return;
  // What threads did between arriving and waiting counts as ordered too: a wait that is far from
  // its arrival is checked less.
  atCluster = 0;
  ++clusterPhase;
  if (clusterOrders)
    order.meetAll();
  clusterOrders = true;
  for (unsigned i = 0; i < threads.size(); ++i)
    if (threads[i].waitsFor == Waiting::cluster)
      makeReady(static_cast<Agent>(i));
}

void Cluster::cluster_wait(Place place) {
  if (!me().arrivedAtCluster)
    fail(place, "waits at the barrier of the cluster without having arrived");
  if (me().clusterPhase == clusterPhase)
    wait(Waiting::cluster, place);
  me().arrivedAtCluster = false;
}

void *Cluster::map_shared_rank(void *address, int target, Place place) {
  const int64_t offset = ownOffset(address, "maps", place);
  if (target < 0 || static_cast<unsigned>(target) >= numBlocks)
    fail(place, "maps to block " + std::to_string(target) + " of a cluster that has " +
                    std::to_string(numBlocks));
  return SharedMemory::remoteAddress(offset, static_cast<unsigned>(target));
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

unsigned Cluster::phaseAt(Block &block, int64_t offset, Place place) {
  for (unsigned i = 0; i < block.phases.size(); ++i)
    if (block.phases[i].offset == offset)
      return i;
  fail(place, "uses byte " + std::to_string(offset) +
                  " of shared memory as a phase barrier, which is not initialised");
}

void Cluster::phase_init(void *address, int arrivals, Place place) {
  const int64_t offset = ownOffset(address, "initialises a barrier at", place);
  Block &mine = myBlock();
  if (arrivals < 1 || arrivals >= 1 << 20)
    fail(place, "initialises a phase barrier for " + std::to_string(arrivals) + " arrivals");
  if (mine.phases.size() == Order::barriersPerBlock)
    fail(place, "initialises more than " + std::to_string(Order::barriersPerBlock) +
                    " phase barriers, which the emulator cannot follow");
  if (!mine.shared.reserve(offset, 8, access(place), viewer()))
    fail(place, mine.shared.complaint);
  PhaseState state;
  state.offset = offset;
  state.arrivals = state.pending = static_cast<unsigned>(arrivals);
  order.release(current, state.ended);
  me().initialised.push_back(static_cast<unsigned>(mine.phases.size()));
  mine.phases.push_back(std::move(state));
}

void Cluster::phase_init_fence(Place) {
  for (unsigned barrier : me().initialised)
    myBlock().phases[barrier].fenced = true;
  me().initialised.clear();
}

void Cluster::endPhaseIfDone(unsigned block, unsigned barrier) {
  PhaseState &state = blocks[block]->phases[barrier];
  if (!state.complete())
    return;
  ++state.phase;
  state.pending = state.arrivals;
  state.ended.join(state.gathering);
  const unsigned first = block * shape.threads;
  for (unsigned i = first; i < first + shape.threads; ++i)
    if (threads[i].waitsFor == Waiting::phase && threads[i].phaseBarrier == barrier)
      makeReady(static_cast<Agent>(i));
}

void Cluster::arrive(unsigned block, unsigned barrier, int bytes, Place place) {
  PhaseState &state = blocks[block]->phases[barrier];
  if (state.pending == 0)
    fail(place,
         "arrives at a phase barrier that has all arrivals of its phase (" + state.text() + ")");
  if (bytes < 0 || state.bytes + bytes >= 1 << 20)
    fail(place, "announces " + std::to_string(bytes) +
                    " bytes; a phase barrier counts to 2^20 - 1 (" + state.text() + ")");
  order.release(current, state.gathering);
  --state.pending;
  state.bytes += bytes;
  endPhaseIfDone(block, barrier);
}

void Cluster::phase_arrive(void *address, int bytes, Place place) {
  const int64_t offset = ownOffset(address, "arrives at", place);
  arrive(me().block, phaseAt(myBlock(), offset, place), bytes, place);
}

void Cluster::phase_arrive_at(void *address, int target, Place place) {
  int64_t offset = ownOffset(address, "arrives at", place);
  Block &block = sharedAt(map_shared_rank(address, target, place), offset, place);
  const unsigned barrier = phaseAt(block, offset, place);
  if (!block.phases[barrier].fenced)
    fail(place, "arrives from another block at a phase barrier with no phase_init_fence after its "
                "initialisation");
  arrive(static_cast<unsigned>(target), barrier, 0, place);
}

void Cluster::phase_wait(void *address, int parity, Place place) {
  const int64_t offset = ownOffset(address, "waits at", place);
  const unsigned barrier = phaseAt(myBlock(), offset, place);
  if (parity != 0 && parity != 1)
    fail(place, "waits for a phase of parity " + std::to_string(parity));
  me().phaseBarrier = barrier;
  me().phaseParity = parity;
  // A phase may end and the next one too before this thread runs again.
  while (!myBlock().phases[barrier].passes(parity))
    wait(Waiting::phase, place);
  order.acquire(current, myBlock().phases[barrier].ended);
}

Notes &Cluster::notesAt(const void *address, Place place) {
  const int64_t offset = ownOffset(address, "notes at", place);
  for (Notes &notes : myBlock().notes)
    if (notes.offset == offset)
      return notes;
  fail(place, "uses byte " + std::to_string(offset) +
                  " of shared memory for notes, which were not cleared");
}

void Cluster::clear_notes(void *address, Place place) {
  const int64_t offset = ownOffset(address, "clears notes at", place);
  Block &mine = myBlock();
  if (!mine.shared.reserve(offset, 8, access(place), viewer()))
    fail(place, mine.shared.complaint);
  mine.notes.push_back({offset, false});
}

void Cluster::note(void *address, Place place) { notesAt(address, place).isNoted = true; }

bool Cluster::has_notes(const void *address, Place place) {
  return notesAt(address, place).isNoted;
}

void Cluster::send_to(void *to, const void *from, int bytes, void *address, int target,
                      Place place) {
  write(map_shared_rank(to, target, place), from, bytes, bytes, place);
  int64_t offset = ownOffset(address, "counts at", place);
  Block &block = sharedAt(map_shared_rank(address, target, place), offset, place);
  const unsigned barrier = phaseAt(block, offset, place);
  PhaseState &state = block.phases[barrier];
  if (!state.fenced)
    fail(place, "sends to another block with a phase barrier with no phase_init_fence after its "
                "initialisation");
  order.release(current, state.gathering);
  state.bytes -= bytes;
  endPhaseIfDone(static_cast<unsigned>(target), barrier);
}

int Cluster::draw_from(void *counter, int count, Place place) {
  int number = 0;
  if (!global.draw(counter, count, number))
    fail(place, global.complaint);
  return number;
}

int Cluster::count_block(void *counter, int count, Place place) {
  const int number = draw_from(counter, count, place);
  order.count(current, counter, number == 0);
  return number;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

void Cluster::set_registers(int count, bool more, Place place) {
  const auto wanted = static_cast<unsigned>(count);
  unsigned &mine = me().registers;
  if (more ? wanted < mine : wanted > mine)
    fail(place, std::string("asks for ") + (more ? "more" : "fewer") + " registers, " +
                    std::to_string(wanted) + ", and has " + std::to_string(mine));
  if (!more) {
    myBlock().freeRegisters += mine - wanted;
    mine = wanted;
    const unsigned first = me().block * shape.threads;
    for (unsigned i = first; i < first + shape.threads; ++i)
      if (threads[i].waitsFor == Waiting::registers)
        makeReady(static_cast<Agent>(i));
    return;
  }
  while (myBlock().freeRegisters < wanted - mine)
    wait(Waiting::registers, place);
  myBlock().freeRegisters -= wanted - mine;
  mine = wanted;
}

} // namespace tk::emu
