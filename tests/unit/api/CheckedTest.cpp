// Kernels that report gathers outside their bounds, on every target that runs here.
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

#include <limits>

using namespace tk;

namespace {

constexpr const char *source = R"(
kernel take(table: f32[V, D], ids: i32[B], inout count: f32[B]) -> (y: f32[B, D]) {
  let row[b] = ids[b] + 1
  y[b, d] = table[row[b] - 1, d]
  count[b] = count[b] + 1.0
}
)";

std::vector<std::string> targets() {
#ifdef TK_HAS_EMU
  return {"cpu", "emu"};
#else
  return {"cpu"};
#endif
}

constexpr int64_t numIds = 256;

struct Take {
  std::vector<float> table = std::vector<float>(5 * 4, 2.5F), count = std::vector<float>(numIds),
                     y = std::vector<float>(numIds * 4);
  std::vector<int32_t> ids = std::vector<int32_t>(numIds, 4);

  Status launch(const Kernel &kernel) {
    const std::vector<NamedValue> inputs{{"table", TensorView(table.data(), DType::f32, {5, 4})},
                                         {"ids", TensorView(ids.data(), DType::i32, {numIds})},
                                         {"count", TensorView(count.data(), DType::f32, {numIds})}};
    const std::vector<NamedValue> outputs{{"y", TensorView(y.data(), DType::f32, {numIds, 4})}};
    return kernel.try_launch({}, inputs, outputs);
  }
};

} // namespace

TEST_CASE("a checked kernel names the index that is outside", "[checked]") {
  TemporaryCache cache;
  for (const std::string &target : targets()) {
    INFO(target);
    CompileOptions options;
    options.file_name = "take.tk";
    options.target = target;
    options.checked = true;
    Kernel kernel = compile(source, options).kernel("take");
    // What checks it is no part of what a caller sees.
    CHECK(kernel.signature().results.size() == 1);
    Take take;
    REQUIRE(take.launch(kernel));
    CHECK(take.y == std::vector<float>(numIds * 4, 2.5F));
    CHECK(take.count[0] == 1);
    for (int32_t wrong : {5, -1, 1 << 30}) {
      take.ids[1] = wrong;
      Status status = take.launch(kernel);
      REQUIRE_FALSE(bool(status));
      CHECK(status.error().code() == ErrorCode::index_out_of_bounds);
      CHECK(status.error().message() == "index 'row[b] - 1' of table[row[b] - 1, d] (axis 0) is " +
                                            std::to_string(wrong) + ", expected 0 to 4");
      CHECK(status.error().span().str() == "take.tk:4:19");
      // Nothing was launched.
      CHECK(take.count[0] == 1);
    }
  }
}

TEST_CASE("the fast path is checked, too", "[checked]") {
  TemporaryCache cache;
  CompileOptions options;
  options.target = "cpu";
  options.checked = true;
  Kernel kernel = compile(source, options).kernel("take");
  Take take;
  BoundKernel bound = kernel.bind(TensorView(take.table.data(), DType::f32, {5, 4}),
                                  TensorView(take.ids.data(), DType::i32, {numIds}),
                                  TensorView(take.count.data(), DType::f32, {numIds}),
                                  TensorView(take.y.data(), DType::f32, {numIds, 4}));
  std::vector<void *> pointers{take.table.data(), take.ids.data(), take.count.data(),
                               take.y.data()};
  CHECK(bound.try_launch({}, pointers));
  take.ids[2] = 7;
  CHECK(bound.try_launch({}, pointers).error().code() == ErrorCode::index_out_of_bounds);
}

TEST_CASE("without checks an index outside reads 0", "[checked]") {
  TemporaryCache cache;
  for (const std::string &target : targets()) {
    INFO(target);
    CompileOptions options;
    options.target = target;
    Kernel kernel = compile(source, options).kernel("take");
    Take take;
    take.ids[1] = 5;
    REQUIRE(take.launch(kernel));
    CHECK(take.y[4] == 0);
    CHECK(take.y[8] == 2.5F);
  }
}

namespace {

constexpr const char *asserting = R"(
kernel scale(x: f32[N, M], id: i32[M], mask: bool[M], n: i32) -> (y: f32[N, M]) {
  let p[i, j] = softmax[j](x[i, j])
  assert x[i, j] >= 0.0
  assert sum[j](p[i, j]) > 0.0 and n < N
  assert not mask[j]
  assert not any[i](x[i, id[j]] > 100)
  assert all[i in 1..N](x[i - 1, 0] <= 50)
  assert (n >= -3)
  y[i, j] = p[i, j] * 2
  assert y[i, j] + 0.0 <= 2.5
}
)";

