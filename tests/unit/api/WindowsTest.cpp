// Sums over windows in f32 as products of parts in bf16 (tk-flatten-windows), of any size and on
// the emulator: one to three axes, strides, padding, dilation, groups, either order of the factors.
#include "tests/unit/api/ForcedPass.h"

#include <cmath>
#include <limits>

using namespace tk;

namespace {

/// Is there a statement over pixels that are counted through?
bool has_flat(mlir::ModuleOp module) {
  return module
      .walk([](ComputeOp compute) {
        auto name = mlir::cast<mlir::StringAttr>(compute.getNames()[0]).getValue();
        return name.ends_with(".flat") ? mlir::WalkResult::interrupt()
                                       : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

std::vector<HostTensor> run_flat(const Example &example, FlattenWindowsOptions options = {}) {
  options.always = true;
  return run_forced(
      example, "tk-split-residues", [&] { return createFlattenWindows(options); }, nullptr,
      has_flat);
}

const Fill as_drawn = [](size_t, double normal) { return normal; };

constexpr const char *planes = R"(
kernel conv(x: f32[N, C, H, W], w: f32[O, C, R, S]) -> (y: f32[N, O, H - R + 1, W - S + 1]) {
  y[n, o, a, b] = sum[i, r, s](x[n, i, a + r, b + s] * w[o, i, r, s])
})";
constexpr const char *padded = R"(
kernel padded(x: f32[N, C, H, W], w: f32[O, C, 3, 3], bias: f32[O]) -> (y: f32[N, O, H, W]) {
  y[n, o, a, b] = relu(sum[i, r, s](w[o, i, r, s] * pad(x[n, i, a + r - 1, b + s - 1], 0.0)) + bias[o])
})";

} // namespace

TEST_CASE("windows of planes, of sizes that divide nothing") {
  run_flat({planes,
            {{"N", 2}, {"C", 5}, {"H", 9}, {"W", 13}, {"O", 20}, {"R", 3}, {"S", 2}},
            {as_drawn, as_drawn}});
  run_flat({planes,
            {{"N", 3}, {"C", 72}, {"H", 7}, {"W", 8}, {"O", 33}, {"R", 2}, {"S", 3}},
            {as_drawn, as_drawn}});
  run_flat({planes,
            {{"N", 1}, {"C", 1}, {"H", 4}, {"W", 4}, {"O", 17}, {"R", 4}, {"S", 4}},
            {as_drawn, as_drawn}});
}

TEST_CASE("padded windows, with slices of any length and taps as channels") {
  for (int64_t slice : {16, 32, 64, 128})
    run_flat({padded,
              {{"N", 2}, {"C", 24}, {"H", 6}, {"W", 9}, {"O", 24}},
              {as_drawn, as_drawn, as_drawn}},
             {true, 0, slice, 1});
  for (int64_t unrolled : {1, 2, 3})
    run_flat({padded,
              {{"N", 2}, {"C", 3}, {"H", 6}, {"W", 9}, {"O", 24}},
              {as_drawn, as_drawn, as_drawn}},
             {true, unrolled, 32, 1});
}

TEST_CASE("steps of windows that blocks share out, of which some have none") {
  for (int64_t shares : {2, 3, 6, 16, 53, 64})
    run_flat({padded,
              {{"N", 2}, {"C", 8}, {"H", 5}, {"W", 6}, {"O", 24}},
              {as_drawn, as_drawn, as_drawn}},
             {true, 0, 16, shares});
}

TEST_CASE("windows that move by several places, with dilation and groups") {
  run_flat({R"(
kernel strided(x: f32[N, C, H, W], w: f32[O, C, 3, 3]) -> (y: f32[N, O, (H + 1) / 2, (W + 2) / 3]) {
  y[n, o, a, b] = sum[i, r, s](pad(x[n, i, 2 * a + r - 1, 3 * b + s - 1], 0.0) * w[o, i, r, s])
})",
            {{"N", 2}, {"C", 20}, {"H", 9}, {"W", 14}, {"O", 20}},
            {as_drawn, as_drawn}});
  run_flat({R"(
kernel dilated(x: f32[N, C, H, W], w: f32[O, C, 3, 3]) -> (y: f32[N, O, H, W]) {
  y[n, o, a, b] = sum[i, r, s](pad(x[n, i, a + 2 * r - 2, b + 3 * s - 3], 0.0) * w[o, i, r, s])
})",
            {{"N", 1}, {"C", 17}, {"H", 8}, {"W", 7}, {"O", 20}},
            {as_drawn, as_drawn}});
  run_flat({R"(
kernel both(x: f32[N, C, H, W], w: f32[O, C, 3, 3]) -> (y: f32[N, O, (H + 1) / 2, W]) {
  y[n, o, a, b] = sum[i, r, s](pad(x[n, i, 2 * a + 3 * r - 3, b + s - 1], 0.0) * w[o, i, r, s])
})",
            {{"N", 1}, {"C", 16}, {"H", 9}, {"W", 7}, {"O", 20}},
            {as_drawn, as_drawn}});
  run_flat({R"(
kernel groups(x: f32[N, 3 * C, H, W], w: f32[3, O, C, 3, 3]) -> (y: f32[N, 3, O, H, W]) {
  y[n, g, o, a, b] = sum[i in 0..C, r, s](pad(x[n, g * C + i, a + r - 1, b + s - 1], 0.0) * w[g, o, i, r, s])
})",
            {{"N", 2}, {"C", 10}, {"H", 5}, {"W", 6}, {"O", 20}},
            {as_drawn, as_drawn}});
}

