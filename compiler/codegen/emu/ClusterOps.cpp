//===- ClusterOps.cpp - memory and what warps do together -----------------===//
#include "compiler/codegen/emu/Cluster.h"

namespace tk::emu {

// The shapes of warp-level products.
static constexpr double fragmentRows = 16, fragmentColumns = 8, wideDepth = 4;

/// Elements of k: a row of them takes 32 bytes.
static double fragmentDepth(Products type) {
  switch (type) {
  case Products::bf16:
  case Products::f16:
    return 16;
  case Products::tf32:
    return 8;
  default:
    return 32;
  }
}

void *Cluster::shared_memory() { return SharedMemory::address(); }

Block &Cluster::sharedAt(const void *address, int64_t &offset, Place place) {
  const SharedMemory::Place at = SharedMemory::locate(address);
  offset = at.offset;
  const unsigned block = at.rank < 0 ? me().block : static_cast<unsigned>(at.rank);
  if (block >= numBlocks)
    fail(place, "accesses shared memory of block " + std::to_string(block) +
                    " of a cluster that has " + std::to_string(numBlocks));
  if (block != me().block && blocks[block]->live == 0)
    fail(place, "accesses shared memory of block " + std::to_string(block) +
                    " of the cluster, which has ended");
  return *blocks[block];
}

int64_t Cluster::ownOffset(const void *address, const char *what, Place place) {
  if (!SharedMemory::holds(address))
    fail(place, std::string(what) + " an address that is not in shared memory");
  const SharedMemory::Place at = SharedMemory::locate(address);
  if (at.rank >= 0 && static_cast<unsigned>(at.rank) != me().block)
    fail(place, std::string(what) + " an address in another block's shared memory");
  return at.offset;
}

void Cluster::read(void *to, const void *from, int bytes, int alignment, Place place) {
  if (GlobalMemory::holds(from)) {
    if (!global.read(to, from, bytes, alignment, access(place), viewer()))
      fail(place, global.complaint);
  } else if (SharedMemory::holds(from)) {
    int64_t offset;
    SharedMemory &shared = sharedAt(from, offset, place).shared;
    if (!shared.read(to, offset, bytes, alignment, access(place), viewer()))
      fail(place, shared.complaint);
  } else {
    fail(place, "reads an address that belongs to no tensor, scratch buffer or shared memory");
  }
}

void Cluster::write(void *to, const void *from, int bytes, int alignment, Place place) {
  if (GlobalMemory::holds(to)) {
    if (!global.write(to, from, bytes, alignment, access(place), viewer()))
      fail(place, global.complaint);
  } else if (SharedMemory::holds(to)) {
    int64_t offset;
    SharedMemory &shared = sharedAt(to, offset, place).shared;
    if (!shared.write(offset, from, bytes, alignment, access(place), viewer()))
      fail(place, shared.complaint);
  } else {
    fail(place, "writes an address that belongs to no tensor, scratch buffer or shared memory");
  }
}

void Cluster::add_shared(void *to, unsigned value, Place place) {
  if (!SharedMemory::holds(to))
    fail(place, "adds atomically to an address that belongs to no shared memory");
  int64_t offset;
  SharedMemory &shared = sharedAt(to, offset, place).shared;
  if (!shared.add(offset, value, access(place), viewer()))
    fail(place, shared.complaint);
}

//===----------------------------------------------------------------------===//
// Values among lanes
//===----------------------------------------------------------------------===//

/// Orders what the lanes did before for all of them, which shuffles do not.
void Cluster::sync_warp(Place place) {
  if (Warp *warp = meet(Waiting::warp, 0, place)) {
    const Agent first = firstOfWarp();
    Clock met;
    for (unsigned lane = 0; lane < warp->lanes; ++lane)
      order.release(static_cast<Agent>(first + lane), met);
    for (unsigned lane = 0; lane < warp->lanes; ++lane)
      order.acquire(static_cast<Agent>(first + lane), met);
    finish(*warp);
  }
}

unsigned long long Cluster::shuffle_xor(unsigned long long bits, int mask, Place place) {
  if (mask < 0 || mask >= static_cast<int>(warpSize))
    fail(place, "shuffles across " + std::to_string(mask) + ", beyond the warp");
  myWarp().bits[me().index % warpSize] = bits;
  if (Warp *warp = meet(Waiting::shuffle, mask, place)) {
    for (unsigned lane = 0; lane < warp->lanes; ++lane) {
      const unsigned other = lane ^ static_cast<unsigned>(mask);
      threads[firstOfWarp() + lane].result = warp->bits[other < warp->lanes ? other : lane];
    }
    finish(*warp);
  }
  return me().result;
}

unsigned long long Cluster::broadcast(unsigned long long bits, Place place) {
  myWarp().bits[me().index % warpSize] = bits;
  if (Warp *warp = meet(Waiting::broadcast, 0, place)) {
    for (unsigned lane = 0; lane < warp->lanes; ++lane)
      threads[firstOfWarp() + lane].result = warp->bits[0];
    finish(*warp);
  }
  return me().result;
}

bool Cluster::elect_one(Place place) {
  if (Warp *warp = meet(Waiting::election, 0, place)) {
    requireFullWarp(*warp, "elect_one", place);
    finish(*warp);
  }
  return me().index % warpSize == electedLane;
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

void Cluster::load_matrix(void *y, const void *row, int words, bool transposed, Place place) {
  Warp &mine = myWarp();
  mine.to[me().index % warpSize] = y;
  mine.from[me().index % warpSize] = row;
  Warp *warp = meet(Waiting::loadMatrix, words * 2 + transposed, place);
  if (!warp)
    return;
  requireFullWarp(*warp, "load_matrix", place);
  unsigned char rows[4][8][16];
  const Agent last = current, first = firstOfWarp();
  for (unsigned lane = 0; lane < static_cast<unsigned>(words) * 8; ++lane) {
    setCurrent(static_cast<Agent>(first + lane)); // whose address it is
    const int64_t from = ownOffset(warp->from[lane], "gives load_matrix", place);
    SharedMemory &shared = myBlock().shared;
    if (!shared.read(rows[lane / 8][lane % 8], from, 16, 16, access(place), viewer()))
      fail(place, shared.complaint);
  }
  setCurrent(last);
  distributeRows(warp->to, rows, words, transposed);
  finish(*warp);
}

void Cluster::store_matrix(void *row, const void *x, int words, bool transposed, Place place) {
  Warp &mine = myWarp();
  mine.to[me().index % warpSize] = row;
  mine.from[me().index % warpSize] = x;
  Warp *warp = meet(Waiting::storeMatrix, words * 2 + transposed, place);
  if (!warp)
    return;
  requireFullWarp(*warp, "store_matrix", place);
  unsigned char rows[4][8][16];
  collectRows(rows, warp->from, words, transposed);
  const Agent last = current, first = firstOfWarp();
  for (unsigned lane = 0; lane < static_cast<unsigned>(words) * 8; ++lane) {
    setCurrent(static_cast<Agent>(first + lane)); // whose address it is
    const int64_t to = ownOffset(warp->to[lane], "gives store_matrix", place);
    SharedMemory &shared = myBlock().shared;
    if (!shared.write(to, rows[lane / 8][lane % 8], 16, 16, access(place), viewer()))
      fail(place, shared.complaint);
  }
  setCurrent(last);
  finish(*warp);
}

void Cluster::multiply(Products type, void *c, const void *a, const void *b, Place place) {
  Warp &mine = myWarp();
  const unsigned lane = me().index % warpSize;
  mine.to[lane] = c;
  mine.from[lane] = a;
  mine.second[lane] = b;
  Warp *warp = meet(Waiting::multiply, static_cast<int>(type), place);
  if (!warp)
    return;
  requireFullWarp(*warp, "a matrix product", place);
  multiplyFragments(type, warp->to, warp->from, warp->second);
  if (global.counts)
    global.counts->multiplied(fragmentRows * fragmentColumns * fragmentDepth(type));
  finish(*warp);
}

void Cluster::multiply_f64(double *c, const double *a, const double *b, Place place) {
  constexpr int kind = -1; // none of Products
  Warp &mine = myWarp();
  const unsigned lane = me().index % warpSize;
  mine.to[lane] = c;
  mine.from[lane] = a;
  mine.second[lane] = b;
  Warp *warp = meet(Waiting::multiply, kind, place);
  if (!warp)
    return;
  requireFullWarp(*warp, "a matrix product", place);
  multiplyWide(warp->to, warp->from, warp->second);
  if (global.counts)
    global.counts->multiplied(fragmentRows * fragmentColumns * wideDepth);
  finish(*warp);
}

//===----------------------------------------------------------------------===//
// Asynchronous copies of a thread
//===----------------------------------------------------------------------===//

static constexpr unsigned char zeros[16] = {};

void Cluster::copy_async(void *to, const void *from, int bytes, bool mask, Place place) {
  const Access mine = access(place);
  const int64_t offset = ownOffset(to, "copies asynchronously to", place);
  const void *source = nullptr;
  if (mask) {
    if (!GlobalMemory::holds(from))
      fail(place, "copies asynchronously from an address that is not in global memory");
    source = global.locateRead(from, bytes, bytes, mine, viewer());
    if (!source)
      fail(place, global.complaint);
  }
  SharedMemory &shared = myBlock().shared;
  if (!shared.beginWrite(offset, bytes, bytes, false, SharedMemory::anySwizzle, mine, viewer()))
    fail(place, shared.complaint);
  const bool now = byChance();
  if (now)
    shared.apply(offset, source ? source : zeros, bytes);
  me().copies.push_back({offset, source, bytes, now, me().openGroup, place});
}

void Cluster::async_commit(Place) { ++me().openGroup; }

void Cluster::async_wait(int pending, Place) {
  Thread &mine = me();
  SharedMemory &shared = myBlock().shared;
  size_t kept = 0;
  for (const Copy &copy : mine.copies) {
    // Groups are counted from 0; those from openGroup - pending on may stay incomplete.
    if (copy.group + static_cast<unsigned>(pending) >= mine.openGroup) {
      mine.copies[kept++] = copy;
      continue;
    }
    if (!copy.applied)
      shared.apply(copy.to, copy.from ? copy.from : zeros, copy.bytes);
    shared.endWrite(copy.to, copy.bytes, access(copy.place));
  }
  mine.copies.erase(mine.copies.begin() + static_cast<std::ptrdiff_t>(kept), mine.copies.end());
}

} // namespace tk::emu
