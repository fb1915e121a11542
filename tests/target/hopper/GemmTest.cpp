// The warp-specialised product: right in each form and with each timing on the emulator, and on the
// GPU; planted faults of its synchronisation are reported at their lines.
#include "tests/target/hopper/OnBoth.h"

#include "GemmText.h"
#include "tk/dtype.h"

#include <algorithm>
#include <random>
#include <sstream>

using tk::DType;
using tk::test::KernelHarness;

namespace {

struct Form {
  int bn = 256, stages = 4, cluster = 1, panels = 2;
  bool aTransposed = false, bTransposed = true;
  std::string timing = "late";
};

std::string gemmText(const Form &form) {
  std::stringstream text;
  text << "#define BN " << form.bn << "\n#define STAGES " << form.stages << "\n#define CLUSTER "
       << form.cluster << "\n#define PANELS " << form.panels << "\n#define A_TRANSPOSED "
       << form.aTransposed << "\n#define B_TRANSPOSED " << form.bTransposed
       << "\n#line 1 \"gemm.cu\"\n"
       << gemmFile;
  return text.str();
}

/// Replaces the one occurrence of `from`.
std::string replaced(std::string text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(from, at + 1) == std::string::npos);
  return text.replace(at, from.size(), to);
}

/// "gemm.cu:N" of the line that holds `part`.
std::string lineOf(const std::string &text, const std::string &part) {
  const size_t begin = text.find("\"gemm.cu\"\n") + 10, at = text.find(part);
  REQUIRE(at != std::string::npos);
  return "gemm.cu:" + std::to_string(std::count(text.begin() + static_cast<long>(begin),
                                                text.begin() + static_cast<long>(at), '\n') +
                                     1);
}

/// Small integers: products are exact.
std::vector<uint16_t> integers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint16_t> values(count);
  for (uint16_t &value : values)
    value = tk::f32_to_bf16(static_cast<float>(static_cast<int>(random() % 7) - 3));
  return values;
}

struct Gemm {
  Gemm(const Form &form, std::string text, int64_t m, int64_t n, int64_t k, int64_t blocks)
      : form(form), m(m), n(n), k(k), a(integers(static_cast<size_t>(m * k), 1)),
        b(integers(static_cast<size_t>(k * n), 2)), c(static_cast<size_t>(m * n)),
        harness(std::move(text)) {
    harness.symbol = "gemm";
    harness.threads = 384;
    harness.grid = blocks;
    harness.cluster = static_cast<unsigned>(form.cluster);
    harness.sharedBytes =
        form.stages * (16384 + form.bn * 128) + 2 * form.panels * 8192 + 16 * form.stages;
    harness.options.timing = tk::emu::Timing::parse(form.timing);
    auto view = [](std::vector<uint16_t> &values, int64_t rows, int64_t columns) {
      return tk::TensorView(values.data(), DType::bf16, tk::Extents{rows, columns});
    };
    harness.inView(form.aTransposed ? view(a, k, m) : view(a, m, k));
    harness.mapped(
        form.aTransposed ? std::vector<uint32_t>{64, 64} : std::vector<uint32_t>{64, 128}, 3);
    harness.inView(form.bTransposed ? view(b, k, n) : view(b, n, k));
    harness.mapped({64, form.bTransposed ? 64u : static_cast<uint32_t>(form.bn / form.cluster)}, 3);
    harness.outView(view(c, m, n));
    harness.mapped({64, 64}, 3);
    harness.integer(static_cast<int>((m + 127) / 128 / form.cluster));
    harness.integer(static_cast<int>((n + form.bn - 1) / form.bn));
    harness.integer(static_cast<int>((k + 63) / 64));
  }
  size_t wrong() const {
    size_t count = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += tk::bf16_to_f32(a[static_cast<size_t>(form.aTransposed ? p * m + i : i * k + p)]) *
                 tk::bf16_to_f32(b[static_cast<size_t>(form.bTransposed ? p * n + j : j * k + p)]);
        count += c[static_cast<size_t>(i * n + j)] != tk::f32_to_bf16(sum);
      }
    return count;
  }
  Form form;
  int64_t m, n, k;
  std::vector<uint16_t> a, b, c;
  KernelHarness harness;
};

