// Views of tensors that are declared `strided`: transposed, repeated, backwards, apart.
#include "compiler/CompiledSource.h"
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

using namespace tk;

TEST_CASE("views of any strides are read as they lie", "[api]") {
  TemporaryCache cache;
#ifdef TK_HAS_EMU
  const std::vector<std::string> targets{"cpu", "emu"};
#else
  const std::vector<std::string> targets{"cpu"};
#endif
  constexpr const char *text =
      "kernel twice(strided x: f32[N, M]) -> (strided y: f32[N, M], s: f32[N]) {\n"
      "  y[i, j] = 2.0 * x[i, j]\n"
      "  s[i] = sum[j](x[i, j])\n}\n";
  constexpr int64_t rows = 6, columns = 40;
  // Transposed, backwards, repeated, apart.
  const std::vector<Extents> views{{columns, 1}, {1, rows}, {-columns, 1}, {columns, -1},
                                   {-1, -rows},  {0, 1},    {1, 0},        {0, 0},
                                   {90, 2},      {3, 20},   {1, 1},        {columns, 2}};
  const std::vector<Extents> results{{columns, 1}, {1, rows}, {90, 2}, {2, 13}};
  for (const std::string &target : targets) {
    CompileOptions options;
    options.target = target;
    Kernel kernel = compile(text, options).kernel("twice");
    for (size_t n = 0; n < views.size(); ++n) {
      const Extents &in = views[n], &out = results[n % results.size()];
      INFO(target << " with strides " << in[0] << ", " << in[1] << " to " << out[0] << ", "
                  << out[1]);
      std::vector<float> x(2000), y(2000, -7), s(rows);
      for (size_t k = 0; k < x.size(); ++k)
        x[k] = static_cast<float>(k % 251);
      const int64_t first =
          std::max<int64_t>(-in[0], 0) * (rows - 1) + std::max<int64_t>(-in[1], 0) * (columns - 1);
      TensorView from(x.data() + first, DType::f32, {rows, columns}, in, Device::cpu());
      TensorView to(y.data(), DType::f32, {rows, columns}, out, Device::cpu());
      kernel({}, {{"x", from}}, {{"y", to}, {"s", TensorView(s.data(), DType::f32, {rows})}});
      size_t wrong = 0, written = 0;
      for (int64_t i = 0; i < rows; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < columns; ++j) {
          const float value = x[static_cast<size_t>(first + i * in[0] + j * in[1])];
          sum += value;
          wrong += y[static_cast<size_t>(i * out[0] + j * out[1])] != 2 * value;
        }
        wrong += s[static_cast<size_t>(i)] != sum;
      }
      for (float value : y)
        written += value != -7;
      CHECK(wrong == 0);
      CHECK(written == rows * columns);
    }
  }
}

TEST_CASE("a result may not overlap itself", "[api]") {
  TemporaryCache cache;
  CompileOptions options;
  options.target = "cpu";
  Kernel kernel = compile("kernel copy(x: f32[N, M]) -> (strided y: f32[N, M]) {\n"
                          "  y[i, j] = x[i, j]\n}\n",
                          options)
                      .kernel("copy");
  std::vector<float> x(12), y(100);
  auto refusal = [&](Extents strides) {
    std::vector<NamedValue> inputs{{"x", TensorView(x.data(), DType::f32, {3, 4})}};
    std::vector<NamedValue> outputs{
        {"y", TensorView(y.data() + 50, DType::f32, {3, 4}, strides, Device::cpu())}};
    Status status = kernel.try_launch({}, inputs, outputs);
    return status ? std::string() : status.error().message();
  };
  CHECK(refusal({4, 1}).empty());
  CHECK(refusal({1, 3}).empty());
  CHECK(refusal({3, 1}).find(
            "expected distinct addresses of all elements, got f32[3, 4] with strides [3, 1]") !=
        std::string::npos);
  CHECK(refusal({0, 1}).find(
            "expected positive strides of a tensor that is written, got stride 0 on axis 0") !=
        std::string::npos);
  CHECK(refusal({4, -1}).find("got stride -1 on axis 1") != std::string::npos);
}

TEST_CASE("a view without a unit stride is noted", "[api]") {
  TemporaryCache cache;
  auto source = CompiledSource::create("kernel copy(strided x: f32[N]) -> (y: f32[N]) {\n"
                                       "  y[i] = x[i]\n}\n",
                                       {})
                    .value();
  Facts facts = facts_for(std::vector<int64_t>{64});
  facts.tensors = {{16, 1}, {16, 1}};
  CHECK(source->explain(0, "sm_90a", facts).value().find("'x' is slow to access") ==
        std::string::npos);
  facts.tensors[0].unit_axis = no_axis;
  CHECK(source->explain(0, "sm_90a", facts).value().find("'x' is slow to access") !=
        std::string::npos);
}
