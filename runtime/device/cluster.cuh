// Blocks that run at the same time and reach each other's shared memory.
#pragma once

namespace tk {

TK_DEVICE int cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return (int)rank;
}

// All threads of the cluster; orders accesses to shared memory of all its blocks.
TK_DEVICE void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
TK_DEVICE void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
TK_DEVICE void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

// Where the block of that rank has what this block has at `p` in shared memory.
template <class T> TK_DEVICE T *map_shared_rank(T *p, int rank) {
  u64 remote;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(remote) : "l"(p), "r"(rank));
  return reinterpret_cast<T *>(remote);
}

// Joins the `warps` warps of all `blocks` blocks of the cluster, 32 or more, whose lanes all hold
// the same values. `scratch` holds n elements for every warp; nobody may be using it, and all
// blocks run.
template <class Op, int warps, int blocks, int n, class T>
TK_DEVICE void reduce_cluster(T (&x)[n], T *scratch, Place place = {}) {
  const int warp = cluster_rank() * (warps / blocks) + warp_index();
  if (lane_index() < blocks) // a lane for each block
    for_each<n>([&](int r) {
      put(map_shared_rank(&scratch[r * warps + warp], lane_index()), x[r], place);
    });
  cluster_sync();
  join_parts<Op, warps>(x, scratch, place);
}

} // namespace tk
