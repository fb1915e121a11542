// Copies by the bulk copy engine (TMA), each begun by one thread. Loads report to a phase barrier;
// stores and reductions belong to groups of the thread that begins them.
#pragma once

namespace tk {

// Describes a tensor in global memory and the box that one copy moves. Encoded by the host; a
// kernel takes it as `const __grid_constant__ tk::TensorMap` and passes its address.
struct alignas(64) TensorMap {
  u64 opaque[16];
};

// How long the second-level cache should keep what a copy reads.
enum class Keep { normal, first, last }; // evict first: used once; evict last: used again

template <Keep keep> TK_DEVICE constexpr u64 cache_policy() {
  return keep == Keep::first ? 0x12f0000000000000 : 0x14f0000000000000;
}

TK_DEVICE void prefetch_tensor_map(const TensorMap *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// `form(text, operands...)` with the coordinates as operands 5 and following.
#define TK_BY_RANK(form)                                                                           \
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 axes");                           \
  if constexpr (rank == 1)                                                                         \
    form("1d", "{%5}", "r"(at[0]));                                                                \
  else if constexpr (rank == 2)                                                                    \
    form("2d", "{%5, %6}", "r"(at[0]), "r"(at[1]));                                                \
  else if constexpr (rank == 3)                                                                    \
    form("3d", "{%5, %6, %7}", "r"(at[0]), "r"(at[1]), "r"(at[2]));                                \
  else if constexpr (rank == 4)                                                                    \
    form("4d", "{%5, %6, %7, %8}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]));                \
  else                                                                                             \
    form("5d", "{%5, %6, %7, %8, %9}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]))

#define TK_LOAD_FORM(flags, extra, dims, coordinates, ...)                                         \
  asm volatile("cp.async.bulk.tensor." dims                                                        \
               ".shared::cluster.global.mbarrier::complete_tx::bytes" flags                        \
               " [%0], [%1, " coordinates "], [%2]" extra ";" ::"r"(shared_address(to)),           \
               "l"(map), "r"(shared_address(barrier)), "h"(mask), "l"(policy), __VA_ARGS__         \
               : "memory")
#define TK_LOAD(...) TK_LOAD_FORM("", "", __VA_ARGS__)
#define TK_LOAD_KEEP(...) TK_LOAD_FORM(".L2::cache_hint", ", %4", __VA_ARGS__)
#define TK_LOAD_CAST(...) TK_LOAD_FORM(".multicast::cluster", ", %3", __VA_ARGS__)
#define TK_LOAD_CAST_KEEP(...)                                                                     \
  TK_LOAD_FORM(".multicast::cluster.L2::cache_hint", ", %3, %4", __VA_ARGS__)

// Begins to copy the box of `map` at coordinates `at` (the contiguous axis first) to shared memory
// at `to`, aligned to 128 bytes; where the box leaves the tensor, zeros (or NaNs, as the map says)
// arrive. All bytes of the box count for the barrier.
template <int rank, Keep keep = Keep::normal>
TK_DEVICE void bulk_load(void *to, const TensorMap *map, const int (&at)[rank],
                         PhaseBarrier *barrier) {
  constexpr u64 policy = cache_policy<keep>();
  constexpr u16 mask = 0;
  if constexpr (keep == Keep::normal) {
    TK_BY_RANK(TK_LOAD);
  } else {
    TK_BY_RANK(TK_LOAD_KEEP);
  }
}
// To the same place in each block of the cluster whose rank's bit is set in `mask`, where it counts
// for the same barrier.
template <int rank, Keep keep = Keep::normal>
TK_DEVICE void bulk_load_multicast(void *to, const TensorMap *map, const int (&at)[rank],
                                   PhaseBarrier *barrier, u16 mask) {
  constexpr u64 policy = cache_policy<keep>();
  if constexpr (keep == Keep::normal) {
    TK_BY_RANK(TK_LOAD_CAST);
  } else {
    TK_BY_RANK(TK_LOAD_CAST_KEEP);
  }
}

// `form(text, operands...)` with the coordinates as operands 5 and following, and the distances of
// a window's element behind them.
#define TK_BY_WINDOW_RANK(form)                                                                    \
  static_assert(rank >= 3 && rank <= 5, "a tensor map of windows has 3 to 5 axes");                \
  if constexpr (rank == 3)                                                                         \
    form("3d", "{%5, %6, %7}", "{%8}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "h"((u16)by[0]));       \
  else if constexpr (rank == 4)                                                                    \
    form("4d", "{%5, %6, %7, %8}", "{%9, %10}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]),    \
         "h"((u16)by[0]), "h"((u16)by[1]));                                                        \
  else                                                                                             \
    form("5d", "{%5, %6, %7, %8, %9}", "{%10, %11, %12}", "r"(at[0]), "r"(at[1]), "r"(at[2]),      \
         "r"(at[3]), "r"(at[4]), "h"((u16)by[0]), "h"((u16)by[1]), "h"((u16)by[2]))
