// Schedule blocks: which one shapes a variant, what a schedule file replaces, what is refused.
#include "compiler/CompiledSource.h"
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

using namespace tk;

namespace {

const std::string product = R"(
kernel product(a: bf16[M, K], b: bf16[K, N], s: i32 = 1) -> (c: f32[M, N]) {
  c[i, j] = sum[k](a[i, k] * b[k, j])
}
)";

const std::string blocks = R"(
schedule product for sm_80 { tile i = 16 }
schedule product for sm_90a when M >= 1024 and s > 0 { tile i = 32 }
schedule product when N / (M - 7) > 3 { tile i = 64 }
schedule product { tile i = 128 }
)";

std::shared_ptr<CompiledSource> compiled(const std::string &text,
                                         const std::string &schedule = {}) {
  CompileOptions options;
  options.file_name = "product.tk";
  options.schedule_name = "best.tk";
  if (!schedule.empty())
    options.schedule = schedule;
  return CompiledSource::create(text, options).value();
}

/// Facts as a launch finds them.
Facts factsOf(const CompiledSource &source, int64_t m, int64_t n, int64_t s = 1) {
  Facts facts = facts_for(std::vector<int64_t>{m, 256, n});
  std::vector<Scalar> variables{Scalar(m), Scalar(int64_t{256}), Scalar(n), Scalar(s)};
  facts.schedules = schedule_conditions(source.signatures()[0], variables);
  return facts;
}

/// The tile of `i` in the schedule that a variant gets.
std::string tileOf(CompiledSource &source, const std::string &target, const Facts &facts) {
  std::string text = source.stage_text(0, "tiled", target, facts).value();
  size_t at = text.find("#tkgpu.schedule<tile = [");
  REQUIRE(at != std::string::npos);
  return text.substr(at + 24, text.find(',', at) - at - 24);
}

} // namespace

TEST_CASE("the first block whose target and condition fit applies", "[schedule]") {
  TemporaryCache cache;
  auto source = compiled(product + blocks);
  auto tile = [&](const std::string &target, int64_t m, int64_t n, int64_t s = 1) {
    return tileOf(*source, target, factsOf(*source, m, n, s));
  };
  CHECK(tile("sm_80", 4096, 256) == "16");
  CHECK(tile("sm_90a", 4096, 256) == "32");
  CHECK(tile("sm_90", 4096, 256) == "128");
  CHECK(tile("emu", 4096, 256) == "32");
  CHECK(tile("emu-sm_80", 4096, 256) == "16");
  CHECK(tile("sm_90a", 4096, 256, 0) == "128");
  CHECK(tile("sm_90a", 512, 256) == "128");
  CHECK(tile("sm_90a", 512, 4096) == "64");
  // A condition that cannot be evaluated does not hold.
  CHECK(tile("sm_90a", 7, 4096) == "128");
  // Without sizes, the block without a condition.
  CHECK(tileOf(*source, "sm_90a", {}) == "128");
}

TEST_CASE("variants differ by the block that applies, and by nothing else", "[schedule]") {
  auto source = compiled(product + blocks);
  auto key = [&](const std::string &target, int64_t m, int64_t n, int64_t s = 1) {
    return source->relevant_facts(0, target, factsOf(*source, m, n, s)).key();
  };
  CHECK(key("sm_90a", 4096, 256) != key("sm_90a", 4096, 256, 0));
  // On sm_80 one block always comes first, and the CPU has no use for any.
  CHECK(key("sm_80", 4096, 256) == key("sm_80", 4096, 256, 0));
  CHECK(key("cpu", 4096, 256) == key("cpu", 4096, 256, 0));
  Facts once = source->relevant_facts(0, "sm_90a", factsOf(*source, 4096, 256));
  CHECK(source->relevant_facts(0, "sm_90a", once) == once);
}

