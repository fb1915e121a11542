// Threads: who am I, wait, exchange.
#pragma once

namespace tk {

TK_DEVICE int thread_index() { return (int)threadIdx.x; }
TK_DEVICE int lane_index() { return (int)(threadIdx.x & 31); }
TK_DEVICE int warp_index() { return (int)(threadIdx.x >> 5); }
TK_DEVICE int block_x() { return (int)blockIdx.x; }
TK_DEVICE int block_y() { return (int)blockIdx.y; }
TK_DEVICE int block_z() { return (int)blockIdx.z; }
TK_DEVICE int grid_x() { return (int)gridDim.x; }

// All threads of the block.
TK_DEVICE void barrier(Place = {}) { __syncthreads(); }
// Is x true in all threads of the block, of which there are `threads`, and who meet?
TK_DEVICE bool block_all(bool x, int, Place = {}) { return __syncthreads_and(x) != 0; }
// All lanes of the warp.
TK_DEVICE void sync_warp(Place = {}) { __syncwarp(); }

// Lets the next launch begin once all blocks have come here.
TK_DEVICE void release_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
// Waits until the launches before this one have ended. What they write is no `__restrict__`
// argument: the compiler may read those before this.
TK_DEVICE void await_launch() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Counts up to `count`, then from 0 again; what it was before. What this block wrote before its
// threads met is seen behind this by whoever counts later, and what others wrote by this block.
TK_DEVICE int count_block(int *counter, int count, Place = {}) {
  u32 number;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(number)
               : "l"(__cvta_generic_to_global(counter)), "r"(count - 1)
               : "memory");
  return (int)number;
}

// The block's dynamic shared memory.
TK_DEVICE u8 *shared_memory() {
  extern __shared__ __align__(1024) u8 tk_shared_memory[];
  return tk_shared_memory;
}

// The value of the lane whose number differs in the bits of `mask`.
TK_DEVICE int shuffle_xor(int x, int mask, Place = {}) { return __shfl_xor_sync(~0u, x, mask); }
TK_DEVICE float shuffle_xor(float x, int mask, Place = {}) { return __shfl_xor_sync(~0u, x, mask); }
TK_DEVICE i64 shuffle_xor(i64 x, int mask, Place = {}) { return __shfl_xor_sync(~0u, x, mask); }
TK_DEVICE double shuffle_xor(double x, int mask, Place = {}) {
  return __shfl_xor_sync(~0u, x, mask);
}
TK_DEVICE bool shuffle_xor(bool x, int mask, Place = {}) {
  return __shfl_xor_sync(~0u, (int)x, mask) != 0;
}
TK_DEVICE i8 shuffle_xor(i8 x, int mask, Place = {}) {
  return (i8)__shfl_xor_sync(~0u, (int)x, mask);
}
TK_DEVICE i16 shuffle_xor(i16 x, int mask, Place = {}) {
  return (i16)__shfl_xor_sync(~0u, (int)x, mask);
}

// Which lanes of the warp have the same x, a bit for each.
TK_DEVICE u32 same_in_warp(u32 x, Place = {}) { return __match_any_sync(~0u, x); }
// The largest x of the warp's lanes.
TK_DEVICE int most_in_warp(int x, Place = {}) { return __reduce_max_sync(~0u, x); }
TK_DEVICE int count_ones(u32 x) { return __popc(x); }

// The same value in all lanes of the warp, and known to be: it can live in a uniform register.
TK_DEVICE int warp_uniform(int x, Place = {}) { return __shfl_sync(~0u, x, 0); }

} // namespace tk
