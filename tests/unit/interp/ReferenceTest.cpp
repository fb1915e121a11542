//===- ReferenceTest.cpp - what the exact and the naive program compute ---===//
#include "compiler/CompiledSource.h"
#include "compiler/interp/Tolerance.h"
#include "tests/unit/catch.h"

#include <cmath>

using namespace tk;

namespace {

/// A kernel of f32 vectors of one dimension, and its references.
class Kernel {
public:
  Kernel(const char *text, std::vector<std::vector<float>> values) : values(std::move(values)) {
    CompileOptions options;
    options.file_name = "test.tk";
    options.target = "cpu";
    source = CompiledSource::create(text, options).value();
    for (std::vector<float> &vector : this->values)
      views.emplace_back(vector.data(), DType::f32, Extents{static_cast<int64_t>(vector.size())});
  }

  interp::Reference reference(interp::Mode mode) {
    interp::Reference made = interp::Reference::create(source->kernelOp(0), mode).value();
    const std::vector<int64_t> dims(source->kernelOp(0).getNumDims(), views[0].shape[0]);
    REQUIRE(made.bind(dims, views, std::vector<Scalar>(views.size())));
    return made;
  }
  double exact() { return reference(interp::Mode::F64).element(0, 0).f; }
  double naive() { return reference(interp::Mode::Typed).element(0, 0).f; }

  interp::Comparison compareWith(float ours) {
    interp::Reference truth = reference(interp::Mode::F64), plain = reference(interp::Mode::Typed);
    const TensorView view(&ours, DType::f32, Extents{int64_t{1}});
    return interp::compare(view, 0, truth, plain, DType::f32, views[0].shape[0]);
  }

private:
  std::vector<std::vector<float>> values;
  std::vector<TensorView> views;
  std::shared_ptr<CompiledSource> source;
};

} // namespace

TEST_CASE("arithmetic on constants is that of their type, in the exact program too") {
  Kernel sum("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = (1.0 + 0.01) - x[0] }", {{1.0F}});
  CHECK(sum.exact() == double{1.0F + 0.01F} - 1.0);
  Kernel local("kernel k(x: f32[N]) -> (y: f32[1]) { let c[i in 0..1] = 1.0 + 0.01\n"
               "y[i] = c[i] - x[0] }",
               {{1.0F}});
  CHECK(local.exact() == double{1.0F + 0.01F} - 1.0);
}

TEST_CASE("the exact program does not round to a type of storage, constants no more than others") {
  Kernel stored("kernel k(x: f32[N]) -> (y: f32[1]) { let c[i in 0..1]: bf16 = 1.01\n"
                "y[i] = c[i] * x[0] }",
                {{3.0F}});
  CHECK(stored.exact() == double{1.01F} * 3.0);
  CHECK(stored.naive() == 1.0078125 * 3.0);
}

TEST_CASE("arithmetic that is rounded leaves roundings to types of storage out") {
  Kernel stored("kernel k(x: f32[N]) -> (y: f32[1]) { let c[i in 0..1]: bf16 = x[0] * x[1]\n"
                "y[i] = c[i] }",
                {{1.0F + 0x1p-20F, 1.0F + 0x1p-20F}});
  const double product = (1 + 0x1p-20) * (1 + 0x1p-20);
  CHECK(stored.exact() == product);
  CHECK(stored.reference(interp::Mode::Arithmetic).element(0, 0).f == double{float(product)});
  CHECK(stored.naive() == 1.0);
}

TEST_CASE("a naive product in tf32 cuts its factors off where the product is negated or masked") {
  const std::vector<float> justAboveOne = {1.0F + 0x1p-20F};
  Kernel product("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = sum[j; tf32](x[j] * x[j]) }",
                 {justAboveOne});
  CHECK(product.naive() == 1.0);
  Kernel negated("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = sum[j; tf32](-(-(-(x[j] * x[j])))) }",
                 {justAboveOne});
  CHECK(negated.naive() == -1.0);
  Kernel bounded(
      "kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = sum[j in 0..i + 1; tf32](x[j] * x[j]) }",
      {justAboveOne});
  CHECK(bounded.naive() == 1.0);
}

TEST_CASE("a naive sum of products of 8-bit floats keeps 14 bits, of the largest and of its own") {
  const std::string text = "kernel k(x: f32[N]) -> (y: f32[1]) { let a[j]: f8e4m3 = x[j]\n"
                           "y[i] = sum[j";
  for (const char *modifier : {"", "; fast"}) {
    INFO(modifier);
    auto naiveSquares = [&](std::vector<float> values) {
      Kernel squares((text + modifier + "](a[j] * a[j]) }").c_str(), {std::move(values)});
      return squares.naive();
    };
    CHECK(naiveSquares({16.0F, 0.1875F}) == 256 + 0x1p-5); // of 0x1.2p-5
    CHECK(naiveSquares({16.0F, 16.0F, 0.1875F}) == 512);   // where the sum has an exponent more
  }
}

