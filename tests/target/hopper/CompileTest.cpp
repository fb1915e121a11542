// The primitives of sm_90a compile, and without the notes of ptxas that mean a slow kernel:
// products serialised (C7510 ... C7520), waits inserted, setmaxnreg ignored (C7504 ...), spills.
#include "tests/unit/catch.h"

#include "GemmText.h"
#include "compiler/codegen/cuda/EmitCuda.h"
#include "runtime/cuda/Nvrtc.h"

#include <regex>

using namespace tk;
using namespace tk::cuda;

/// The compiler's log, or nullopt where there is no NVRTC for sm_90a.
static std::optional<std::string> compileLog(const std::string &text,
                                             const std::vector<std::string> &defines = {}) {
  Expected<const Nvrtc *> nvrtc = Nvrtc::get();
  if (!nvrtc || !(*nvrtc)->supports("sm_90a")) {
    WARN("not run: no NVRTC for sm_90a");
    return std::nullopt;
  }
  NvrtcOptions options;
  options.arch = "sm_90a";
  for (const std::string &define : defines)
    options.extra.push_back("-D" + define);
  for (const DeviceHeader &header : deviceHeaders())
    options.headers.emplace_back(header.name.str(), header.text.str());
  Expected<NvrtcResult> result = (*nvrtc)->compile(text, options);
  return result ? result->log : result.error().what();
}

static void checkFast(const std::optional<std::string> &log) {
  if (!log)
    return;
  INFO(*log);
  CHECK(log->find("error") == std::string::npos);
  CHECK(log->find("C75") == std::string::npos);
  CHECK(log->find("0 bytes spill stores") != std::string::npos);
  CHECK_FALSE(std::regex_search(*log, std::regex("[1-9][0-9]* bytes spill")));
}

TEST_CASE("the warp-specialised product compiles to a fast kernel in each form", "[hopper]") {
  const std::string text = gemmFile;
  checkFast(compileLog(text));
  checkFast(compileLog(text, {"A_TRANSPOSED=1", "B_TRANSPOSED=0"}));
  checkFast(compileLog(text, {"CLUSTER=2", "BN=128", "STAGES=6"}));
}

static std::string productKernel(const std::string &types, const std::string &a,
                                 const std::string &b, const std::string &c, int n) {
  const std::string count = std::to_string(n), name = types + "_" + count;
  const std::string element = "tk::" + a + ", tk::" + b + ", " + count;
  return "TK_WARPGROUP_MMA(" + types + ", " + count + ")\n" +
         "extern \"C\" __global__ void __launch_bounds__(128) k_" + name + "(" + c +
         " *y, tk::u64 x) {\n  " + c + " acc[" + std::to_string(n / 2) + "];\n  tk::" + a +
         " registers[16 / sizeof(tk::" + a + ")] = {};\n" +
         "  tk::warpgroup_fence();\n  tk::warpgroup_mma<" + element + ">(acc, x, x + 1, 0);\n" +
         "  tk::warpgroup_mma<" + element + ">(acc, registers, x + 2, 1);\n" +
         "  tk::warpgroup_mma<" + element +
         ", false, false, 5>(acc, [&](int k) { return x + k; }, " +
         "[&](int k) { return x - k; }, 1);\n" + "  tk::warpgroup_mma<" + element +
         ", false, false, 4>(acc, [&](int) { return registers; }, [&](int k) { return x + k; }, "
         "1);\n" +
         "  tk::warpgroup_commit();\n  tk::warpgroup_wait<0>();\n" + "  tk::for_each<" +
         std::to_string(n / 2) +
         ">([&](int i) { y[i * 128 + tk::thread_index()] = acc[i]; });\n}\n";
}

