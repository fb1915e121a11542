// C = A B in bf16 by the primitives of sm_90a, as a warp-specialised, persistent kernel: one
// warpgroup loads by TMA, two multiply, 128 x BN x 64 a block. The tests run it on the emulator and
// on the GPU; its variants show what a schedule is worth.
#include "tk_device.cuh"

#include "hopper.cuh"

#ifndef BN
#define BN 256 // columns of a tile
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef A_TRANSPOSED
#define A_TRANSPOSED 0 // A is stored [K, M]
#endif
#ifndef B_TRANSPOSED
#define B_TRANSPOSED 1 // B is stored [K, N], else [N, K]
#endif
#ifndef CLUSTER
#define CLUSTER 1 // 2: blocks with neighbouring rows share the columns' tile by multicast
#endif
#ifndef GROUP
#define GROUP 8 // rows of tiles that are walked together
#endif
#ifndef PANELS
#define PANELS 2 // buffers of 64 columns for a warpgroup's results
#endif

constexpr int bm = 128, bk = 64, consumers = 2;
constexpr int a_bytes = bm * bk * 2, b_bytes = BN * bk * 2, stage_bytes = a_bytes + b_bytes;
constexpr int panel_bytes = 64 * 128;
constexpr int c_at = STAGES * stage_bytes, barriers_at = c_at + consumers * PANELS * panel_bytes;

TK_WARPGROUP_MMA(bf16, BN)

// Row and column of tile `number`; rows are counted in units of CLUSTER tiles.
TK_DEVICE void tile_at(int number, int rows, int columns, int &row, int &column) {
  const int per_group = GROUP * columns, first = number / per_group * GROUP;
  const int height = rows - first < GROUP ? rows - first : GROUP;
  const int inside = number % per_group;
  row = first + inside % height;
  column = inside / height;
}

struct Ring {
  int stage = 0, parity = 0;
  TK_DEVICE void advance() {
    if (++stage == STAGES)
      stage = 0, parity ^= 1;
  }
};

