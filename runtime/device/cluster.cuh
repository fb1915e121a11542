// Blocks that run at the same time and reach each other's shared memory.
#pragma once

#include "phase_barrier.cuh"

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
// The same, ordering nothing but phase barriers before phase_init_fence(): it need not wait for
// what this thread has under way.
TK_DEVICE void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
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

// The address in the cluster's shared memory of what the block of that rank has where this block
// has p.
TK_DEVICE u32 cluster_address(const void *p, int rank) {
  u32 remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(p)), "r"(rank));
  return remote;
}

// Writes x, of 4, 8 or 16 bytes, to where the block of that rank has what this block has at `to`,
// and counts its bytes at the barrier `arrived` there. Nothing else that this thread wrote is
// ordered by that, so it does not wait for stores under way.
template <class T>
TK_DEVICE void send_to(T *to, const T &x, PhaseBarrier *arrived, int rank, Place = {}) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "one, two or four words");
  u32 word[sizeof(T) / 4];
  memcpy(word, &x, sizeof(T));
  const u32 target = cluster_address(to, rank), counter = cluster_address(arrived, rank);
#define TK_SEND "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
  if constexpr (sizeof(T) == 4)
    asm volatile(TK_SEND ".u32 [%0], %1, [%2];" ::"r"(target), "r"(word[0]), "r"(counter)
                 : "memory");
  else if constexpr (sizeof(T) == 8)
    asm volatile(TK_SEND ".v2.u32 [%0], {%1, %2}, [%3];" ::"r"(target), "r"(word[0]), "r"(word[1]),
                 "r"(counter)
                 : "memory");
  else
    asm volatile(TK_SEND ".v4.u32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(target), "r"(word[0]),
                 "r"(word[1]), "r"(word[2]), "r"(word[3]), "r"(counter)
                 : "memory");
#undef TK_SEND
}

// The next of the numbers 0 to count - 1, after which the counter begins again.
TK_DEVICE int draw_from(int *counter, int count, Place = {}) {
  u32 number;
  asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(number)
               : "l"(counter), "r"(count - 1)
               : "memory");
  return (int)number;
}

} // namespace tk

#include "exchange.cuh"
