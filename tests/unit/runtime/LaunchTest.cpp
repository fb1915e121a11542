// The public interface on the CPU, and what it says of wrong arguments.
#include "tests/unit/catch.h"
#include "tests/unit/runtime/FakeBackend.h"

#include "tk/tk.h"
#include "tk/tk_c.h"

#include <cmath>
#include <cstring>

using namespace tk;
using test::for_target;

namespace {

struct Gemm {
  Gemm() : kernel(compile("gemm", for_target("cpu")).kernel("gemm")) {}
  test::FakeBackend backend;
  Kernel kernel;
  std::vector<float> a = {1, 2, 3, 4}, b = {1, 0, 9, 9, 0, 1, 9, 9}, c = {-1, -1, -1, -1};
  TensorView va{a.data(), DType::f32, {2, 2}};
  TensorView vb{b.data(), DType::f32, {2, 4}};
  TensorView vc{c.data(), DType::f32, {2, 2}};

  Status run() { return run({{"a", va}, {"b", vb}}); }
  Status run(std::vector<NamedValue> inputs) {
    std::vector<NamedValue> outputs = {{"c", vc}};
    return kernel.try_launch({}, inputs, outputs);
  }
  std::string error() {
    Status status = run();
    REQUIRE(!status);
    return status.error().message();
  }
};

} // namespace

TEST_CASE_METHOD(Gemm, "a kernel runs, with defaults, by name and bound", "[launch]") {
  kernel({}, {{"a", va}, {"b", vb}, {"scale", 2.0}}, {{"c", vc}});
  CHECK(c == std::vector<float>{2, 4, 6, 8});
  REQUIRE(run());
  CHECK(c[3] == Approx(4 / std::sqrt(2.0)));
  BoundKernel bound = kernel.bind(va, vb, 10.0, vc);
  bound.launch({}, {a.data(), b.data(), c.data()});
  CHECK(c == std::vector<float>{10, 20, 30, 40});
  CHECK(bound.dims() == std::vector<int64_t>{2, 2, 2});
  CHECK(bound.scratch_bytes() == 256);
  // The scalar with a default may be left out.
  kernel.bind(va, vb, vc).launch({}, {a.data(), b.data(), c.data()});
  CHECK(c[0] == Approx(1 / std::sqrt(2.0)));
}

TEST_CASE_METHOD(Gemm, "small tensors get a variant of their own", "[launch]") {
  kernel.bind(va, vb, vc);
  CHECK(backend.last->small_tensors);
  CHECK(backend.last->compilations == 1);
  // A stride alone can need more than 32 bits.
  vb.strides = {int64_t{1} << 30, 1};
  kernel.bind(va, vb, vc);
  CHECK_FALSE(backend.last->small_tensors);
  CHECK(backend.last->compilations == 2);
}

TEST_CASE_METHOD(Gemm, "large buffers between launches are found after compiling", "[launch]") {
  backend.last->adjust = [](LaunchPlan &plan) {
    plan.scratch.push_back({Expr(small_tensor_limit), false, "more"});
  };
  kernel.bind(va, vb, vc);
  CHECK_FALSE(backend.last->small_tensors);
  CHECK(backend.last->compilations == 2);
}

TEST_CASE_METHOD(Gemm, "strides of strided tensors arrive", "[launch]") {
  std::vector<float> wide(20, 5);
  wide[0] = wide[11] = 1, wide[1] = wide[10] = 0;
  vb = TensorView(wide.data(), DType::f32, {2, 4}, {10, 1}, Device::cpu());
  kernel({}, {{"a", va}, {"b", vb}, {"scale", 1}}, {{"c", vc}});
  CHECK(c == a);
}

