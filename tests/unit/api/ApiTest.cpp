// The C++ interface, end to end on the CPU: compile, look, launch, and what it refuses.
#include "runtime/Kernel.h"
#include "runtime/cuda/Driver.h"
#include "runtime/cuda/Nvrtc.h"
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

#include <fstream>
#include <thread>

using namespace tk;

namespace {

constexpr const char *source = R"(
kernel product(a: f32[M, K], b: f32[K, N], scale: f32 = 1) -> (c: f32[M, N]) {
  c[i, j] = scale * sum[k](a[i, k] * b[k, j])
}
kernel copy(x: f32[N]) -> (y: f32[N]) {
  y[i] = x[i]
}
)";

CompileOptions onCpu() {
  CompileOptions options;
  options.target = "cpu";
  return options;
}

TensorView view(std::vector<float> &data, Extents shape) {
  return TensorView(data.data(), DType::f32, shape);
}

/// The message of a failure with that code; fails the test for any other outcome.
std::string failure(const Status &status, ErrorCode code) {
  REQUIRE_FALSE(bool(status));
  CHECK(status.error().code() == code);
  return status.error().message();
}

struct Product {
  std::vector<float> a{1, 2, 3, 4, 5, 6}, b{1, 0, 0, 1, 1, 1}, c = std::vector<float>(4);
  Kernel kernel = compile(source, onCpu()).kernel("product");
};

} // namespace

TEST_CASE("a file is compiled and launched by names", "[api]") {
  TemporaryCache cache;
  std::string path = cache.directory + "/product.tk";
  std::ofstream(path) << source;
  Module module = compile_file(path, onCpu());
  CHECK(module.kernel_names() == std::vector<std::string>{"product", "copy"});
  CHECK(module.target() == "cpu");
  Product p;
  module.kernel("product")({}, {{"b", view(p.b, {3, 2})}, {"a", view(p.a, {2, 3})}},
                           {{"c", view(p.c, {2, 2})}});
  CHECK(p.c == std::vector<float>{4, 5, 10, 11});
}

TEST_CASE("a bound kernel is launched on other addresses", "[api]") {
  TemporaryCache cache;
  Product p;
  BoundKernel bound =
      p.kernel.bind({view(p.a, {2, 3}), view(p.b, {3, 2}), Scalar(2.0), view(p.c, {2, 2})});
  CHECK(bound.dims().size() == 3);
  std::vector<float> other{0, 0, 1, 0, 0, 2}, result(4);
  bound.launch({}, {other.data(), p.b.data(), result.data()});
  CHECK(result == std::vector<float>{2, 2, 4, 4});
  CHECK_FALSE(bool(bound.try_launch({}, std::vector<void *>{other.data()})));
  std::vector<void *> null{other.data(), nullptr, result.data()};
  CHECK_FALSE(bool(bound.try_launch({}, null)));
}

TEST_CASE("wrong arguments are refused before a launch", "[api]") {
  TemporaryCache cache;
  Product p;
  std::vector<NamedValue> out{{"c", view(p.c, {2, 2})}};
  auto launch = [&](TensorView a, TensorView b) {
    return p.kernel.try_launch({}, std::vector<NamedValue>{{"a", a}, {"b", b}}, out);
  };
  TensorView a = view(p.a, {2, 3}), b = view(p.b, {3, 2});
  REQUIRE(bool(launch(a, b)));

  TensorView wrong = a;
  wrong.dtype = DType::i32;
  CHECK(failure(launch(wrong, b), ErrorCode::invalid_argument).find("f32") != std::string::npos);
  failure(launch(view(p.a, {6}), b), ErrorCode::invalid_argument);
  std::string text = failure(launch(a, view(p.b, {2, 3})), ErrorCode::shape_mismatch);
  CHECK(text.find("'K' is 3 in argument 'a' (axis 1) and 2 in 'b' (axis 0)") != std::string::npos);
  wrong = a;
  wrong.data = nullptr;
  failure(launch(wrong, b), ErrorCode::invalid_argument);
  wrong = a;
  wrong.data = reinterpret_cast<char *>(p.a.data()) + 1;
  CHECK(failure(launch(wrong, b), ErrorCode::invalid_argument).find("aligned") !=
        std::string::npos);
  wrong = a;
  wrong.device = Device::cuda(0);
  failure(launch(wrong, b), ErrorCode::invalid_argument);
  wrong = a;
  wrong.storage_bytes = 8;
  failure(launch(wrong, b), ErrorCode::invalid_argument);
  std::vector<NamedValue> overlapping{{"c", view(p.a, {2, 2})}};
  text = failure(p.kernel.try_launch({}, std::vector<NamedValue>{{"a", a}, {"b", b}}, overlapping),
                 ErrorCode::invalid_argument);
  CHECK(text.find("overlaps") != std::string::npos);
  failure(p.kernel.try_launch({}, std::vector<NamedValue>{{"a", a}}, out),
          ErrorCode::invalid_argument);
  failure(p.kernel.try_launch({}, std::vector<NamedValue>{{"a", a}, {"x", b}}, out),
          ErrorCode::invalid_argument);
}

