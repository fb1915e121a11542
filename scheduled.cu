#include "tk_device.cuh"
#include "hopper.cuh"
TK_WARPGROUP_MMA(bf16, 8)

extern "C" __global__ void __launch_bounds__(1024)
scheduled_c(const int M, const int K, const tk::bf16 *__restrict__ b, const tk::bf16 *__restrict__ a, const float *__restrict__ bias, const __grid_constant__ tk::TensorMap b_map, const __grid_constant__ tk::TensorMap a_map, float *__restrict__ c) {
  const int lane = tk::lane_index();
  const int warp = tk::warp_index();
  tk::u8 *const shared = tk::shared_memory();
  const int at_i32 = (lane & 3) * 2 + (warp & 24);
  const int at_i128 = (lane >> 2 & 7) + (warp & 7) * 16;
#line 3 "tests/e2e/programs/scheduled.tk"
  tk::bf16 *const stage = reinterpret_cast<tk::bf16 *>(shared + 0);
#line 3 "tests/e2e/programs/scheduled.tk"
  tk::PhaseBarrier *const full = reinterpret_cast<tk::PhaseBarrier *>(shared + 10240);
#line 3 "tests/e2e/programs/scheduled.tk"
  if (tk::thread_index() == 0) {
#line 3 "tests/e2e/programs/scheduled.tk"
    for (int i = 0; i < 1; ++i) tk::phase_init(&full[i], 1);
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::phase_init_fence();
#line 3 "tests/e2e/programs/scheduled.tk"
  }
#line 3 "tests/e2e/programs/scheduled.tk"
  tk::bf16 *const stage_1 = reinterpret_cast<tk::bf16 *>(shared + 8192);
#line 3 "tests/e2e/programs/scheduled.tk"
  tk::PhaseBarrier *const full_1 = reinterpret_cast<tk::PhaseBarrier *>(shared + 10248);
#line 3 "tests/e2e/programs/scheduled.tk"
  if (tk::thread_index() == 0) {
#line 3 "tests/e2e/programs/scheduled.tk"
    for (int i = 0; i < 1; ++i) tk::phase_init(&full_1[i], 1);
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::phase_init_fence();
#line 3 "tests/e2e/programs/scheduled.tk"
  }
#line 3 "tests/e2e/programs/scheduled.tk"
  tk::barrier();
#line 3 "tests/e2e/programs/scheduled.tk"
  const int block_x = tk::block_x();
#line 3 "tests/e2e/programs/scheduled.tk"
  const int n = (block_x * 32);
#line 3 "tests/e2e/programs/scheduled.tk"
  int n_1[2];
#line 3 "tests/e2e/programs/scheduled.tk"
  TK_UNROLL for (int r = 0; r < 2; ++r) {
#line 3 "tests/e2e/programs/scheduled.tk"
    n_1[r] = (n + (int)(at_i32 + r));
#line 3 "tests/e2e/programs/scheduled.tk"
  }
#line 3 "tests/e2e/programs/scheduled.tk"
  bool is[2];
#line 3 "tests/e2e/programs/scheduled.tk"
  TK_UNROLL for (int r = 0; r < 2; ++r) {
#line 3 "tests/e2e/programs/scheduled.tk"
    is[r] = ((int)(at_i128 + (r & 1) * 8) < 64);
#line 3 "tests/e2e/programs/scheduled.tk"
  }
#line 3 "tests/e2e/programs/scheduled.tk"
  bool is_1[2];
#line 3 "tests/e2e/programs/scheduled.tk"
  TK_UNROLL for (int r = 0; r < 2; ++r) {
#line 3 "tests/e2e/programs/scheduled.tk"
    is_1[r] = (n_1[r] < M);
#line 3 "tests/e2e/programs/scheduled.tk"
  }
#line 3 "tests/e2e/programs/scheduled.tk"
  float carried[4];
#line 3 "tests/e2e/programs/scheduled.tk"
  TK_UNROLL for (int r = 0; r < 4; ++r) carried[r] = 0.0f;
#line 3 "tests/e2e/programs/scheduled.tk"
  int carried_1 = 0;
#line 3 "tests/e2e/programs/scheduled.tk"
  int carried_2 = 0;
#line 3 "tests/e2e/programs/scheduled.tk"
  for (int at = 0; at < K; at += 32) {
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::barrier();
#line 3 "tests/e2e/programs/scheduled.tk"
    if (tk::thread_index() == 0) tk::phase_expect(&full[0], 8192);
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::bf16 *const v = stage + 0 * 4096;
#line 3 "tests/e2e/programs/scheduled.tk"
    if (tk::thread_index() == 0) TK_UNROLL for (int p = 0; p < 2; ++p) tk::bulk_load<2>(v + p * 2048, &b_map, {(int)(0) + p * 64, (int)(at)}, &full[0]);
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::barrier();
#line 3 "tests/e2e/programs/scheduled.tk"
    if (tk::thread_index() == 0) tk::phase_expect(&full_1[0], 2048);
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::bf16 *const v_1 = stage_1 + 0 * 1024;
#line 3 "tests/e2e/programs/scheduled.tk"
    if (tk::thread_index() == 0) tk::bulk_load<2>(v_1, &a_map, {(int)(at), (int)(n)}, &full_1[0]);
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::phase_wait(&full[0], carried_1);
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::phase_wait(&full_1[0], carried_2);
#line 3 "tests/e2e/programs/scheduled.tk"
    const tk::u64 a_at = tk::descriptor_advance(tk::matrix_descriptor(v, 4096, 1024, tk::Swizzle::bytes128), (warp & 4) * 1024);
#line 3 "tests/e2e/programs/scheduled.tk"
    const tk::u64 b_at = tk::descriptor_advance(tk::matrix_descriptor(v_1, 16, 512, tk::Swizzle::bytes64), (warp & 24) * 64);
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::warpgroup_fence();
#line 3 "tests/e2e/programs/scheduled.tk"
    TK_UNROLL for (int k = 0; k < 2; ++k) tk::warpgroup_mma<tk::bf16, tk::bf16, 8, true, false>(&carried[0], tk::descriptor_advance(a_at, k * 2048), tk::descriptor_advance(b_at, k * 32), 1);
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::warpgroup_commit();
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::warpgroup_wait<0>();
#line 3 "tests/e2e/programs/scheduled.tk"
    tk::fence_registers(carried);
#line 3 "tests/e2e/programs/scheduled.tk"
    const int n_2 = (1 - carried_1);
#line 3 "tests/e2e/programs/scheduled.tk"
    const int n_3 = (1 - carried_2);
#line 3 "tests/e2e/programs/scheduled.tk"
    carried_1 = n_2;
#line 3 "tests/e2e/programs/scheduled.tk"
    carried_2 = n_3;
#line 3 "tests/e2e/programs/scheduled.tk"
  }
#line 3 "tests/e2e/programs/scheduled.tk"
  float bias_value[2];
#line 3 "tests/e2e/programs/scheduled.tk"
  TK_UNROLL for (int r = 0; r < 2; ++r) bias_value[r] = is[r] ? tk::get(&bias[(int)(at_i128 + (r & 1) * 8)]) : 0.0f;
#line 3 "tests/e2e/programs/scheduled.tk"
  float v_2[4];
#line 3 "tests/e2e/programs/scheduled.tk"
  TK_UNROLL for (int r = 0; r < 4; ++r) {
#line 3 "tests/e2e/programs/scheduled.tk"
    v_2[r] = (carried[r] + bias_value[(r >> 1 & 1)]);
#line 3 "tests/e2e/programs/scheduled.tk"
  }
#line 3 "tests/e2e/programs/scheduled.tk"
  TK_UNROLL for (int r = 0; r < 4; ++r) if (is[(r >> 1 & 1)] && is_1[(r & 1)]) tk::put(&c[n_1[(r & 1)] * 64 + (int)(at_i128 + (r & 2) * 4)], v_2[r]);
}
