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

} // namespace tk