TEST_CASE("try_ twins return what the others throw", "[api]") {
  TemporaryCache cache;
  Expected<Module> broken =
      try_compile("kernel k(a: f32[N]) -> (c: f32[N]) { c[i] = b[i] }", onCpu());
  REQUIRE_FALSE(bool(broken));
  CHECK(broken.error().code() == ErrorCode::compile_failed);
  CHECK(broken.error().message().find("<memory>:1:") != std::string::npos);
  CHECK_THROWS_AS(compile("kernel", onCpu()), Error);
  CHECK(try_compile_file("/nonexistent.tk", onCpu()).error().code() == ErrorCode::io);
  CompileOptions nowhere;
  nowhere.target = "tpu";
  CHECK(try_compile(source, nowhere).error().code() == ErrorCode::invalid_argument);
  Module module = compile(source, onCpu());
  Expected<Kernel> none = module.try_kernel("nope");
  REQUIRE_FALSE(bool(none));
  CHECK(none.error().message().find("product, copy") != std::string::npos);
  CHECK_FALSE(bool(module.kernel("copy").try_bind(std::vector<Value>{})));
}

TEST_CASE("many threads compile one key once and launch together", "[api]") {
  TemporaryCache cache;
  Kernel kernel = compile(source, onCpu()).kernel("copy");
  std::vector<std::thread> threads;
  std::vector<int> right(8);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::vector<float> x(1000, static_cast<float>(t)), y(1000);
      for (int round = 0; round < 20; ++round) {
        std::fill(y.begin(), y.end(), -1.0f);
        kernel({}, {{"x", view(x, {1000})}}, {{"y", view(y, {1000})}});
        right[static_cast<size_t>(t)] += x == y;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(right == std::vector<int>(8, 20));
  CHECK(cache.entries() == 1);
}

TEST_CASE("the stages of a kernel are text", "[api]") {
  TemporaryCache cache;
  CompileOptions options;
  options.target = "sm_90a";
  Module module = compile(source, options);
  CHECK(module.ir("product", "tk").find("tk.kernel @product") != std::string::npos);
  CHECK(module.ir("product", "gpu").find("tkgpu.") != std::string::npos);
  CHECK(module.cuda("product").find("__global__") != std::string::npos);
  if (cuda::Nvrtc::get())
    CHECK(module.ptx("product").find(".target sm_90a") != std::string::npos);
  else
    CHECK_THROWS_AS(module.ptx("product"), Error);
  // Of a module for the CPU, a GPU's text comes with the target's name.
  Kernel kernel = compile(source, onCpu()).kernel("copy");
  CHECK(kernel.stage("cuda", "sm_80").find("__global__") != std::string::npos);
  CHECK_THROWS_AS(kernel.stage("cuda"), Error);
  CHECK_THROWS_AS(kernel.stage("soup"), Error);
  CHECK_THROWS_AS(module.cuda("nope"), Error);
}

TEST_CASE("resources are those of GPU code", "[api]") {
  TemporaryCache cache;
  CHECK_THROWS_AS(compile(source, onCpu()).resources("copy"), Error);
  if (!cuda::DeviceContext::get(0) || !cuda::Nvrtc::get())
    return;
  CompileOptions options;
  options.target = "gpu";
  std::vector<Resources> launches = compile(source, options).resources("copy");
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].registers > 0);
  CHECK(launches[0].blocks_per_sm > 0);
  CHECK(launches[0].spill_bytes == 0);
}

