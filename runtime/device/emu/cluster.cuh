// Blocks that run at the same time. Twin of ../cluster.cuh.
#pragma once

namespace tk {

TK_DEVICE int cluster_rank() { return tk_emu_engine->rank; }
TK_DEVICE void cluster_arrive(Place place = {}) { tk_emu_engine->cluster_arrive(place); }
TK_DEVICE void cluster_wait(Place place = {}) { tk_emu_engine->cluster_wait(place); }
TK_DEVICE void cluster_sync(Place place = {}) {
  cluster_arrive(place);
  cluster_wait(place);
}
template <class T> TK_DEVICE T *map_shared_rank(T *p, int rank, Place place = {}) {
  return (T *)tk_emu_engine->map_shared_rank((void *)p, rank, place);
}

// Joins the `warps` warps of all `blocks` blocks of the cluster, 32 or more, whose lanes all hold
// the same values. `scratch` holds n elements for every warp; nobody may be using it, and all
// blocks run.
template <class Op, int warps, int blocks, int n, class T>
TK_DEVICE void reduce_cluster(T (&x)[n], T *scratch, Place place = {}) {
  const int warp = cluster_rank() * (warps / blocks) + warp_index();
  if (lane_index() < blocks) // a lane for each block
    for_each<n>([&](int r) {
      put(map_shared_rank(&scratch[r * warps + warp], lane_index(), place), x[r], place);
    });
  cluster_sync(place);
  join_parts<Op, warps>(x, scratch, place);
}

} // namespace tk