TEST_CASE("the blocks of a schedule file replace the program's", "[schedule]") {
  TemporaryCache cache;
  auto source = compiled(product + blocks, "schedule product for sm_90a { tile i = 16, j = 32 }");
  CHECK(tileOf(*source, "sm_90a", factsOf(*source, 4096, 256)) == "16");
  CHECK(source->signatures()[0].schedules.empty());
}

TEST_CASE("what is wrong in a schedule file is said of that file", "[schedule]") {
  CompileOptions options;
  options.schedule_name = "best.tk";
  options.schedule = "schedule product { tile z = 16 }\nschedule other { stages = 2 }";
  auto failed = CompiledSource::create(product, options);
  REQUIRE_FALSE(bool(failed));
  CHECK(failed.error().code() == ErrorCode::compile_failed);
  CHECK(failed.error().message().find("best.tk:1:25: error[TK0503]") != std::string::npos);
  CHECK(failed.error().message().find("best.tk:2:10: error[TK0209]") != std::string::npos);
}

TEST_CASE("a schedule that does not fit is the program's error, at its place", "[schedule]") {
  TemporaryCache cache;
  const std::vector<int64_t> large{4096, 4096, 4096};
  auto message = [&](const std::string &block) {
    auto text = compiled(product, block)->stage_text(0, "gpu", "sm_90a", facts_for(large));
    REQUIRE_FALSE(bool(text));
    CHECK(text.error().code() == ErrorCode::compile_failed);
    return text.error().message();
  };
  std::string shared =
      message("schedule product {\n  tile i = 256, j = 128, k = 128\n  stages = 8\n}");
  CHECK(shared.find("best.tk:3:3: error[TK0507]: the schedule needs ") != std::string::npos);
  CHECK(shared.find(" B of shared memory, sm_90 has 232448 B") != std::string::npos);
  CHECK(shared.find("help: try ") != std::string::npos);
  std::string threads = message("schedule product { tile i = 1024, j = 1024 }");
  CHECK(threads.find("best.tk:1:20: error[TK0507]: a tile of 1048576 outputs") !=
        std::string::npos);
  const std::string exact = "kernel product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) {\n"
                            "  c[i, j] = sum[k; exact](a[i, k] * b[k, j])\n}\n";
  auto factor = compiled(exact, "schedule product { tile i = 256, j = 64, k = 256 }")
                    ->stage_text(0, "gpu", "sm_90a", facts_for(large));
  REQUIRE_FALSE(bool(factor));
  CHECK(factor.error().message().find(
            "best.tk:1:20: error[TK0507]: a product's factor of 256 x 256 "
            "elements leaves more than 1024 to each of 256 threads") != std::string::npos);
}

TEST_CASE("keys without effect are explained", "[schedule]") {
  const std::string copy = "kernel copy(x: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i]\n}\n";
  auto source = compiled(copy, "schedule copy {\n  stages = 3\n  raster = columns\n}");
  std::string text = source->explain(0, "sm_90a", {}).value();
  CHECK(text.find("best.tk:2: stages = 3\n  declined: 'stages' has no effect") !=
        std::string::npos);
  CHECK(text.find("best.tk:3: raster = columns\n  declined: 'raster' has no effect") !=
        std::string::npos);
  CHECK(source->explain(0, "cpu", {}).value().find("schedule blocks have no effect on the CPU") !=
        std::string::npos);
  auto elsewhere = compiled(copy + "schedule copy for sm_80 { vector = 4 }");
  CHECK(elsewhere->explain(0, "sm_90a", {}).value().find("no schedule block is for this target") !=
        std::string::npos);
}

TEST_CASE("launches choose by their own sizes", "[schedule]") {
  TemporaryCache cache;
  CompileOptions options;
  options.target = "cpu";
  Kernel kernel = compile(product + blocks, options).kernel("product");
  CHECK(kernel.signature().schedules.size() == 2);
  CHECK(kernel.signature().schedules[0].text == "M >= 1024 and s > 0");
}
