// Copies by the bulk copy engine. Twin of ../bulk_copy.cuh; the launcher fills tensor maps with
// what the engine knows them by.
#pragma once

namespace tk {

struct alignas(64) TensorMap {
  u64 opaque[16];
};
template <> struct emu::Describe<TensorMap> {
  static constexpr Parameter parameter{(int)sizeof(TensorMap), false, false, 0, true};
};

enum class Keep { normal, first, last };

TK_DEVICE void prefetch_tensor_map(const TensorMap *) {}

template <int rank, Keep keep = Keep::normal>
TK_DEVICE void bulk_load(void *to, const TensorMap *map, const int (&at)[rank],
                         PhaseBarrier *barrier, Place place = {}) {
  tk_emu_engine->bulk_load(to, map, rank, at, barrier, 0, place);
}
template <int rank, Keep keep = Keep::normal>
TK_DEVICE void bulk_load_multicast(void *to, const TensorMap *map, const int (&at)[rank],
                                   PhaseBarrier *barrier, u16 mask, Place place = {}) {
  tk_emu_engine->bulk_load(to, map, rank, at, barrier, mask, place);
}
template <int rank, Keep keep = Keep::normal>
TK_DEVICE void bulk_load_windows(void *to, const TensorMap *map, const int (&at)[rank],
                                 const int (&by)[rank - 2], PhaseBarrier *barrier,
                                 Place place = {}) {
  tk_emu_engine->bulk_load_windows(to, map, rank, at, by, barrier, place);
}
template <int rank>
TK_DEVICE void bulk_store(const TensorMap *map, const int (&at)[rank], const void *from,
                          Place place = {}) {
  tk_emu_engine->bulk_store(map, rank, at, from, false, place);
}
template <int rank>
TK_DEVICE void bulk_add(const TensorMap *map, const int (&at)[rank], const void *from,
                        Place place = {}) {
  tk_emu_engine->bulk_store(map, rank, at, from, true, place);
}

TK_DEVICE void bulk_copy(void *to, const void *from, int bytes, PhaseBarrier *barrier,
                         Place place = {}) {
  tk_emu_engine->bulk_copy(to, from, bytes, barrier, place);
}
TK_DEVICE void bulk_copy_out(void *to, const void *from, int bytes, Place place = {}) {
  tk_emu_engine->bulk_copy_out(to, from, bytes, false, place);
}
TK_DEVICE void bulk_add_out(float *to, const float *from, int bytes, Place place = {}) {
  tk_emu_engine->bulk_copy_out(to, from, bytes, true, place);
}

TK_DEVICE void bulk_commit(Place place = {}) { tk_emu_engine->bulk_commit(place); }
template <int pending> TK_DEVICE void bulk_wait_read(Place place = {}) {
  tk_emu_engine->bulk_wait(pending, true, place);
}
template <int pending> TK_DEVICE void bulk_wait(Place place = {}) {
  tk_emu_engine->bulk_wait(pending, false, place);
}
TK_DEVICE void fence_async_proxy(Place place = {}) { tk_emu_engine->fence_async_proxy(place); }

} // namespace tk