TEST_CASE_METHOD(Gemm, "wrong arguments are refused before anything runs", "[launch]") {
  SECTION("type") {
    vb.dtype = DType::bf16;
    CHECK(error() == "argument 2 'b': expected f32[K, 2 * N] on cpu, got bf16[2, 4] on cpu");
  }
  SECTION("rank") {
    va.shape = va.strides = {4};
    va.strides = {1};
    CHECK(error() == "argument 1 'a': expected f32[M, K] on cpu, got f32[4] on cpu");
  }
  SECTION("device") {
    vc.device = Device::cuda(1);
    CHECK(error() == "result 1 'c': expected f32[M, N] on cpu, got f32[2, 2] on cuda:1");
  }
  SECTION("dense") {
    va.strides = {1, 2};
    CHECK(error() ==
          "argument 1 'a': expected a dense row-major tensor (or declare it 'strided'), got "
          "f32[2, 2] with strides [1, 2]");
  }
  SECTION("dimension") {
    vb = TensorView(b.data(), DType::f32, {1, 4});
    CHECK(error() == "dimension 'K' is 2 in argument 'a' (axis 1) and 1 in 'b' (axis 0)");
  }
  SECTION("constraint") {
    va = TensorView(a.data(), DType::f32, {2, 1});
    vb = TensorView(b.data(), DType::f32, {1, 4});
    CHECK(error() == "constraint 'K % 2 == 0' does not hold with K = 1");
  }
  SECTION("storage") {
    vb.storage_bytes = 28;
    CHECK(error() == "argument 2 'b': view f32[2, 4] needs bytes 0 to 32 of a storage of 28");
  }
  SECTION("overlap") {
    vc.data = a.data() + 3;
    CHECK(error() == "result 1 'c' overlaps argument 1 'a'");
  }
  SECTION("null") {
    va.data = nullptr;
    CHECK(error() == "argument 1 'a': expected an address, got null");
  }
  SECTION("alignment") {
    va.data = reinterpret_cast<char *>(a.data()) + 2;
    CHECK(error() == "argument 1 'a': expected an address aligned to 4 bytes");
  }
  SECTION("size") {
    int64_t big = int64_t{1} << 62;
    va.shape = {big, big};
    CHECK(error() == "argument 1 'a': tensor size overflows 64 bits");
  }
  SECTION("names") {
    CHECK(run({{"a", va}, {"x", vb}}).error().message() ==
          "kernel 'gemm' has no argument 'x'; it has a, b, scale, c");
    CHECK(run({{"a", va}}).error().message() == "argument 2 'b': missing: expected f32[K, 2 * N]");
    CHECK(run({{"a", va}, {"a", va}, {"b", vb}}).error().message() ==
          "argument 1 'a': given twice");
    CHECK(run({{"a", va}, {"b", 3}}).error().message() ==
          "argument 2 'b': expected a tensor f32[K, 2 * N], got a scalar");
    CHECK(run({{"a", va}, {"b", vb}, {"scale", va}}).error().message() ==
          "argument 3 'scale': expected a scalar, got a tensor f32[2, 2]");
  }
  CHECK(c == std::vector<float>{-1, -1, -1, -1});
}

TEST_CASE_METHOD(Gemm, "an empty tensor is fine, even without an address", "[launch]") {
  va = TensorView(nullptr, DType::f32, {0, 2});
  vc = TensorView(nullptr, DType::f32, {0, 2});
  CHECK(run());
}

TEST_CASE_METHOD(Gemm, "a bound kernel checks what may change", "[launch]") {
  BoundKernel bound = kernel.bind(va, vb, 1.0, vc);
  CHECK(bound.try_launch({}, std::vector<void *>{a.data(), b.data()}).error().message() ==
        "kernel 'gemm' takes 3 addresses, got 2");
  CHECK(!bound.try_launch({}, std::vector<void *>{a.data(), nullptr, c.data()}));
  CHECK(!bound.try_launch(
      {}, std::vector<void *>{reinterpret_cast<char *>(a.data()) + 1, b.data(), c.data()}));
}

TEST_CASE_METHOD(Gemm, "sizes alike in the facts share one compilation", "[launch]") {
  std::vector<std::thread> threads;
  std::vector<float> results(16 * 4);
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      TensorView out(results.data() + 4 * t, DType::f32, {2, 2});
      kernel({}, {{"a", va}, {"b", vb}, {"scale", 1}}, {{"c", out}});
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(backend.last->compilations == 1);
  CHECK(results[63] == 4);
  std::vector<float> more(6 * 2, 1), out(6 * 2);
  kernel({}, {{"a", TensorView(more.data(), DType::f32, {6, 2})}, {"b", vb}},
         {{"c", TensorView(out.data(), DType::f32, {6, 2})}});
  CHECK(backend.last->compilations == 1); // 6 and 2: the same divisor, and no bound is kept
}

TEST_CASE_METHOD(Gemm, "a failed compilation is reported and tried again", "[launch]") {
  backend.last->fail_next = true;
  CHECK(run().error().code() == ErrorCode::nvrtc_failed);
  CHECK(run());
}

TEST_CASE("modules report their kernels and refuse what they lack", "[launch]") {
  test::FakeBackend backend;
  Module module = compile("gemm", for_target("cpu"));
  CHECK(module.kernel_names() == std::vector<std::string>{"gemm"});
  CHECK(module.target() == "cpu");
  CHECK(module.try_kernel("gem").error().message() == "no kernel 'gem' in '<memory>'; it has gemm");
  CHECK(module.ir("gemm", "tk") == "tk for cpu [1;1;1]");
  CHECK(try_compile("?", for_target("cpu")).error().code() == ErrorCode::compile_failed);
  CHECK(try_compile("gemm", for_target("mips")).error().message() ==
        "expected target cpu, gpu, emu, emu-sm_NN or sm_NN, got 'mips'");
  CHECK(try_compile("gemm", for_target("emu-mips")).error().code() == ErrorCode::invalid_argument);
  CHECK(compile("gemm", for_target("emu-sm_80")).target() == "emu-sm_80");
  CHECK(try_compile_file("/nowhere.tk").error().code() == ErrorCode::io);
}

