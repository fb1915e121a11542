// Blocks that run at the same time. Twin of ../cluster.cuh.
#pragma once

#include "phase_barrier.cuh"

namespace tk {

TK_DEVICE int cluster_rank() { return tk_emu_engine->rank; }
TK_DEVICE void cluster_arrive(Place place = {}) { tk_emu_engine->cluster_arrive(true, place); }
TK_DEVICE void cluster_arrive_relaxed(Place place = {}) {
  tk_emu_engine->cluster_arrive(false, place);
}
TK_DEVICE void cluster_wait(Place place = {}) { tk_emu_engine->cluster_wait(place); }
TK_DEVICE void cluster_sync(Place place = {}) {
  cluster_arrive(place);
  cluster_wait(place);
}
template <class T> TK_DEVICE T *map_shared_rank(T *p, int rank, Place place = {}) {
  return (T *)tk_emu_engine->map_shared_rank((void *)p, rank, place);
}

template <class T>
TK_DEVICE void send_to(T *to, const T &x, PhaseBarrier *arrived, int rank, Place place = {}) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "one to four words");
  tk_emu_engine->send_to(to, &x, sizeof(T), arrived, rank, place);
}

TK_DEVICE int draw_from(int *counter, int count, Place place = {}) {
  return tk_emu_engine->draw_from(counter, count, place);
}

} // namespace tk

#include "exchange.cuh"
