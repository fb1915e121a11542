#include "tk_device.cuh"

// onepole_y: kernel onepole of r.tk:1
// assumes B % 128 == 0, B <= 1024, T % 16384 == 0, T <= 16384, tensors of less than 2^30 elements
// plan family = row_reduction, tiles = #tkgpu.schedule<tile = [1, 16384], reduce = [16384],
//   warps = 32, per_thread = 16, vector = 16, stages = 1>
// grid (B, 1, 1) of 1024 threads, 1536 bytes of shared memory
extern "C" __global__ void __launch_bounds__(1024)
onepole_y(const float *__restrict__ x, const float *__restrict__ a, float *__restrict__ y) {
  const int lane = tk::lane_index();
  const int warp = tk::warp_index();
  tk::u8 *const shared = tk::shared_memory();
  tk::u8 *const scratch = shared + 0;
  const int at_i16384 = (lane & 31) * 4 + (warp & 31) * 128;
#line 1 "r.tk"
  const int b = tk::block_x();
  // 1: kernel onepole(x: f32[B, T], a: f32[B]) -> (y: f32[B, T]) { y[b, t] = sum[s in 0..t + 1](pow(a[b], f ...  [load 16384 f32]
#line 1 "r.tk"
  float x_value[16];
#line 1 "r.tk"
  TK_UNROLL for (int r = 0; r < 16; r += 4) tk::load<4>(&x_value[r], &x[b * 16384 + (int)(at_i16384 + (r & 12) * 1024)]);
#line 1 "r.tk"
  const float a_value = tk::get(&a[b]);
  // 1: kernel onepole(x: f32[B, T], a: f32[B]) -> (y: f32[B, T]) { y[b, t] = sum[s in 0..t + 1](pow(a[b], f ...  [recurrence 16384 f32]
#line 1 "r.tk"
  float t[16];
#line 1 "r.tk"
  TK_UNROLL for (int r = 0; r < 16; ++r) t[r] = x_value[r];
#line 1 "r.tk"
  float t_1[16];
#line 1 "r.tk"
  TK_UNROLL for (int r = 0; r < 16; ++r) t_1[r] = a_value;
#line 1 "r.tk"
  tk::Run<float> runs[16];
#line 1 "r.tk"
  tk::begin_runs(runs, t_1, t);
#line 1 "r.tk"
  tk::recur_registers<1>(t, t_1, runs);
#line 1 "r.tk"
  tk::recur_registers<2>(t, t_1, runs);
#line 1 "r.tk"
  tk::recur_lanes<31, 3>(t, t_1, runs);
#line 1 "r.tk"
  tk::recur_block<32, 3, 12>(t, t_1, runs, reinterpret_cast<float *>(scratch));
  // 1: kernel onepole(x: f32[B, T], a: f32[B]) -> (y: f32[B, T]) { y[b, t] = sum[s in 0..t + 1](pow(a[b], f ...  [store 16384 f32]
#line 1 "r.tk"
  TK_UNROLL for (int r = 0; r < 16; r += 4) tk::store<4>(&y[b * 16384 + (int)(at_i16384 + (r & 12) * 1024)], &t[r]);
}