TEST_CASE("factors that do not vary leave a sum of products what it is") {
  const std::string text = "kernel k(x: f32[N]) -> (y: f32[1]) { let a[j]: f8e4m3 = x[j]\n"
                           "y[i] = sum[j; fast](";
  auto naiveSum = [&](const char *term) {
    Kernel sum((text + term + ") }").c_str(), {{16.0F, 16.0F, 0.1875F}});
    return sum.naive();
  };
  CHECK(naiveSum("(a[j] * a[j]) * 2.0") == 1024);
  CHECK(naiveSum("a[j] * -(f32(i + 1) * a[j])") == -512);
  // Of three that vary no matrix unit takes the product.
  CHECK(naiveSum("(a[j] * a[j]) * f32(j * 0 + 1)") > 512);
}

TEST_CASE("a sum may be rounded as another order of its terms is, where the one written is exact") {
  Kernel sum("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = sum[j](x[j]) }",
             {{1.0F, -1.0F, 3.0F, -3.0F, 0x1p-26F, 0x1p-7F}});
  REQUIRE(sum.naive() == sum.exact());
  // Next to 1 or 3 what is small is lost.
  CHECK(sum.compareWith(static_cast<float>(sum.exact() - 0x1p-26)).ok);
  const interp::Comparison wrong = sum.compareWith(static_cast<float>(sum.exact() - 0x1p-20));
  CHECK(!wrong.ok);
}

TEST_CASE("a sum over two indices may be added up along either first") {
  // Along i the terms cancel; along j they grow to where the last one is rounded.
  Kernel sum("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = sum[j in 0..64, l](x[l]) }",
             {{1.0F + 0x1p-23F, -1.0F, 0x1p-7F}});
  interp::Reference exact = sum.reference(interp::Mode::F64);
  const double truth = exact.element(0, 0).f;
  CHECK(sum.compareWith(static_cast<float>(truth - 0x1p-20)).ok);
}

TEST_CASE("no order and no rounding changes what is exact in all") {
  Kernel sum("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = sum[j](x[j] * x[j]) }",
             {{1, 2, 3, -4, 5, 6, 7}});
  interp::Reference naive = sum.reference(interp::Mode::Typed);
  for (unsigned draw = 0; draw < 6; ++draw) {
    naive.redraw(draw);
    CHECK(naive.element(0, 0).f == 140.0);
  }
  CHECK(!sum.compareWith(140.0001F).ok);
}

TEST_CASE("random roundings are to a neighbour, and the same again for the same draw") {
  Kernel third("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = 1.0 / x[0] }", {{3.0F}});
  interp::Reference naive = third.reference(interp::Mode::Typed);
  bool up = false, down = false;
  for (unsigned draw = 2; draw < 40; ++draw) {
    naive.redraw(draw);
    const double once = naive.element(0, 0).f;
    naive.redraw(draw);
    CHECK(naive.element(0, 0).f == once);
    CHECK(std::fabs(once - 1.0 / 3.0) < 0x1p-25);
    up |= once > 1.0 / 3.0;
    down |= once < 1.0 / 3.0;
  }
  CHECK(up);
  CHECK(down);
}

TEST_CASE("what is outside the tolerance says so, and where a naive program is outside as well") {
  // 2.5 - 2^-26 and 2.5 + 2^-26 are ties in f32, and are rounded to 2 there.
  Kernel steep("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = round(x[0] * 0.5 - x[1]) }",
               {{5.0F, 0x1p-26F}});
  REQUIRE(steep.exact() == 2.0);
  CHECK(steep.compareWith(2.0F).ok);
  Kernel tie("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = round(x[0] * 0.5 + x[1]) }",
             {{5.0F, 0x1p-26F}});
  REQUIRE(tie.exact() == 3.0);
  REQUIRE(tie.naive() == 2.0);
  const interp::Comparison asNaive = tie.compareWith(2.0F);
  CHECK(!asNaive.ok);
  CHECK(asNaive.reason ==
        "outside rtol and atol at [0]: expected 3, got 2; a naive program in the same "
        "types is outside, too, with 2: the program may be ill-conditioned");
  CHECK(
      tie.compareWith(4.0F).reason.starts_with("outside rtol and atol at [0]: expected 3, got 4"));
  CHECK(steep.compareWith(3.0F).reason == "outside rtol and atol at [0]: expected 2, got 3");
  Kernel sum("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = x[0] + x[1] }", {{1.0F, 1.0F}});
  CHECK(sum.compareWith(2.000001F).reason.starts_with("the largest error is 9.5367"));
}

