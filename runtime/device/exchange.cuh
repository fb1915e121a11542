// Values that the blocks of a cluster join. Included by cluster.cuh, the device's or its twin.
#pragma once

namespace tk {

// What the blocks of a cluster exchange for one reduction of n values: the parts of this block's
// warps, those of all blocks, and the barrier that counts the latter as they come. There are two,
// used in turn: another block may be a round ahead, but no more, as it needs this one's part.
template <class T, int n, int warps, int blocks> struct alignas(16) Exchange {
  T own[n * warps];
  T all[n * blocks];
  alignas(16) PhaseBarrier arrived;
};

// By one thread of each block, before the cluster's first barrier; then phase_init_fence().
template <class T, int n, int warps, int blocks>
TK_DEVICE void prepare_exchange(Exchange<T, n, warps, blocks> *exchange, Place place = {}) {
  phase_init(&exchange[0].arrived, 1, place);
  phase_init(&exchange[1].arrived, 1, place);
}

// Sends what the warps of this block have, whose lanes all hold the same values: first the block's
// are joined, then one part goes to each block, without waiting for anything else that was written.
template <class Op, int n, class T, int warps, int blocks>
TK_DEVICE void send_cluster(T (&x)[n], Exchange<T, n, warps, blocks> *exchange, int round,
                            Place place = {}) {
  Exchange<T, n, warps, blocks> &parts = exchange[round & 1];
  if (lane_index() == 0)
    for_each<n>([&](int r) { put(&parts.own[r * warps + warp_index()], x[r], place); });
  barrier(place);
  if (warp_index() == 0) {
    join_parts<Op, warps>(x, parts.own, place);
    if (lane_index() == 0)
      phase_expect(&parts.arrived, (int)sizeof(parts.all), place);
    if (lane_index() < blocks) // a lane for each block
      for_each<n>([&](int r) {
        send_to(&parts.all[r * blocks + cluster_rank()], x[r], &parts.arrived, lane_index(), place);
      });
  }
}

// Awaits the parts of all `blocks` blocks of the cluster, and joins them.
template <class Op, int n, class T, int warps, int blocks>
TK_DEVICE void receive_cluster(T (&x)[n], Exchange<T, n, warps, blocks> *exchange, int &round,
                               Place place = {}) {
  Exchange<T, n, warps, blocks> &parts = exchange[round & 1];
  phase_wait(&parts.arrived, round >> 1 & 1, place);
  join_parts<Op, blocks>(x, parts.all, place);
  ++round;
}

// Both at once. `round` counts the uses of `exchange`.
template <class Op, int n, class T, int warps, int blocks>
TK_DEVICE void reduce_cluster(T (&x)[n], Exchange<T, n, warps, blocks> *exchange, int &round,
                              Place place = {}) {
  send_cluster<Op>(x, exchange, round, place);
  receive_cluster<Op>(x, exchange, round, place);
}

// The same for a pair whose parts have `count` elements each.
template <class Pair, int warps, int blocks>
TK_DEVICE void send_pair(Pair &x, float count, Exchange<float, 2, warps, blocks> *exchange,
                         int round, Place place = {}) {
  Exchange<float, 2, warps, blocks> &parts = exchange[round & 1];
  if (lane_index() == 0) {
    put(&parts.own[warp_index()], x.first, place);
    put(&parts.own[warps + warp_index()], x.second, place);
  }
  barrier(place);
  if (warp_index() == 0) {
    x.first = get(&parts.own[lane_index() % warps], place);
    x.second = get(&parts.own[warps + lane_index() % warps], place);
    x.template join_lanes<warps - 1>(count, place);
    if (lane_index() == 0)
      phase_expect(&parts.arrived, (int)sizeof(parts.all), place);
    if (lane_index() < blocks) { // a lane for each block
      send_to(&parts.all[cluster_rank()], x.first, &parts.arrived, lane_index(), place);
      send_to(&parts.all[blocks + cluster_rank()], x.second, &parts.arrived, lane_index(), place);
    }
  }
}
template <class Pair, int warps, int blocks>
TK_DEVICE void receive_pair(Pair &x, float count, Exchange<float, 2, warps, blocks> *exchange,
                            int &round, Place place = {}) {
  Exchange<float, 2, warps, blocks> &parts = exchange[round & 1];
  phase_wait(&parts.arrived, round >> 1 & 1, place);
  x.first = get(&parts.all[lane_index() % blocks], place);
  x.second = get(&parts.all[blocks + lane_index() % blocks], place);
  x.template join_lanes<blocks - 1>(count * warps, place);
  ++round;
}
template <class Pair, int warps, int blocks>
TK_DEVICE void join_cluster(Pair &x, float count, Exchange<float, 2, warps, blocks> *exchange,
                            int &round, Place place = {}) {
  send_pair(x, count, exchange, round, place);
  receive_pair(x, count, exchange, round, place);
}

// Numbers that one thread of a cluster draws and tells the others. There are two, used in turn, as
// blocks may be a round apart.
struct alignas(16) Told {
  int number[2];
  PhaseBarrier arrived[2];
};

// By one thread of each block, before the cluster's first barrier; then phase_init_fence().
TK_DEVICE void prepare_told(Told *told, Place place = {}) {
  phase_init(&told->arrived[0], 1, place);
  phase_init(&told->arrived[1], 1, place);
}

// Draws, in the first thread of the last of `warps` warps, as it is the first warp that joins what
// the others have. It need not wait for the number until it tells it; the others get 0.
template <int warps> TK_DEVICE int draw_number(int *counter, int count, Place place = {}) {
  int number = 0;
  if (thread_index() == (warps - 1) * 32 && cluster_rank() == 0)
    number = draw_from(counter, count, place);
  return number;
}

// Tells all `blocks` blocks the number of the thread that drew it.
template <int warps, int blocks>
TK_DEVICE void tell_number(Told *told, int number, int round, Place place = {}) {
  if (warp_index() != warps - 1)
    return;
  if (lane_index() == 0)
    phase_expect(&told->arrived[round & 1], (int)sizeof(int), place);
  if (cluster_rank() != 0)
    return;
  number = warp_uniform(number, place);
  if (lane_index() < blocks) // a lane for each block
    send_to(&told->number[round & 1], number, &told->arrived[round & 1], lane_index(), place);
}

// The number that was told in that round, of which each thread counts the uses.
TK_DEVICE int told_number(Told *told, int &round, Place place = {}) {
  phase_wait(&told->arrived[round & 1], round >> 1 & 1, place);
  const int number = get(&told->number[round & 1], place);
  ++round;
  return number;
}

} // namespace tk
