// Warps of a block that do different things: barriers among some of them, registers moved from one
// to another, the election of one thread.
#pragma once

namespace tk {

// One thread of the warp; all lanes ask together.
TK_DEVICE bool elect_one() {
  int elected;
  asm volatile("{\n\t"
               ".reg .pred p;\n\t"
               "elect.sync _|p, 0xffffffff;\n\t"
               "selp.b32 %0, 1, 0, p;\n\t"
               "}"
               : "=r"(elected));
  return elected != 0;
}

// Barrier `id` (1 to 15) of `threads` threads, whole warps: waits for the others ...
TK_DEVICE void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
// ... or only counts as one of them.
TK_DEVICE void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// The block's first `threads` threads, which meet at barrier `id`. `is_free`: they have met since
// the scratch memory was last used.
template <int id, int threads, bool is_free = false> struct FirstThreads {
  static constexpr bool is_scratch_free = is_free;
  TK_DEVICE static void meet(Place) { named_barrier_sync(id, threads); }
};

// Is x true in all of them? They wait for each other, and know that they agree.
TK_DEVICE bool named_barrier_all(int id, int threads, bool x) {
  int all;
  asm volatile("{\n\t"
               ".reg .pred p, q;\n\t"
               "setp.ne.b32 p, %3, 0;\n\t"
               "barrier.cta.red.and.pred q, %1, %2, p;\n\t"
               "selp.b32 %0, 1, 0, q;\n\t"
               "}"
               : "=r"(all)
               : "r"(id), "r"(threads), "r"((int)x)
               : "memory");
  return warp_uniform(all) != 0;
}

// The warpgroup's registers a thread: more, waiting until they are free, or fewer. Multiples of 8
// from 24 to 256. All warps of the warpgroup execute it.
template <int registers> TK_DEVICE void set_registers_more() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers> TK_DEVICE void set_registers_less() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

} // namespace tk