#define TK_WINDOW_FORM(flags, extra, dims, coordinates, distances, ...)                            \
  asm volatile("cp.async.bulk.tensor." dims                                                        \
               ".shared::cluster.global.im2col.mbarrier::complete_tx::bytes" flags                 \
               " [%0], [%1, " coordinates "], [%2], " distances extra                              \
               ";" ::"r"(shared_address(to)),                                                      \
               "l"(map), "r"(shared_address(barrier)), "n"(0), "l"(policy), __VA_ARGS__            \
               : "memory")
#define TK_WINDOW(...) TK_WINDOW_FORM("", "", __VA_ARGS__)
#define TK_WINDOW_KEEP(...) TK_WINDOW_FORM(".L2::cache_hint", ", %4", __VA_ARGS__)

// The same by a map of windows: `at` is the first row's place, from which rows are counted through
// along the axes between the first and the last one; along each of these a row is read at its place
// plus `by`, which is not negative.
template <int rank, Keep keep = Keep::normal>
TK_DEVICE void bulk_load_windows(void *to, const TensorMap *map, const int (&at)[rank],
                                 const int (&by)[rank - 2], PhaseBarrier *barrier) {
  constexpr u64 policy = cache_policy<keep>();
  if constexpr (keep == Keep::normal) {
    TK_BY_WINDOW_RANK(TK_WINDOW);
  } else {
    TK_BY_WINDOW_RANK(TK_WINDOW_KEEP);
  }
}

#define TK_STORE_FORM(begin, dims, coordinates, ...)                                               \
  asm volatile(begin dims ".global.shared::cta" ADD ".bulk_group [%1, " coordinates                \
                          "], [%0];" ::"r"(shared_address(from)),                                  \
               "l"(map), "n"(0), "n"(0), "n"(0), __VA_ARGS__                                       \
               : "memory")
#define TK_STORE(...) TK_STORE_FORM("cp.async.bulk.tensor.", __VA_ARGS__)
#define TK_REDUCE(...) TK_STORE_FORM("cp.reduce.async.bulk.tensor.", __VA_ARGS__)

// Begins to write a box; what lies beyond the end of the tensor is left out. An H200 takes no
// coordinate below 0, but for loads.
#define ADD ""
template <int rank>
TK_DEVICE void bulk_store(const TensorMap *map, const int (&at)[rank], const void *from) {
  TK_BY_RANK(TK_STORE);
}
#undef ADD
// Begins to add a box to the tensor, element by element and atomically.
#define ADD ".add"
template <int rank>
TK_DEVICE void bulk_add(const TensorMap *map, const int (&at)[rank], const void *from) {
  TK_BY_RANK(TK_REDUCE);
}
#undef ADD

#undef TK_BY_RANK
#undef TK_LOAD_FORM
#undef TK_LOAD
#undef TK_LOAD_KEEP
#undef TK_LOAD_CAST
#undef TK_LOAD_CAST_KEEP
#undef TK_BY_WINDOW_RANK
#undef TK_WINDOW_FORM
#undef TK_WINDOW
#undef TK_WINDOW_KEEP
#undef TK_STORE_FORM
#undef TK_STORE
#undef TK_REDUCE

// Without a tensor map: `bytes` neighbouring bytes, a multiple of 16 at addresses that are.
TK_DEVICE void bulk_copy(void *to, const void *from, int bytes, PhaseBarrier *barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               " [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}
TK_DEVICE void bulk_copy_out(void *to, const void *from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
TK_DEVICE void bulk_add_out(float *to, const float *from, int bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
      "r"(shared_address(from)), "r"(bytes)
      : "memory");
}

// Closes the thread's group of stores.
TK_DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until at most `pending` of the thread's latest groups still read shared memory ...
template <int pending> TK_DEVICE void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
// ... or are not yet written.
template <int pending> TK_DEVICE void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

// What this thread wrote to shared memory is visible to bulk copies and warpgroup products begun
// after it, by this thread or by those that it meets at a barrier.
TK_DEVICE void fence_async_proxy(Place = {}) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

} // namespace tk