TEST_CASE("every shape of a warpgroup product compiles", "[hopper]") {
  // The types of f32 have no tk:: name of their own.
  std::string text = "#include \"tk_device.cuh\"\n#include \"hopper.cuh\"\n"
                     "namespace tk { using f32 = float; }\n";
  for (int n = 8; n <= 256; n += 8)
    text += productKernel("bf16", "bf16", "bf16", "float", n);
  for (int n : {8, 40, 256}) {
    text += productKernel("f16", "f16", "f16", "float", n);
    text += productKernel("tf32", "f32", "f32", "float", n);
    text += productKernel("e4m3", "f8e4m3", "f8e4m3", "float", n);
    text += productKernel("e5m2", "f8e5m2", "f8e5m2", "float", n);
    text += productKernel("e4m3_e5m2", "f8e4m3", "f8e5m2", "float", n);
    text += productKernel("e5m2_e4m3", "f8e5m2", "f8e4m3", "float", n);
  }
  for (int n : {8, 24, 32, 256})
    text += productKernel("i8", "i8", "i8", "int", n);
  checkFast(compileLog(text));
}

TEST_CASE("the remaining primitives compile in each form", "[hopper]") {
  std::string text = R"(#include "tk_device.cuh"
#include "hopper.cuh"
extern "C" __global__ void __launch_bounds__(256)
k(const __grid_constant__ tk::TensorMap map, float *y) {
  tk::u8 *const shared = tk::shared_memory();
  auto *const barrier = reinterpret_cast<tk::PhaseBarrier *>(shared + 65536);
  tk::phase_init(barrier, 1);
  tk::phase_init_fence();
  tk::phase_arrive(barrier);
  tk::phase_arrive_before(barrier, tk::lane_index(), y[1]);
  tk::phase_arrive_at(barrier, tk::cluster_rank() ^ 1);
  tk::send_to(reinterpret_cast<float *>(shared), 1.0f, barrier, 1);
  tk::send_to(reinterpret_cast<double *>(shared), 1.0, barrier, 1);
  tk::send_to(reinterpret_cast<float4 *>(shared), make_float4(1, 2, 3, 4), barrier, 1);
  tk::cluster_arrive_relaxed();
  tk::cluster_wait();
  tk::cluster_sync();
  y[0] = tk::get(tk::map_shared_rank(reinterpret_cast<float *>(shared), 1));
  tk::bulk_copy(shared, y, 64, barrier);
  tk::bulk_copy_out(y, shared, 64);
  tk::bulk_add_out(y, reinterpret_cast<float *>(shared), 64);
  tk::bulk_load<2, tk::Keep::first>(shared, &map, {0, 1}, barrier);
  tk::bulk_load_multicast<2, tk::Keep::last>(shared, &map, {0, 1}, barrier, 3);
  tk::bf16 words[8] = {};
  auto *const row = reinterpret_cast<tk::bf16 *>(shared);
  tk::store_matrix<1, false>(row, words);
  tk::store_matrix<1, true>(row, words);
  tk::store_matrix<2, false>(row, words);
  tk::store_matrix<2, true>(row, words);
  tk::store_matrix<4, true>(row, words);
)";
  std::string at = "0";
  for (int rank = 1; rank <= 5; ++rank, at += ", 0") {
    const std::string form = "<" + std::to_string(rank) + ">(", box = "&map, {" + at + "}";
    text += "  tk::bulk_load" + form + "shared, " + box + ", barrier);\n";
    text += "  tk::bulk_load_multicast" + form + "shared, " + box + ", barrier, 3);\n";
    if (rank >= 3)
      for (const char *keep : {"", ", tk::Keep::last"})
        text += "  tk::bulk_load_windows<" + std::to_string(rank) + keep + ">(shared, " + box +
                ", {1" + (rank > 3 ? ", 2" : "") + (rank > 4 ? ", 3" : "") + "}, barrier);\n";
    text += "  tk::bulk_store" + form + box + ", shared);\n";
    text += "  tk::bulk_add" + form + box + ", shared);\n";
  }
  text += "  tk::bulk_commit();\n  tk::bulk_wait_read<1>();\n  tk::bulk_wait<0>();\n}\n";
  checkFast(compileLog(text));
}