TEST_CASE("a result that is exact before it is rounded is compared bit for bit") {
  CompileOptions options;
  options.file_name = "test.tk";
  options.target = "cpu";
  std::shared_ptr<CompiledSource> source =
      CompiledSource::create(
          "kernel k(x: f64[N]) -> (y: bf16[N], z: bf16[N], m: f16[], d: bf16[N]) {\n"
          "y[i] = x[i]\n"
          "z[i] = if x[i] < 0.0 then abs(x[i]) else -x[i]\n"
          "m = max[i](x[i])\n"
          "d[i] = x[i] * 2.0 }",
          options)
          .value();
  KernelOp kernel = source->kernelOp(0);
  CHECK(interp::isStoredExactly(kernel, 0));
  CHECK(interp::isStoredExactly(kernel, 1));
  CHECK(interp::isStoredExactly(kernel, 2));
  CHECK(!interp::isStoredExactly(kernel, 3));

  double x = 1 + 0x1p-8 + 0x1p-40; // a tie of bf16, and a little more
  const std::vector<TensorView> views{TensorView(&x, DType::f64, Extents{int64_t{1}})};
  interp::Reference exact = interp::Reference::create(kernel, interp::Mode::F64).value();
  interp::Reference naive = interp::Reference::create(kernel, interp::Mode::Typed).value();
  for (interp::Reference *reference : {&exact, &naive})
    REQUIRE(reference->bind({1}, views, {Scalar{}}));
  CHECK(naive.element(0, 0).f == 1.0078125);
  uint16_t once = 0x3f81, twice = 0x3f80;
  auto compare = [&](uint16_t &element, bool isExact) {
    interp::ComparisonOptions how;
    how.isExact = isExact;
    const TensorView view(&element, DType::bf16, Extents{int64_t{1}});
    return interp::compare(view, 0, exact, naive, DType::bf16, 1, how);
  };
  CHECK(compare(once, true).ok);
  CHECK(compare(twice, false).ok); // the tolerance does not tell
  CHECK(compare(twice, true).reason ==
        "not the exact value rounded once at [0]: expected 1.0078125, got 1");
}

TEST_CASE("two results differ at the first element beyond the tolerance") {
  std::vector<float> a = {1, 2, 3, 4}, b = a;
  const Extents shape{int64_t{4}};
  auto differ = [&] {
    return interp::differ(TensorView(a.data(), DType::f32, shape),
                          TensorView(b.data(), DType::f32, shape), DType::f32, 1, false);
  };
  b[1] = std::nextafter(b[1], 3.0f);
  CHECK(!differ().first);
  CHECK(differ().largest > 0);
  b[2] = 3.5f, b[3] = 5;
  CHECK(differ().first == 2);
  CHECK(differ().a == 3);
  CHECK(differ().b == 3.5);
  CHECK(differ().largest == 1);
  a[0] = b[0] = INFINITY; // alike
  CHECK(differ().first == 2);
  b[0] = NAN;
  CHECK(differ().first == 0);
  std::vector<int32_t> m = {7, 8}, n = {7, 9};
  const Extents two{int64_t{2}};
  CHECK(interp::differ(TensorView(m.data(), DType::i32, two), TensorView(n.data(), DType::i32, two),
                       DType::i32, 100, false)
            .first == 1);
}

TEST_CASE(
    "elements that steps load a stride apart end with their tensor, and have its pad outside") {
  const std::vector<float> x = {1, 2, 4, 8}, w = {3, 5, 7, 11};
  Kernel window("kernel k(x: f32[N], w: f32[N]) -> (y: f32[1]) {\n"
                "  y[i] = sum[r in -2..N + 2](pad(x[r], 100.0) * pad(w[3 - r], 10.0)) }",
                {x, w});
  CHECK(window.exact() == 4 * 100 * 10 + 1 * 11 + 2 * 7 + 4 * 5 + 8 * 3);
  Kernel outside("kernel k(x: f32[N]) -> (y: f32[1]) {\n"
                 "  y[i] = sum[r](x[r] + pad(x[i - 1], 0.5)) }",
                 {x});
  CHECK(outside.exact() == 1 + 2 + 4 + 8 + 4 * 0.5);
  Kernel empty("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = sum[r in 2..2](x[r]) + x[0] }", {x});
  CHECK(empty.exact() == 1);
}

TEST_CASE("what rests on an accumulator is computed again for each of several") {
  const std::vector<float> x = {0, 1, 3, 2};
  Kernel softmax("kernel k(x: f32[N]) -> (y: f32[1]) { y[i] = sum[j](softmax[j](x[j]) * x[j]) }",
                 {x});
  double sum = 0, weighted = 0;
  for (double value : x)
    sum += std::exp(value), weighted += std::exp(value) * value;
  CHECK(std::abs(softmax.exact() - weighted / sum) < 1e-15 * 8);
}
