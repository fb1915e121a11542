// Kernels that report gathers outside their bounds, on every target that runs here.
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

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