TEST_CASE("windows along one and three axes, and of channels last") {
  run_flat({R"(
kernel line(x: f32[N, C, T], w: f32[O, C, K]) -> (y: f32[N, O, T]) where K >= 1 {
  y[n, o, t] = sum[i, k](pad(x[n, i, t + k - (K - 1)], 0.0) * w[o, i, k])
})",
            {{"N", 2}, {"C", 24}, {"T", 31}, {"O", 24}, {"K", 4}},
            {as_drawn, as_drawn}});
  run_flat({R"(
kernel volume(x: f32[N, C, D, H, W], w: f32[O, C, 2, 3, 2]) -> (y: f32[N, O, D - 1, H - 2, W - 1]) {
  y[n, o, a, b, c] = sum[i, r, s, t](x[n, i, a + r, b + s, c + t] * w[o, i, r, s, t])
})",
            {{"N", 2}, {"C", 5}, {"D", 4}, {"H", 6}, {"W", 5}, {"O", 20}},
            {as_drawn, as_drawn}});
  run_flat({R"(
kernel last(x: f32[N, H, W, C], w: f32[O, 3, 3, C]) -> (y: f32[N, H, W, O]) {
  y[n, a, b, o] = sum[r, s, i](pad(x[n, a + r - 1, b + s - 1, i], 0.0) * w[o, r, s, i])
})",
            {{"N", 2}, {"C", 24}, {"H", 5}, {"W", 6}, {"O", 24}},
            {as_drawn, as_drawn}});
}

TEST_CASE("windows of 16 bits, with what follows the sum") {
  run_flat({R"(
kernel last(x: bf16[N, H, W, C], w: bf16[O, 3, 3, C], bias: f32[O]) -> (y: bf16[N, H, W, O]) {
  y[n, a, b, o] = relu(sum[r, s, i](pad(x[n, a + r - 1, b + s - 1, i], 0.0) * w[o, r, s, i]) + bias[o])
})",
            {{"N", 2}, {"C", 24}, {"H", 5}, {"W", 6}, {"O", 24}},
            {as_drawn, as_drawn, as_drawn}});
  run_flat({R"(
kernel first(x: f16[N, C, H, W], w: f16[O, C, R, S], r: f16[N, O, H - R + 1, W - S + 1]) -> (y: f16[N, O, H - R + 1, W - S + 1]) {
  y[n, o, a, b] = sum[i, r0 in 0..R, s](x[n, i, a + r0, b + s] * w[o, i, r0, s]) + r[n, o, a, b]
})",
            {{"N", 2}, {"C", 70}, {"H", 6}, {"W", 7}, {"O", 20}, {"R", 3}, {"S", 2}},
            {as_drawn, as_drawn, as_drawn}});
  run_flat({R"(
kernel strided(x: bf16[N, H, W, C], w: bf16[O, 3, 3, C]) -> (y: f32[N, (H + 1) / 2, (W + 1) / 2, O]) {
  y[n, a, b, o] = sum[r, s, i](w[o, r, s, i] * pad(x[n, 2 * a + r - 1, 2 * b + s - 1, i], 0.0))
})",
            {{"N", 1}, {"C", 16}, {"H", 9}, {"W", 7}, {"O", 20}},
            {as_drawn, as_drawn}},
           {true, 0, 16, 1});
  // One row of taps. Of one tap there is no window: that is a plain product.
  run_flat({R"(
kernel places(x: f16[N, C, H, W], w: f16[O, C, R, S]) -> (y: f16[N, O, H - R + 1, W - S + 1]) {
  y[n, o, a, b] = sum[i, r, s](x[n, i, a + r, b + s] * w[o, i, r, s])
})",
            {{"N", 2}, {"C", 24}, {"H", 6}, {"W", 7}, {"O", 20}, {"R", 1}, {"S", 2}},
            {as_drawn, as_drawn}},
           {true, 0, 32, 1});
  for (int64_t shares : {2, 12})
    run_flat({R"(
kernel strided(x: bf16[N, H, W, C], w: bf16[O, 3, 3, C]) -> (y: bf16[N, (H + 1) / 2, (W + 1) / 2, O]) {
  y[n, a, b, o] = sum[r, s, i](w[o, r, s, i] * pad(x[n, 2 * a + r - 1, 2 * b + s - 1, i], 0.0))
})",
              {{"N", 1}, {"C", 16}, {"H", 9}, {"W", 7}, {"O", 20}},
              {as_drawn, as_drawn}},
             {true, 0, 16, shares});
}

