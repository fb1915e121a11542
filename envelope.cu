#include "tk_device.cuh"

// envelope_y: kernel envelope of recurrences.tk:45
// assumes B % 64 == 0, B <= 64, T % 256 == 0, T <= 163840, tensors of less than 2^30 elements
// plan family = row_reduction, tiles = #tkgpu.schedule<tile = [1, 8192], reduce = [8192], loop = 1,
//   warps = 16, per_thread = 16, vector = 16, stages = 1>
// where number = 1 - a
// grid (B, 1, 1) of 512 threads, 768 bytes of shared memory
extern "C" __global__ void __launch_bounds__(512)
envelope_y(const int T, const float number, const float *__restrict__ x, const float a, float *__restrict__ y) {
  const int lane = tk::lane_index();
  const int warp = tk::warp_index();
  tk::u8 *const shared = tk::shared_memory();
  tk::u8 *const scratch = shared + 0;
  const int at_i8192 = (lane & 31) * 4 + (warp & 15) * 128;
#line 45 "recurrences.tk"
  const int b = tk::block_x();
#line 45 "recurrences.tk"
  float y_value = 0.0f;
#line 45 "recurrences.tk"
  for (int t_begin = 0; t_begin < T; t_begin += 8192) {
#line 45 "recurrences.tk"
    int t[16];
#line 45 "recurrences.tk"
    bool is[16];
#line 45 "recurrences.tk"
    TK_UNROLL for (int r = 0; r < 16; ++r) {
#line 45 "recurrences.tk"
      t[r] = (t_begin + (int)(at_i8192 + (r & 3) + (r & 12) * 512));
#line 45 "recurrences.tk"
      const int t_down_to_4 = (t[r] & (-4));
#line 45 "recurrences.tk"
      is[r] = (t_down_to_4 < T);
#line 45 "recurrences.tk"
    }
    // 45: kernel envelope(x: f32[B, T], a: f32 = 0.999) -> (y: f32[B, T]) { y[b, t] = (1.0 - a) * sum[s in 0.. ...  [load 8192 f32]
#line 45 "recurrences.tk"
    float x_value[16];
#line 45 "recurrences.tk"
    TK_UNROLL for (int r = 0; r < 16; r += 4) tk::load<4>(&x_value[r], &x[b * T + t[r]], is[r], 0.0f);
#line 45 "recurrences.tk"
    const bool t_begin_above_0 = (t_begin > 0);
#line 45 "recurrences.tk"
    float y_value_1[16];
#line 45 "recurrences.tk"
    TK_UNROLL for (int r = 0; r < 16; ++r) {
#line 45 "recurrences.tk"
      const float y_value_2 = tk::abs(x_value[r]);
#line 45 "recurrences.tk"
      const bool is_1 = ((int)(at_i8192 + (r & 3) + (r & 12) * 512) == 0);
#line 45 "recurrences.tk"
      const bool is_2 = (is_1 && t_begin_above_0);
#line 45 "recurrences.tk"
      const float y_value_3 = (a * y_value);
#line 45 "recurrences.tk"
      const float y_value_4 = (y_value_3 + y_value_2);
#line 45 "recurrences.tk"
      y_value_1[r] = (is_2 ? y_value_4 : y_value_2);
#line 45 "recurrences.tk"
    }
    // 45: kernel envelope(x: f32[B, T], a: f32 = 0.999) -> (y: f32[B, T]) { y[b, t] = (1.0 - a) * sum[s in 0.. ...  [recurrence 8192 f32]
#line 45 "recurrences.tk"
    float y_value_copy[16];
#line 45 "recurrences.tk"
    TK_UNROLL for (int r = 0; r < 16; ++r) y_value_copy[r] = y_value_1[r];
#line 45 "recurrences.tk"
    float t_1[16];
#line 45 "recurrences.tk"
    TK_UNROLL for (int r = 0; r < 16; ++r) t_1[r] = a;
#line 45 "recurrences.tk"
    tk::Run<float> runs[16];
#line 45 "recurrences.tk"
    tk::begin_runs(runs, t_1, y_value_copy);
#line 45 "recurrences.tk"
    tk::recur_registers<1>(y_value_copy, t_1, runs);
#line 45 "recurrences.tk"
    tk::recur_registers<2>(y_value_copy, t_1, runs);
#line 45 "recurrences.tk"
    tk::recur_lanes<31, 3>(y_value_copy, t_1, runs);
#line 45 "recurrences.tk"
    tk::recur_block<16, 3, 12>(y_value_copy, t_1, runs, reinterpret_cast<float *>(scratch));
#line 45 "recurrences.tk"
    float last[16];
#line 45 "recurrences.tk"
    tk::end_runs(last, runs);
#line 45 "recurrences.tk"
    float partial[1];
#line 45 "recurrences.tk"
    partial[0] = last[0];
#line 45 "recurrences.tk"
    const float y_value_2 = partial[0];
#line 45 "recurrences.tk"
    float y_value_3[16];
#line 45 "recurrences.tk"
    TK_UNROLL for (int r = 0; r < 16; ++r) {
#line 45 "recurrences.tk"
      y_value_3[r] = (number * y_value_copy[r]);
#line 45 "recurrences.tk"
    }
    // 45: kernel envelope(x: f32[B, T], a: f32 = 0.999) -> (y: f32[B, T]) { y[b, t] = (1.0 - a) * sum[s in 0.. ...  [store 8192 f32]
#line 45 "recurrences.tk"
    TK_UNROLL for (int r = 0; r < 16; r += 4) tk::store<4>(&y[b * T + t[r]], &y_value_3[r], is[r]);
#line 45 "recurrences.tk"
    y_value = y_value_2;
#line 45 "recurrences.tk"
  }
}
