// store_matrix: each form, against the layout that load_matrix has.
#include "tests/target/hopper/OnBoth.h"

#include <numeric>

using tk::DType;
using tk::test::KernelHarness;

TEST_CASE("store_matrix puts each lane's words into the rows that lanes name", "[hopper]") {
  for (int words : {1, 2, 4})
    for (bool transposed : {false, true}) {
      // x[32 lanes][2 words]; rows are 16 elements apart, so half of the memory keeps its zeros.
      const std::string count = std::to_string(words);
      KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(32)
k(const short *x, short *y) {
  auto *const rows = reinterpret_cast<tk::f16 *>(tk::shared_memory());
  const int lane = tk::lane_index();
  for (int i = lane; i < 512; i += 32)
    tk::put(&rows[i], tk::f16{0});
  tk::barrier();
  tk::f16 values[2 * )" +
                      count + R"(];
  for (int i = 0; i < 2 * )" +
                      count + R"(; ++i)
    values[i].bits = tk::get(&x[lane * 8 + i]);
  tk::store_matrix<)" +
                      count + ", " + (transposed ? "true" : "false") +
                      R"(>(&rows[lane * 16], values);
  tk::barrier();
  for (int i = lane; i < 512; i += 32)
    tk::put(&y[i], (short)tk::get(&rows[i]).bits);
})");
      k.sharedBytes = 1024;
      std::vector<int16_t> x(256), y(512);
      std::iota(x.begin(), x.end(), int16_t{1});
      k.in(x, DType::i16);
      k.out(y, DType::i16);
      INFO(words << " words" << (transposed ? ", transposed" : ""));
      tk::test::runOnBoth(k, [&] {
        std::vector<int16_t> want(512);
        for (int lane = 0; lane < 32; ++lane)
          for (int m = 0; m < words; ++m)
            for (int e = 0; e < 2; ++e) {
              // Of matrix m a lane holds row lane / 4, columns 2 (lane % 4) and the next one.
              int row = lane / 4, column = lane % 4 * 2 + e;
              if (transposed)
                std::swap(row, column);
              want[static_cast<size_t>((8 * m + row) * 16 + column)] =
                  x[static_cast<size_t>(lane * 8 + 2 * m + e)];
            }
        CHECK(y == want);
      });
    }
}