TEST_CASE("windows of tf32") {
  run_flat({R"(
kernel planes(x: f32[N, C, H, W], w: f32[O, C, 3, 3], bias: f32[O]) -> (y: f32[N, O, H, W]) {
  y[n, o, a, b] = relu(sum[i, r, s; tf32](pad(x[n, i, a + r - 1, b + s - 1], 0.0) * w[o, i, r, s]) + bias[o])
})",
            {{"N", 2}, {"C", 40}, {"H", 5}, {"W", 6}, {"O", 24}},
            {as_drawn, as_drawn, as_drawn}},
           {true, 0, 32, 1});
}

TEST_CASE("gradients by weights, whose windows are stored tap by tap") {
  run_flat({R"(
kernel weights(x: f32[N, C, H, W], dy: f32[N, O, H, W]) -> (dw: f32[O, C, 3, 3]) {
  dw[o, i, r, s] = sum[n, a, b](dy[n, o, a, b] * pad(x[n, i, a + r - 1, b + s - 1], 0.0))
})",
            {{"N", 2}, {"C", 5}, {"H", 6}, {"W", 7}, {"O", 20}},
            {as_drawn, as_drawn}},
           {true, 3, 32, 16});
}

TEST_CASE("gradients by weights of 16 bits, whose pixels are counted where they lie") {
  // The last shares have pixels behind the last one, or none at all.
  for (int64_t shares : {1, 2, 9})
    run_flat({R"(
kernel weights(x: bf16[N, H, W, C], dy: bf16[N, H, W, O]) -> (dw: f32[O, 3, 3, C]) {
  dw[o, r, s, i] = sum[n, a, b](dy[n, a, b, o] * pad(x[n, a + r - 1, b + s - 1, i], 0.0))
})",
              {{"N", 3}, {"C", 24}, {"H", 6}, {"W", 7}, {"O", 40}},
              {as_drawn, as_drawn}},
             {true, 0, 64, shares});
  run_flat({R"(
kernel strided(x: f16[N, H, W, C], dy: f16[N, P, Q, O]) -> (dw: f16[O, 3, 2, C])
where P == (H + 1) / 2, Q == (W + 2) / 3 {
  dw[o, r, s, i] = sum[n, a, b](pad(x[n, 2 * a + r - 1, 3 * b + 2 * s - 1, i], 0.0) * dy[n, a, b, o])
})",
            {{"N", 2}, {"C", 40}, {"H", 9}, {"W", 14}, {"O", 24}, {"P", 5}, {"Q", 5}},
            {as_drawn, as_drawn}},
           {true, 0, 64, 2});
  run_flat({R"(
kernel line(x: bf16[N, T, C], dy: bf16[N, T, O], g: bf16[K]) -> (dw: f32[K, C, O]) where K >= 1 {
  dw[k, i, o] = sum[n, t](pad(x[n, t + k - (K - 1), i], 0.0) * dy[n, t, o])
})",
            {{"N", 2}, {"C", 24}, {"T", 70}, {"O", 24}, {"K", 4}},
            {as_drawn, as_drawn, as_drawn}},
           {true, 0, 64, 3});
  run_flat({R"(
kernel volume(x: bf16[N, D, H, W, C], dy: bf16[N, D - 1, H - 2, W, O]) -> (dw: f32[O, 2, 3, C]) {
  dw[o, r, s, i] = sum[n, a, b, c](dy[n, a, b, c, o] * x[n, a + r, b + s, c, i])
})",
            {{"N", 2}, {"C", 16}, {"D", 4}, {"H", 6}, {"W", 5}, {"O", 24}},
            {as_drawn, as_drawn}},
           {true, 0, 64, 1});
}

