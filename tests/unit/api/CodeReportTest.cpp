// What the GPU compiler reports, and the occupancy that follows from it.
#include "compiler/CodeReport.h"
#include "compiler/MatrixPlaces.h"
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

TEST_CASE("warpgroup products have the lines that PTX gives them", "[inspect]") {
  const StageText ptx{.name = "ptx",
                      .text = ".visible .entry first(\n"
                              "\twgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%f1, %f2}, "
                              "%rd1, %rd2, p, 1, 1, 0, 0;\n"
                              "\twgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%f1, %f2}, "
                              "{%r1, %r2}, %rd2, p, 1, 1, 1;\n"
                              ".visible .entry second(\n"
                              "\twgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%f1}, %rd1, "
                              "%rd2, p, 1, 1, 0, 0;\n",
                      .missing = {},
                      .lines = {{}, {8}, {11}, {}, {4}}};
  StageText sass{
      .name = "sass",
      .text = ".text.first:\n"
              "        /*1270*/  HGMMA.64x128x16.F32.BF16 R88, R180, gdesc[UR16].tnspB, R88 ;\n"
              "        /*1280*/  HGMMA.64x128x16.F32.BF16 R24, gdesc[UR44], RZ, !UPT ;\n"
              "        /*1290*/  FADD R1, R2, R3 ;\n"
              ".text.second:\n"
              "        /*0010*/  HGMMA.64x64x16.F32 R24, gdesc[UR44], RZ, !UPT ;\n"
              "        /*0020*/  HGMMA.64x64x16.F32 R24, gdesc[UR44], R24, gsb0 ;\n",
      .missing = {},
      .lines = {{}, {10}, {10}, {10}, {}, {}, {7}}};
  placeMatrixInstructions(sass, ptx);
  using Lines = std::vector<std::vector<unsigned>>;
  // Of the second function there are more than in PTX, of which all have one line.
  CHECK(sass.lines == Lines{{}, {11}, {8}, {10}, {}, {4}, {4}});
}