void check(const Form &form, int64_t m, int64_t n, int64_t k, int64_t blocks) {
  Gemm gemm(form, gemmText(form), m, n, k, blocks);
  INFO(form.timing << " cluster " << form.cluster << " transposed " << form.aTransposed
                   << form.bTransposed);
  REQUIRE(gemm.harness.run() == "");
  CHECK(gemm.wrong() == 0);
  if (tk::test::runOnGpu(gemm.harness))
    CHECK(gemm.wrong() == 0);
}

/// What the emulator says of a text with small tiles, for a product of 128 x 128 x 320.
std::string report(const std::string &text, const Form &form) {
  Gemm gemm(form, text, 128 * form.cluster, 128, 320, form.cluster);
  std::string result = gemm.harness.run();
  return result.empty() && gemm.wrong() ? "wrong" : result;
}
constexpr Form small() { return {128, 2, 1, 1, false, true, "late"}; }

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("the warp-specialised product is right on the emulator", "[hopper]") {
  SECTION("n-major B, two tiles a block, late") { check({}, 256, 512, 192, 2); }
  SECTION("k-major B, early") { check({128, 3, 1, 2, false, false, "early"}, 128, 256, 128, 1); }
  SECTION("m-major A, at random") {
    check({128, 2, 1, 1, true, false, "random:1"}, 128, 128, 320, 1);
  }
  SECTION("both transposed") { check({128, 2, 1, 1, true, true, "random:2"}, 128, 128, 192, 1); }
  SECTION("sizes that the tiles do not divide") {
    check({128, 2, 1, 1, false, true, "random:3"}, 200, 136, 72, 2);
    check({128, 2, 1, 1, false, false, "late"}, 72, 72, 200, 1);
  }
  SECTION("a cluster with multicast") {
    for (const char *timing : {"late", "early", "random:4"}) {
      check({128, 2, 2, 1, false, true, timing}, 256, 256, 192, 2);
      check({128, 2, 2, 1, false, false, timing}, 256, 128, 192, 2);
    }
  }
}

//===----------------------------------------------------------------------===//
// Planted faults
//===----------------------------------------------------------------------===//

/// Plants a fault and expects a report that begins at the line of `at` and says `what`, whatever
/// the timing.
static void plant(const std::string &from, const std::string &to, const std::string &at,
                  const std::string &what,
                  const std::vector<std::string> &timings = {"late", "early", "random:1"}) {
  for (const std::string &timing : timings) {
    Form form = small();
    form.timing = timing;
    const std::string text = gemmText(form), faulty = replaced(text, from, to);
    const std::string result = report(faulty, form);
    INFO(timing << ": " << result);
    CHECK(has(result, lineOf(faulty, at) + ": kernel 'gemm', block (0, 0, 0): "));
    CHECK(has(result, what));
  }
}

static const char *const product = "tk::warpgroup_mma<", *const store = "tk::bulk_store<";

TEST_CASE("without a fault there is no report", "[hopper]") {
  for (const char *timing : {"late", "early", "random:1", "random:2"}) {
    Form form = small();
    form.timing = timing;
    CHECK(report(gemmText(form), form) == "");
  }
}

TEST_CASE("a missing proxy fence before a bulk store", "[hopper]") {
  plant("tk::fence_async_proxy();", ";", store, "with no fence_async_proxy after it");
}

TEST_CASE("a missing barrier before a bulk store", "[hopper]") {
  plant("tk::fence_async_proxy();\n        tk::named_barrier_sync(1 + group, 128);",
        "tk::fence_async_proxy();\n", store, "with no barrier in between");
}

