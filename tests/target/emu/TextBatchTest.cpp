// Texts that are compiled together: their kernels run as if each had been compiled alone.
#include "compiler/codegen/emu/TextBatch.h"

#include "KernelHarness.h"

using tk::DType;
using tk::emu::TextBatch;
using tk::test::KernelHarness;

namespace {

/// y = x `operation` 3, compiled with what else is in the batch.
struct Small {
  std::vector<float> x = {1, 2, 4}, y = {0, 0, 0};
  KernelHarness kernel;

  Small(const std::string &symbol, const std::string &operation, std::shared_ptr<TextBatch> batch)
      : kernel("extern \"C\" __global__ void __launch_bounds__(32)\n" + symbol +
               "(const float *__restrict__ x, float *y) {\n  const int i = tk::thread_index();\n"
               "  if (i < 3)\n    tk::put(&y[i], tk::get(&x[i]) " +
               operation + " 3.0f);\n}") {
    kernel.symbol = symbol;
    kernel.options.batch = std::move(batch);
    kernel.in(x, DType::f32);
    kernel.out(y, DType::f32);
  }
};

using Values = std::vector<float>;

} // namespace

TEST_CASE("kernels of one batch are compiled by the first that runs", "[emu]") {
  auto batch = std::make_shared<TextBatch>();
  REQUIRE(batch->add("#include \"tk_device.cuh\"\nextern \"C\" int other() { return 7; }\n",
                     {"other"}));
  Small sum("sum", "+", batch);
  CHECK(sum.kernel.run() == "");
  CHECK(sum.y == Values{4, 5, 7});
  auto code = batch->code();
  REQUIRE(code);
  CHECK((*code)->symbol("other") != nullptr);
  CHECK((*code)->symbol("tk_emu_call_sum") != nullptr);

  // What comes later is compiled alone.
  Small product("product", "*", batch);
  CHECK(product.kernel.run() == "");
  CHECK(product.y == Values{3, 6, 12});
  CHECK((*code)->symbol("tk_emu_call_product") == nullptr);
  CHECK(sum.kernel.again() == "");
  CHECK(sum.y == Values{4, 5, 7});
}

TEST_CASE("a batch takes no second kernel of a name", "[emu]") {
  TextBatch batch;
  CHECK(batch.add("", {"a", "b"}));
  CHECK_FALSE(batch.add("", {"c", "b"}));
  CHECK(batch.add("", {"c"}));

  auto shared = std::make_shared<TextBatch>();
  REQUIRE(shared->add("extern \"C\" int sum() { return 7; }\n", {"sum"}));
  Small sum("sum", "+", shared);
  CHECK(sum.kernel.run() == "");
  CHECK(sum.y == Values{4, 5, 7});
}

TEST_CASE("what the host compiler says about a batch is an error of the run", "[emu]") {
  auto batch = std::make_shared<TextBatch>();
  REQUIRE(batch->add("this is no text of a kernel\n", {"other"}));
  Small sum("sum", "+", batch);
  const std::string said = sum.kernel.run();
  INFO(said);
  CHECK(said.find("error") != std::string::npos);
  CHECK(sum.y == Values{0, 0, 0});
}