TEST_CASE("without a compiler, compiling is an error", "[launch]") {
  CHECK(try_compile("gemm", for_target("cpu")).error().code() == ErrorCode::unsupported);
}

TEST_CASE("dimensions fixed at compile time are enforced", "[launch]") {
  test::FakeBackend backend;
  CompileOptions options = for_target("cpu");
  options.dims["M"] = 3;
  Kernel kernel = compile("gemm", options).kernel("gemm");
  float data[16] = {};
  TensorView t(data, DType::f32, {2, 2}), b(data + 4, DType::f32, {2, 4}),
      c(data + 12, DType::f32, {2, 2});
  std::vector<Value> values = {t, b, 1.0, c};
  for (Value &value : values)
    if (auto *scalar = std::get_if<Scalar>(&value))
      CHECK(scalar->is_float);
  CHECK(kernel.try_bind(values).error().message() == "dimension 'M' was compiled as 3, got 2");
}

TEST_CASE("the C interface drives all of it", "[launch]") {
  test::FakeBackend backend;
  tk_module *module = nullptr;
  CHECK(tk_compile("bad", 3, "bad.tk", "cpu", &module) == TK_COMPILE_FAILED);
  CHECK(std::string(tk_last_error()) == "no kernel in it");
  CHECK(std::string(tk_last_error_place()) == "x.tk:1:1");
  REQUIRE(tk_compile("gemm", 4, nullptr, "cpu", &module) == TK_OK);
  CHECK(tk_module_num_kernels(module) == 1);
  tk_kernel *kernel = nullptr;
  CHECK(tk_module_kernel(module, "none", &kernel) == TK_INVALID_ARGUMENT);
  REQUIRE(tk_module_kernel(module, nullptr, &kernel) == TK_OK);
  tk_module_free(module);
  CHECK(std::string(tk_kernel_signature(kernel)) ==
        "gemm(a: f32[M, K], strided b: f32[K, 2 * N], scale: f32 = rsqrt(K)) -> (c: f32[M, N])");
  tk_argument argument;
  REQUIRE(tk_kernel_argument(kernel, 1, &argument) == TK_OK);
  CHECK(argument.is_strided == 1);
  CHECK(argument.rank == 2);
  CHECK(std::string(tk_kernel_extent(kernel, 1, 1)) == "2 * N");
  CHECK(tk_kernel_extent(kernel, 1, 2) == nullptr);
  CHECK(tk_kernel_argument(kernel, 4, &argument) == TK_INVALID_ARGUMENT);

  float a[] = {1, 2, 3, 4}, b[] = {1, 0, 9, 9, 0, 1, 9, 9}, c[4] = {};
  int64_t square[] = {2, 2}, wide[] = {2, 4}, dims[3], shape[8];
  auto tensor = [](void *data, const int64_t *shape) {
    return tk_value{TK_TENSOR, TK_F32, 2, -1, data, shape, nullptr, -1, 0, 0};
  };
  tk_value values[] = {tensor(a, square), tensor(b, wide), {}, {}};
  REQUIRE(tk_kernel_solve(kernel, values, 4, dims) == TK_OK);
  CHECK(dims[2] == 2); // b has 2 * N columns, and the result, which has N alone, is not given
  int32_t rank = 0;
  REQUIRE(tk_kernel_shape(kernel, 3, dims, shape, &rank) == TK_OK);
  CHECK(rank == 2);
  CHECK(shape[1] == 2);
  CHECK(tk_kernel_launch(kernel, nullptr, values, 4) == TK_INVALID_ARGUMENT);
  values[3] = tensor(c, shape);
  values[2].kind = TK_REAL;
  values[2].real = 1.0;
  REQUIRE(tk_kernel_launch(kernel, nullptr, values, 4) == TK_OK);
  CHECK(std::memcmp(a, c, sizeof a) == 0);
  values[0].dtype = 99;
  CHECK(tk_kernel_prepare(kernel, values, 4) == TK_INVALID_ARGUMENT);
  char *text = nullptr;
  size_t size = 0;
  REQUIRE(tk_kernel_text(kernel, "ptx", "sm_90a", &text, &size) == TK_OK);
  CHECK(std::string(text, size) == "ptx for sm_90a [1;1;1]");
  tk_text_free(text);
  tk_kernel_free(kernel);
}
