// Threads: who am I, wait, exchange. Twin of ../warp.cuh.
#pragma once

namespace tk {

TK_DEVICE int thread_index() { return tk_emu_engine->thread; }
TK_DEVICE int lane_index() { return tk_emu_engine->thread & 31; }
TK_DEVICE int warp_index() { return tk_emu_engine->thread >> 5; }
TK_DEVICE int block_x() { return tk_emu_engine->block[0]; }
TK_DEVICE int block_y() { return tk_emu_engine->block[1]; }
TK_DEVICE int block_z() { return tk_emu_engine->block[2]; }
TK_DEVICE int grid_x() { return tk_emu_engine->grid[0]; }

TK_DEVICE void barrier(Place place = {}) { tk_emu_engine->barrier(place); }
TK_DEVICE bool block_all(bool x, int threads, Place place = {}) {
  return tk_emu_engine->named_barrier_all(15, threads, x, place);
}

TK_DEVICE void sync_warp(Place place = {}) { tk_emu_engine->sync_warp(place); }

// Launches are run one after the other.
TK_DEVICE void release_launch() {}
TK_DEVICE void await_launch() {}

TK_DEVICE int count_block(int *counter, int count, Place place = {}) {
  return tk_emu_engine->count_block(counter, count, place);
}

TK_DEVICE u8 *shared_memory() { return (u8 *)tk_emu_engine->shared_memory(); }

template <class T> TK_DEVICE T shuffle_xor(T x, int mask, Place place = {}) {
  u64 bits = 0;
  __builtin_memcpy(&bits, &x, sizeof x);
  bits = tk_emu_engine->shuffle_xor(bits, mask, place);
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

TK_DEVICE u32 same_in_warp(u32 x, Place place = {}) {
  u32 same = 0;
  for (int mask = 0; mask < 32; ++mask)
    if (shuffle_xor(x, mask, place) == x)
      same |= 1u << (lane_index() ^ mask);
  return same;
}
TK_DEVICE int most_in_warp(int x, Place place = {}) {
  for (int mask = 1; mask < 32; mask *= 2) {
    const int other = shuffle_xor(x, mask, place);
    x = other > x ? other : x;
  }
  return x;
}
TK_DEVICE int count_ones(u32 x) { return __builtin_popcount(x); }

TK_DEVICE int warp_uniform(int x, Place place = {}) {
  return (int)tk_emu_engine->broadcast((u64)x, place);
}

} // namespace tk
