//===- BlockOps.cpp - a block of threads: what its primitives do ----------===//
#include "compiler/target/emu/Block.h"

namespace tk::emu {

void *Block::shared_memory() { return SharedMemory::address(); }

void Block::read(void *to, const void *from, int bytes, int alignment, Place place) {
  if (GlobalMemory::holds(from)) {
    if (!global.read(to, from, bytes, alignment, access(place)))
      fail(place, global.complaint);
  } else if (SharedMemory::holds(from)) {
    if (!shared.read(to, from, bytes, alignment, access(place)))
      fail(place, shared.complaint);
  } else {
    fail(place, "reads an address that belongs to no tensor, scratch buffer or shared memory");
  }
}

void Block::write(void *to, const void *from, int bytes, int alignment, Place place) {
  if (GlobalMemory::holds(to)) {
    if (!global.write(to, from, bytes, alignment, access(place)))
      fail(place, global.complaint);
  } else if (SharedMemory::holds(to)) {
    if (!shared.write(to, from, bytes, alignment, access(place)))
      fail(place, shared.complaint);
  } else {
    fail(place, "writes an address that belongs to no tensor, scratch buffer or shared memory");
  }
}

unsigned long long Block::shuffle_xor(unsigned long long bits, int mask, Place place) {
  const auto me = static_cast<unsigned>(thread);
  if (mask < 0 || mask >= static_cast<int>(warpSize))
    fail(place, "shuffles across " + std::to_string(mask) + ", beyond the warp");
  warps[me / warpSize].bits[me % warpSize] = bits;
  if (Warp *warp = meet(Together::shuffle, mask, place)) {
    for (unsigned lane = 0; lane < warp->lanes; ++lane) {
      const unsigned other = lane ^ static_cast<unsigned>(mask);
      threads[me / warpSize * warpSize + lane].result =
          warp->bits[other < warp->lanes ? other : lane];
    }
    finish(*warp);
  }
  return threads[me].result;
}

void Block::load_matrix(void *y, const void *row, int words, bool transposed, Place place) {
  const auto me = static_cast<unsigned>(thread), first = me / warpSize * warpSize;
  Warp &mine = warps[me / warpSize];
  mine.to[me % warpSize] = y;
  mine.from[me % warpSize] = row;
  Warp *warp = meet(Together::loadMatrix, words * 2 + transposed, place);
  if (!warp)
    return;
  if (warp->lanes != warpSize)
    fail(place, "is in a warp of " + std::to_string(warp->lanes) + " threads at load_matrix");
  unsigned char rows[4][8][16];
  const uint16_t site = sites.number(place);
  for (unsigned lane = 0; lane < static_cast<unsigned>(words) * 8; ++lane) {
    thread = static_cast<int>(first + lane); // whose address it is
    const void *from = warp->from[lane];
    if (!SharedMemory::holds(from))
      fail(place, "gives load_matrix an address that is not in shared memory");
    if (!shared.read(rows[lane / 8][lane % 8], from, 16, 16, order.access(first + lane, site)))
      fail(place, shared.complaint);
  }
  thread = static_cast<int>(me);
  distributeRows(warp->to, rows, words, transposed);
  finish(*warp);
}

void Block::multiply(Products type, void *c, const void *a, const void *b, Place place) {
  const auto me = static_cast<unsigned>(thread);
  Warp &mine = warps[me / warpSize];
  mine.to[me % warpSize] = c;
  mine.from[me % warpSize] = a;
  mine.second[me % warpSize] = b;
  Warp *warp = meet(Together::multiply, static_cast<int>(type), place);
  if (!warp)
    return;
  if (warp->lanes != warpSize)
    fail(place, "is in a warp of " + std::to_string(warp->lanes) + " threads at a matrix product");
  multiplyFragments(type, warp->to, warp->from, warp->second);
  finish(*warp);
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

void Block::copy_async(void *to, const void *from, int bytes, bool mask, Place place) {
  const Access mine = access(place);
  if (!SharedMemory::holds(to))
    fail(place, "copies asynchronously to an address that is not in shared memory");
  const void *source = nullptr;
  if (mask) {
    if (!GlobalMemory::holds(from))
      fail(place, "copies asynchronously from an address that is not in global memory");
    source = global.locateRead(from, bytes, bytes, mine);
    if (!source)
      fail(place, global.complaint);
  }
  if (!shared.beginCopy(to, bytes, mine))
    fail(place, shared.complaint);
  const bool now =
      timing.kind == Timing::Kind::early || (timing.kind == Timing::Kind::random && (random() & 1));
  static constexpr unsigned char zeros[16] = {};
  if (now)
    shared.applyCopy(to, source ? source : zeros, bytes);
  Thread &me = threads[static_cast<unsigned>(thread)];
  me.copies.push_back({to, source, bytes, now, me.openGroup, place});
}

void Block::async_commit(Place) { ++threads[static_cast<unsigned>(thread)].openGroup; }

void Block::async_wait(int pending, Place) {
  Thread &me = threads[static_cast<unsigned>(thread)];
  static constexpr unsigned char zeros[16] = {};
  size_t kept = 0;
  for (const Copy &copy : me.copies) {
    // Groups are counted from 0; those from openGroup - pending on may stay incomplete.
    if (copy.group + static_cast<unsigned>(pending) >= me.openGroup) {
      me.copies[kept++] = copy;
      continue;
    }
    if (!copy.applied)
      shared.applyCopy(copy.to, copy.from ? copy.from : zeros, copy.bytes);
    shared.endCopy(copy.to, copy.bytes, access(copy.place));
  }
  me.copies.resize(kept, {nullptr, nullptr, 0, false, 0, Place("", 0)});
}

} // namespace tk::emu