TEST_CASE("gradients by weights whose operands are stored by pixels") {
  const char *planes = R"(
kernel weights(x: f32[N, C, H, W], dy: f32[N, O, H, W]) -> (dw: f32[O, C, 3, 2]) {
  dw[o, i, r, s] = sum[n, a, b](dy[n, o, a, b] * pad(x[n, i, a + r - 1, b + 2 * s - 1], 0.0))
})";
  // Taps that are columns: none, of one axis, of both.
  for (int64_t unrolled : {0, 1, 2, 3})
    run_flat({planes, {{"N", 2}, {"C", 24}, {"H", 6}, {"W", 7}, {"O", 40}}, {as_drawn, as_drawn}},
             {true, unrolled, 32, 1 + unrolled});
  // Parts of what is not finite.
  const double inf = std::numeric_limits<double>::infinity();
  Fill special = [&](size_t n, double normal) { return n % 211 == 5 ? inf : normal; };
  run_flat({planes, {{"N", 1}, {"C", 8}, {"H", 6}, {"W", 7}, {"O", 24}}, {special, as_drawn}},
           {true, 0, 32, 12});
  run_flat({R"(
kernel halves(x: bf16[N, C, H, W], dy: bf16[N, O, H, W]) -> (dw: bf16[O, C, 3, 3]) {
  dw[o, i, r, s] = sum[n, a, b](dy[n, o, a, b] * pad(x[n, i, a + r - 1, b + s - 1], 0.0)) + 1.0
})",
            {{"N", 2}, {"C", 16}, {"H", 6}, {"W", 7}, {"O", 24}},
            {as_drawn, as_drawn}},
           {true, 2, 64, 2});
  run_flat({R"(
kernel last(x: f32[N, H, W, C], dy: f32[N, H, W, O]) -> (dw: f32[O, 3, 3, C]) {
  dw[o, r, s, i] = sum[n, a, b](pad(x[n, a + r - 1, b + s - 1, i], 0.0) * dy[n, a, b, o])
})",
            {{"N", 2}, {"C", 16}, {"H", 5}, {"W", 6}, {"O", 72}},
            {as_drawn, as_drawn}},
           {true, 0, 32, 2});
}

TEST_CASE("taps in reverse order, as the gradient by the input has them") {
  run_flat({R"(
kernel inputs(dy: f32[N, O, H, W], w: f32[O, C, 3, 3]) -> (dx: f32[N, C, H, W]) {
  dx[n, c, p, q] = sum[o, r, s](pad(dy[n, o, p - r + 1, q - s + 1], 0.0) * w[o, c, r, s])
})",
            {{"N", 2}, {"C", 20}, {"H", 6}, {"W", 7}, {"O", 18}},
            {as_drawn, as_drawn}});
}

TEST_CASE("phases of transposed convolutions, of which some have no taps") {
  const char *upsample = R"(
kernel upsample(x: f32[N, C, H, W], w: f32[C, O, R, S]) -> (y: f32[N, O, 2 * H + R - 3, 3 * W + S - 4]) {
  y[n, o, p, q] = sum[i, r, s](if (p + 1 - r) % 2 == 0 and (q + 1 - s) % 3 == 0
    then pad(x[n, i, (p + 1 - r) / 2, (q + 1 - s) / 3], 0.0) * w[i, o, r, s] else 0.0)
})";
  for (auto [rows, columns] : {std::pair(3, 3), std::pair(4, 2), std::pair(2, 5), std::pair(2, 2)})
    run_flat({upsample,
              {{"N", 2}, {"C", 20}, {"H", 4}, {"W", 5}, {"O", 18}, {"R", rows}, {"S", columns}},
              {as_drawn, as_drawn}},
             {true, 0, 32, 1});
  run_flat({R"(
kernel last(x: f32[N, T, C], w: f32[C, K, O]) -> (y: f32[N, 5 * T + K - 5, O]) {
  y[n, t, o] = sum[i, k](if (t - k) % 5 == 0 then pad(x[n, (t - k) / 5, i], 0.0) * w[i, k, o] else 0.0)
})",
            {{"N", 2}, {"C", 20}, {"T", 6}, {"O", 20}, {"K", 7}},
            {as_drawn, as_drawn}},
           {true, 0, 32, 2});
}

TEST_CASE("windows of what is not finite, and of great and small numbers") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  Fill special = [&](size_t n, double normal) {
    return n % 1031 == 5 ? inf : n % 2063 == 9 ? -inf : n % 4099 == 11 ? nan : normal;
  };
  Fill zeros = [](size_t n, double normal) { return n % 71 == 3 ? 0.0 : normal; };
  const std::map<std::string, int64_t> dims = {{"N", 2},  {"C", 20}, {"H", 8}, {"W", 9},
                                               {"O", 20}, {"R", 3},  {"S", 3}};
  run_flat({planes, dims, {special, zeros}});
  run_flat({planes, dims, {zeros, special}});
  // The greatest numbers of f32 are greater than bf16's.
  Fill greatest = [](size_t n, double) { return n % 2 ? 0x1.fffffep127 : -0x1.fffffep127; };
  Fill small = [](size_t, double normal) { return normal * 0x1p-100; };
  run_flat({planes, dims, {greatest, small}});
  run_flat({planes, dims, {small, greatest}});
}
