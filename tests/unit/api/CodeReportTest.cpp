// What the GPU compiler reports, and the occupancy that follows from it.
#include "compiler/CodeReport.h"
#include "passes/machine/Occupancy.h"
#include "tests/unit/catch.h"

using namespace tk;

TEST_CASE("the log of ptxas is read by function", "[inspect]") {
  auto functions = readCodeReport(R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'gemm_0' for 'sm_90a'
ptxas info    : Function properties for gemm_0
    24 bytes stack frame, 16 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 122 registers, used 1 barriers, 528 bytes smem, 24 bytes cumulative stack size
ptxas info    : Compile time = 21.453 ms
ptxas info    : Compiling entry function 'gemm_1' for 'sm_90a'
ptxas info    : Function properties for gemm_1
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
)");
  REQUIRE(functions.size() == 2);
  CHECK(functions["gemm_0"].registers == 122);
  CHECK(functions["gemm_0"].staticShared == 528);
  CHECK(functions["gemm_0"].stackBytes == 24);
  CHECK(functions["gemm_0"].spillStores == 16);
  CHECK(functions["gemm_0"].spillLoads == 12);
  CHECK(functions["gemm_1"].registers == 8);
  CHECK(functions["gemm_1"].staticShared == 0);
  CHECK(readCodeReport("").empty());
  CHECK(readCodeReport("Used 3 registers").empty());
}

TEST_CASE("occupancy follows from what a block needs", "[inspect]") {
  auto check = [](unsigned arch, BlockNeeds needs, unsigned blocks, std::string_view limiter) {
    Occupancy occupancy = occupancyOf(arch, needs);
    CHECK(occupancy.blocks == blocks);
    CHECK(occupancy.limiter == limiter);
  };
  check(90, {256, 32, 0}, 8, "threads");
  CHECK(occupancyOf(90, {256, 32, 0}).fraction == 1.0);
  check(90, {128, 255, 0}, 2, "registers"); // 8192 registers a warp
  CHECK(occupancyOf(90, {128, 255, 0}).fraction == 8.0 / 64);
  check(90, {96, 168, 0}, 4, "registers"); // 5376 a warp: 12 warps
  check(90, {96, 128, 0}, 5, "registers"); // 16 warps, of which one is left over
  check(90, {32, 80, 0}, 24, "registers"); // blocks of one warp share schedulers
  check(90, {128, 64, 227 << 10}, 1, "shared memory");
  check(90, {128, 64, 228 << 10}, 0, "shared memory"); // the system's part does not fit
  check(80, {256, 64, 48 << 10}, 3, "shared memory");
  check(86, {32, 16, 0}, 16, "blocks");
  CHECK(occupancyOf(12, {128, 32, 0}).blocks == 0);
  CHECK(occupancyOf(90, {}).blocks == 0);
}