TEST_CASE("a wait for the wrong phase", "[hopper]") {
  plant("tk::phase_wait(&full[ring.stage], ring.parity);",
        "tk::phase_wait(&full[ring.stage], ring.parity ^ 1);", product,
        "begins a product whose operand A begins to read byte 0 of shared memory", {"late"});
}

TEST_CASE("no wait for a buffer to be free", "[hopper]") {
  plant("tk::phase_wait(&empty[ring.stage], ring.parity ^ 1);\n          tk::phase_expect",
        ";\n          tk::phase_expect", "tk::phase_expect(ready, stage_bytes)",
        "has all arrivals of its phase", {"late"});
}

TEST_CASE("a buffer given back while products read it", "[hopper]") {
  plant("tk::warpgroup_wait<1>();", ";", "tk::bulk_load<2>(a, &a_map, {k, m}, ready);",
        "while it is still being read by what");
}

TEST_CASE("a buffer refilled while a bulk store reads it", "[hopper]") {
  plant("tk::bulk_wait_read<PANELS - 1>();", ";", "tk::store_matrix<4, false>(",
        "while it is still being read by what");
}

TEST_CASE("an operand that nobody loads", "[hopper]") {
  Form form = small();
  std::string text = replaced(gemmText(form), "tk::bulk_load<2>(a, &a_map, {k, m}, ready);", ";");
  std::string result = report(text, form);
  INFO(result);
  CHECK(has(result, "deadlock: "));
  CHECK(has(result, "0 of 1 arrivals and 16384 bytes are missing"));
  text =
      replaced(text, "tk::phase_expect(ready, stage_bytes);", "tk::phase_expect(ready, b_bytes);");
  result = report(text, form);
  INFO(result);
  CHECK(has(result, lineOf(text, product)));
  CHECK(has(result, "operand A begins to read byte 0 of shared memory, which is not written yet"));
}

TEST_CASE("operands read with another swizzle than they were written with", "[hopper]") {
  plant("tk::matrix_descriptor(b, panel_bytes, 1024, tk::Swizzle::bytes128);",
        "tk::matrix_descriptor(b, panel_bytes, 1024, tk::Swizzle::bytes64);", product,
        "operand B ");
}

TEST_CASE("a barrier that expects one arrival too many", "[hopper]") {
  Form form = small();
  const std::string result =
      report(replaced(gemmText(form), "tk::phase_init(&empty[s], consumers * CLUSTER);",
                      "tk::phase_init(&empty[s], consumers * CLUSTER + 1);"),
             form);
  INFO(result);
  CHECK(has(result, "deadlock: threads 0-255 at a phase barrier at gemm.cu:"));
  CHECK(has(result, "thread 256 at a phase barrier at gemm.cu:"));
  CHECK(has(result,
            "for the end of a phase of parity 0 (at byte 81936, in phase 0: 1 of 3 arrivals "
            "and 0 bytes are missing)"));
}

TEST_CASE("barriers whose initialisation is not fenced", "[hopper]") {
  plant("tk::phase_init_fence();", ";", "tk::bulk_load<2>(a, &a_map, {k, m}, ready);",
        "with no phase_init_fence after its initialisation");
}

TEST_CASE("a product with no fence before it", "[hopper]") {
  plant("tk::warpgroup_fence();", ";", product,
        "begins a product with no warpgroup_fence before it");
}

TEST_CASE("a block that leaves while its stores read shared memory", "[hopper]") {
  plant("    if (thread == 0)\n      tk::bulk_wait<0>();", "\n", store,
        "ends while its bulk store still reads shared memory");
}

TEST_CASE("accumulators that are read while products write them are not the sum", "[hopper]") {
  Form form = small();
  CHECK(report(replaced(gemmText(form), "tk::warpgroup_wait<0>();", ";"), form) != "");
}