#if CLUSTER > 1
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(384, 1)
#else
extern "C" __global__ void __launch_bounds__(384, 1)
#endif
gemm(const __grid_constant__ tk::TensorMap a_map, const __grid_constant__ tk::TensorMap b_map,
     const __grid_constant__ tk::TensorMap c_map, const int rows, const int columns,
     const int steps) {
  tk::u8 *const shared = tk::shared_memory();
  auto *const full = reinterpret_cast<tk::PhaseBarrier *>(shared + barriers_at);
  tk::PhaseBarrier *const empty = full + STAGES;
  const int warp = tk::warp_uniform(tk::warp_index());
  const int group = warp / 4;
  const int rank = CLUSTER > 1 ? tk::cluster_rank() : 0;
  const int tiles = rows * columns;

  if (tk::thread_index() == 0) {
    for (int s = 0; s < STAGES; ++s) {
      tk::phase_init(&full[s], 1);
      tk::phase_init(&empty[s], consumers * CLUSTER);
    }
    tk::phase_init_fence();
  }
  if (CLUSTER > 1)
    tk::cluster_sync();
  else
    tk::barrier();

  if (group == consumers) {
    tk::set_registers_less<40>();
    if (warp == 4 * consumers && tk::elect_one()) {
      tk::prefetch_tensor_map(&a_map);
      tk::prefetch_tensor_map(&b_map);
      Ring ring;
      for (int tile = tk::block_x() / CLUSTER; tile < tiles; tile += tk::grid_x() / CLUSTER) {
        int row, column;
        tile_at(tile, rows, columns, row, column);
        const int m = (row * CLUSTER + rank) * bm, n = column * BN;
        for (int step = 0; step < steps; ++step, ring.advance()) {
          tk::u8 *const a = shared + ring.stage * stage_bytes, *const b = a + a_bytes;
          tk::PhaseBarrier *const ready = &full[ring.stage];
          const int k = step * bk;
          tk::phase_wait(&empty[ring.stage], ring.parity ^ 1);
          tk::phase_expect(ready, stage_bytes);
          if (A_TRANSPOSED)
            for (int panel = 0; panel < bm / 64; ++panel)
              tk::bulk_load<2>(a + panel * panel_bytes, &a_map, {m + panel * 64, k}, ready);
          else
            tk::bulk_load<2>(a, &a_map, {k, m}, ready);
          constexpr int part = BN / CLUSTER; // what this block loads, for all of the cluster
          if (B_TRANSPOSED) {
            for (int panel = 0; panel < part / 64; ++panel) {
              const int at = rank * part / 64 + panel;
              if (CLUSTER > 1)
                tk::bulk_load_multicast<2>(b + at * panel_bytes, &b_map, {n + at * 64, k}, ready,
                                           (1 << CLUSTER) - 1);
              else
                tk::bulk_load<2>(b + at * panel_bytes, &b_map, {n + at * 64, k}, ready);
            }
          } else if (CLUSTER > 1) {
            tk::bulk_load_multicast<2>(b + rank * part * 128, &b_map, {k, n + rank * part}, ready,
                                       (1 << CLUSTER) - 1);
          } else {
            tk::bulk_load<2>(b, &b_map, {k, n}, ready);
          }
        }
      }
      // The other block still arrives at these barriers: leave when it has.
      if (CLUSTER > 1)
        for (int s = 0; s < STAGES; ++s, ring.advance())
          tk::phase_wait(&empty[ring.stage], ring.parity ^ 1);
    }
  } else {
    tk::set_registers_more<232>();
    const int lane = tk::lane_index(), thread = tk::thread_index() % 128;
    tk::u8 *const c = shared + c_at + group * PANELS * panel_bytes;
    Ring ring;
    for (int tile = tk::block_x() / CLUSTER; tile < tiles; tile += tk::grid_x() / CLUSTER) {
      int row, column;
      tile_at(tile, rows, columns, row, column);
      float acc[BN / 2];
      Ring previous = ring;
      for (int step = 0; step < steps; ++step) {
        tk::u8 *const a = shared + ring.stage * stage_bytes, *const b = a + a_bytes;
        // Atoms of 128 bytes by 8: along k where k is contiguous, else along m or n, 64 k high.
        const tk::u64 a_of = tk::matrix_descriptor(a + group * panel_bytes, panel_bytes, 1024,
                                                   tk::Swizzle::bytes128);
        const tk::u64 b_of =
            tk::matrix_descriptor(b, panel_bytes, 1024, tk::Swizzle::bytes128);
        tk::phase_wait(&full[ring.stage], ring.parity);
        tk::fence_registers(acc);
        tk::warpgroup_fence();
        tk::for_each<bk / 16>([&](int i) {
          tk::warpgroup_mma<tk::bf16, tk::bf16, BN, A_TRANSPOSED, B_TRANSPOSED>(
              acc, tk::descriptor_advance(a_of, i * (A_TRANSPOSED ? 2048 : 32)),
              tk::descriptor_advance(b_of, i * (B_TRANSPOSED ? 2048 : 32)), step > 0 || i > 0);
        });
        tk::warpgroup_commit();
        tk::fence_registers(acc);
        if (step > 0) {
          tk::warpgroup_wait<1>();
          if (thread < CLUSTER) {
            if (CLUSTER > 1)
              tk::phase_arrive_at(&empty[previous.stage], thread);
            else
              tk::phase_arrive(&empty[previous.stage]);
          }
        }
        previous = ring;
        ring.advance();
      }
      tk::warpgroup_wait<0>();
      tk::fence_registers(acc);
      if (thread < CLUSTER) {
        if (CLUSTER > 1)
          tk::phase_arrive_at(&empty[previous.stage], thread);
        else
          tk::phase_arrive(&empty[previous.stage]);
      }

      const int m = (row * CLUSTER + rank) * bm + group * 64, n = column * BN;
      tk::for_each<BN / 64>([&](int panel) {
        tk::u8 *const to = c + panel % PANELS * panel_bytes;
        // The store that used this buffer last has read it.
        if (thread == 0)
          tk::bulk_wait_read<PANELS - 1>();
        tk::named_barrier_sync(1 + group, 128);
        tk::for_each<4>([&](int j) {
          tk::bf16 y[8];
          tk::for_each<8>([&](int i) {
            y[i] = tk::from_float<tk::bf16>(acc[panel * 32 + j * 8 + i]);
          });
          const int r = warp % 4 * 16 + lane % 16, chunk = j * 2 + lane / 16;
          tk::store_matrix<4, false>(
              reinterpret_cast<tk::bf16 *>(to + r * 128 + (chunk ^ r % 8) * 16), y);
        });
        tk::fence_async_proxy();
        tk::named_barrier_sync(1 + group, 128);
        if (thread == 0) {
          tk::bulk_store<2>(&c_map, {n + panel * 64, m}, to);
          tk::bulk_commit();
        }
      });
    }
    if (thread == 0)
      tk::bulk_wait<0>();
  }
}