struct Scale {
  std::vector<float> x = std::vector<float>(5 * 6, 1.0F), y = std::vector<float>(5 * 6);
  std::vector<int32_t> id = std::vector<int32_t>(6, 0);
  std::vector<uint8_t> mask = std::vector<uint8_t>(6, 0);
  int32_t n = 2;

  /// The message of the error, or nothing.
  std::string launch(const Kernel &kernel) {
    const std::vector<NamedValue> inputs{{"x", TensorView(x.data(), DType::f32, {5, 6})},
                                         {"id", TensorView(id.data(), DType::i32, {6})},
                                         {"mask", TensorView(mask.data(), DType::boolean, {6})},
                                         {"n", Scalar(int64_t{n})}};
    const std::vector<NamedValue> outputs{{"y", TensorView(y.data(), DType::f32, {5, 6})}};
    Status status = kernel.try_launch({}, inputs, outputs);
    if (status)
      return "";
    CHECK(status.error().code() == ErrorCode::constraint_failed);
    return status.error().span().str() + ": " + status.error().message();
  }
};

} // namespace

TEST_CASE("a checked kernel names the assertion that fails, where, and with which values",
          "[checked]") {
  TemporaryCache cache;
  std::vector<std::string> all = targets();
  if (all.size() > 1)
    all.push_back("emu-sm_80");
  for (const std::string &target : all) {
    INFO(target);
    CompileOptions options;
    options.file_name = "s.tk";
    options.target = target;
    options.checked = true;
    Kernel kernel = compile(asserting, options).kernel("scale");
    CHECK(kernel.signature().results.size() == 1);
    Scale run;
    CHECK(run.launch(kernel).empty());
    run.x[2 * 6 + 3] = -0.5F;
    CHECK(run.launch(kernel) == "s.tk:4:3: assert x[i, j] >= 0.0 fails at i = 2, j = 3: x[i, j] is "
                                "-0.5");
    run.x[4 * 6] = std::numeric_limits<float>::quiet_NaN();
    run.x[2 * 6 + 3] = 1;
    CHECK(run.launch(kernel) == "s.tk:4:3: assert x[i, j] >= 0.0 fails at i = 4, j = 0: x[i, j] is "
                                "nan");
    run = Scale();
    run.n = 7;
    CHECK(run.launch(kernel) ==
          "s.tk:5:3: assert sum[j](p[i, j]) > 0.0 and n < N fails at i = 0: sum[j](p[i, j]) is 1, "
          "n is 7, N is 5 (the first of 5)");
    run.n = -4;
    CHECK(run.launch(kernel) == "s.tk:9:3: assert (n >= -3) fails: n is -4");
    run = Scale();
    run.mask[4] = run.mask[5] = 1;
    CHECK(run.launch(kernel) ==
          "s.tk:6:3: assert not mask[j] fails at j = 4: mask[j] is true (the first of 2)");
    run = Scale();
    run.x[1 * 6] = 200;
    run.id[5] = 1;
    CHECK(run.launch(kernel) == "s.tk:7:3: assert not any[i](x[i, id[j]] > 100) fails at j = 0: "
                                "any[i](x[i, id[j]] > 100) is true (the first of 5)");
    run.x[1 * 6] = 60;
    CHECK(run.launch(kernel) == "s.tk:8:3: assert all[i in 1..N](x[i - 1, 0] <= 50) fails: "
                                "all[i in 1..N](x[i - 1, 0] <= 50) is false");
  }
}

TEST_CASE("assertions leave the kernel as it is", "[checked]") {
  TemporaryCache cache;
  std::string without = asserting;
  for (size_t at; (at = without.find("  assert")) != std::string::npos;)
    without.erase(at, without.find('\n', at) - at);
  for (const char *target : {"sm_90a", "sm_80"}) {
    CompileOptions options;
    options.file_name = "s.tk";
    options.target = target;
    auto textOf = [&](const std::string &program) {
      return compile(program, options).kernel("scale").stage("cuda");
    };
    CHECK(textOf(asserting) == textOf(without));
  }
}

TEST_CASE("without checks an assertion is not looked at", "[checked]") {
  TemporaryCache cache;
  CompileOptions options;
  options.target = "cpu";
  Kernel kernel = compile(asserting, options).kernel("scale");
  Scale run;
  run.x[0] = -1;
  CHECK(run.launch(kernel).empty());
}