TEST_CASE("what is prepared and bound by names is launched without compiling", "[api]") {
  TemporaryCache cache;
  Product p;
  std::vector<NamedValue> values{
      {"c", view(p.c, {2, 2})}, {"b", view(p.b, {3, 2})}, {"scale", -1}, {"a", view(p.a, {2, 3})}};
  p.kernel.prepare_named(values);
  uint64_t compiled = cache.entries();
  CHECK(compiled == 1);
  p.kernel.bind_named(values).launch({}, {p.a.data(), p.b.data(), p.c.data()});
  CHECK(p.c == std::vector<float>{-4, -5, -10, -11});
  CHECK(cache.entries() == compiled);
  values.pop_back();
  CHECK_FALSE(p.kernel.try_bind_named(values).has_value());
  CHECK_THROWS_AS(p.kernel.prepare_named(values), Error);
  // Positions: a scalar with a default may be left out.
  TensorView a = view(p.a, {2, 3}), b = view(p.b, {3, 2}), c = view(p.c, {2, 2});
  REQUIRE(p.kernel.try_prepare(std::vector<Value>{a, b, c}).has_value());
  p.kernel.bind(a, b, c).launch({}, {p.a.data(), p.b.data(), p.c.data()});
  CHECK(p.c == std::vector<float>{4, 5, 10, 11});
  CHECK_FALSE(p.kernel.try_prepare(std::vector<Value>{a, c, b}).has_value());
}

TEST_CASE("an error carries its code, its message and its places", "[api]") {
  TemporaryCache cache;
  Product p;
  try {
    p.kernel.bind(view(p.a, {2, 3}), view(p.b, {2, 3}), view(p.c, {2, 3}));
    FAIL("the shapes do not fit");
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::shape_mismatch);
    CHECK(name(error.code()) == "shape_mismatch");
    CHECK(error.span().file == "<memory>");
    CHECK(error.span().line == 2);
    CHECK(std::string(error.what()).find(error.message()) != std::string::npos);
  }
}

TEST_CASE("an empty handle says so", "[api]") {
  const Module module;
  CHECK(
      failure(detail::capture([&] { (void)module.kernel("product"); }), ErrorCode::invalid_argument)
          .find("handle is empty") != std::string::npos);
  CHECK_THROWS_AS(module.target(), Error);
  CHECK_THROWS_AS(Kernel().name(), Error);
  CHECK_THROWS_AS(Kernel().bind(), Error);
  std::vector<void *> none;
  failure(BoundKernel().try_launch({}, none), ErrorCode::invalid_argument);
  failure(Kernel().try_launch({}, {}, {}), ErrorCode::invalid_argument);
}

TEST_CASE("options that name what is not there are refused", "[api]") {
  auto compileWith = [](auto &&change, const char *text) {
    CompileOptions options = onCpu();
    change(options);
    return detail::capture([&] { (void)compile(text, options); });
  };
  auto unknownDim = [](CompileOptions &options) { options.dims["Q"] = 3; };
  CHECK(failure(compileWith(unknownDim, source), ErrorCode::invalid_argument) ==
        "no kernel of '<memory>' has a dimension 'Q'");
  CHECK(failure(compileWith(unknownDim, "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }"),
                ErrorCode::invalid_argument) == "kernel 'k' has no dimension 'Q'; it has N");
  CHECK(failure(compileWith([](CompileOptions &options) { options.dims["K"] = -3; }, source),
                ErrorCode::invalid_argument) == "dimension 'K' cannot be -3");
  CHECK(failure(compileWith([](CompileOptions &o) { o.disabled_passes = {"magic"}; }, source),
                ErrorCode::invalid_argument) == "unknown pass 'magic'");
  CHECK(compileWith([](CompileOptions &o) { o.disabled_passes = {"fusion"}; }, source));
}

TEST_CASE("diagnostics come with the places of the errors", "[api]") {
  CompileOptions options = onCpu();
  options.file_name = "wrong.tk";
  Expected<Module> module =
      try_compile("kernel k(x: f32[N]) -> (y: f32[N]) {\n  y[i] = z[i] + w\n}\n", options);
  REQUIRE_FALSE(bool(module));
  REQUIRE(module.error().spans().size() == 2);
  CHECK(module.error().span() == SourceSpan{"wrong.tk", 2, 10, 2, 11});
  CHECK(module.error().spans()[1].str() == "wrong.tk:2:17");
  CHECK(std::string(module.error().what()).starts_with("wrong.tk:2:10: error[TK0201]"));
}

TEST_CASE("fixed dimensions hold for the text of every target", "[api]") {
  const char *text = "kernel twice(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = 2 * x[i, j] }";
  CompileOptions options;
  options.target = "sm_90a";
  Facts facts;
  facts.dims = {fact_for(64), fact_for(48)};
  const std::string wanted = compile(text, options).kernel("twice").stage("cuda", {}, facts);
  CHECK(wanted != compile(text, options).kernel("twice").stage("cuda"));
  options.dims = {{"N", 64}, {"M", 48}};
  CHECK(compile(text, options).kernel("twice").stage("cuda") == wanted);
  // The module's own target may have no use for them.
  options.target = "cpu";
  CHECK(compile(text, options).kernel("twice").stage("cuda", "sm_90a") == wanted);
}
