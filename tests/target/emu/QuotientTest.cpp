// Quotients, roots and powers of the device headers, which have no branch, against the host's.
#include "KernelHarness.h"

#include <cmath>
#include <cstring>
#include <random>

using tk::DType;
using tk::test::KernelHarness;

namespace {

constexpr size_t perBlock = 256;

float fromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
uint32_t bitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
bool isSame(float a, float b) { return bitsOf(a) == bitsOf(b) || (std::isnan(a) && std::isnan(b)); }

/// Operands of a call, and what the host computes of each two.
struct Operands {
  std::vector<float> x, y;
  void add(float a, float b) {
    x.push_back(a);
    y.push_back(b);
  }
};

/// Every exponent, with the mantissas at the ends and in between, and both signs.
std::vector<float> ladder() {
  std::vector<float> values;
  for (uint32_t exponent = 0; exponent < 256; exponent += exponent < 3 || exponent > 251 ? 1 : 9)
    for (uint32_t mantissa : {0u, 1u, 0x7fffffu, 0x555555u})
      for (uint32_t sign : {0u, 1u})
        values.push_back(fromBits(sign << 31 | exponent << 23 | mantissa));
  return values;
}

/// Mantissas whose quotient is next to the middle between two numbers: for odd y and a small d,
/// x 2^25 = y m + d with an odd m of 25 bits.
void addNearMiddles(Operands &operands, std::mt19937 &random) {
  for (int i = 0; i < 20000; ++i) {
    const uint32_t y = (random() & 0x7fffff) | 0x800001;
    uint32_t inverse = y; // of y modulo 2^32, by Newton's method
    for (int step = 0; step < 5; ++step)
      inverse *= 2 - y * inverse;
    for (int d : {-3, -1, 1, 3}) {
      const uint32_t m = static_cast<uint32_t>(-d) * inverse & 0x1ffffff;
      if (m >= 0x1000000)
        operands.add(static_cast<float>((uint64_t(y) * m + static_cast<int64_t>(d)) >> 25),
                     static_cast<float>(y));
    }
  }
}

Operands hardQuotients() {
  Operands operands;
  const std::vector<float> values = ladder();
  for (float x : values)
    for (float y : values)
      operands.add(x, y);
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i)
    operands.add(fromBits(random()), fromBits(random()));
  // Results around the least normal number, among them ties.
  for (int i = 0; i < 100000; ++i) {
    const uint32_t exponent = random() % 100, more = 120 + random() % 32;
    const uint32_t cut = i % 2 ? ~0u << random() % 23 : ~0u;
    operands.add(fromBits(exponent << 23 | (random() & 0x7fffff & cut)),
                 fromBits((exponent + more) << 23 | (random() & 0x7fffff & cut)));
  }
  for (int i = 0; i < 50000; ++i)
    operands.add(std::ldexp(static_cast<float>(random() % 64 + 1), int(random() % 24) - 149),
                 std::ldexp(static_cast<float>(random() % 64 + 1), int(random() % 24)));
  addNearMiddles(operands, random);
  return operands;
}

/// y[i] = call(x[i], y[i]) in float v and w, of whole blocks.
std::vector<float> compute(const std::string &call, Operands operands) {
  const size_t blocks = (operands.x.size() + perBlock - 1) / perBlock;
  operands.x.resize(blocks * perBlock, 1.0f);
  operands.y.resize(blocks * perBlock, 1.0f);
  KernelHarness k(R"(extern "C" __global__ void __launch_bounds__(256)
k(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ z) {
  const int i = tk::block_x() * 256 + tk::thread_index();
  const float v = tk::get(&x[i]), w = tk::get(&y[i]);
  tk::put(&z[i], )" +
                  call + R"();
})");
  std::vector<float> z(operands.x.size());
  k.threads = perBlock;
  k.grid = static_cast<int64_t>(blocks);
  k.in(operands.x, DType::f32);
  k.in(operands.y, DType::f32);
  k.out(z, DType::f32);
  REQUIRE(k.run() == "");
  return z;
}

} // namespace

TEST_CASE("quotients without a branch are those of IEEE 754", "[emu]") {
  const Operands operands = hardQuotients();
  const std::vector<float> z = compute("tk::divide(v, w)", operands);
  size_t wrong = 0;
  for (size_t i = 0; i < operands.x.size(); ++i)
    if (!isSame(z[i], operands.x[i] / operands.y[i]) && wrong++ < 10)
      FAIL_CHECK(operands.x[i] << " / " << operands.y[i] << " is " << z[i]);
  CHECK(wrong == 0);
}

TEST_CASE("products with the reciprocal of a scaled divisor are quotients within 2 ulp", "[emu]") {
  const Operands operands = hardQuotients();
  const std::vector<float> z = compute("tk::divide_approx(v, tk::ApproxDivisor(w))", operands);
  size_t wrong = 0;
  for (size_t i = 0; i < operands.x.size(); ++i) {
    const float want = operands.x[i] / operands.y[i];
    const int64_t apart = std::abs(int64_t(bitsOf(z[i])) - int64_t(bitsOf(want)));
    if (!isSame(z[i], want) && apart > 2 && wrong++ < 10)
      FAIL_CHECK(operands.x[i] << " / " << operands.y[i] << " is " << z[i]);
  }
  CHECK(wrong == 0);
}

TEST_CASE("reciprocals and roots without a branch are those of IEEE 754", "[emu]") {
  Operands operands;
  for (float value : ladder())
    operands.add(value, 1.0f);
  std::mt19937 random(2);
  for (int i = 0; i < 200000; ++i)
    operands.add(fromBits(random()), 1.0f);
  for (int i = 0; i < 100000; ++i) // reciprocals that are subnormal
    operands.add(fromBits(0x7e800000 + (random() & 0xffffff)), 1.0f);
  const std::vector<float> inverses = compute("tk::inverse(v)", operands);
  const std::vector<float> roots = compute("tk::sqrt(v)", operands);
  size_t wrong = 0;
  for (size_t i = 0; i < operands.x.size(); ++i) {
    const float x = operands.x[i];
    if (!(isSame(inverses[i], 1.0f / x) && isSame(roots[i], std::sqrt(x))) && wrong++ < 10)
      FAIL_CHECK("of " << x << ": " << inverses[i] << ", " << roots[i]);
  }
  CHECK(wrong == 0);
}

TEST_CASE("powers without a branch are those of f64 within 1 ulp", "[emu]") {
  Operands operands;
  std::vector<float> values = ladder();
  for (float value : {1.0f, -1.0f, 0.5f, 2.0f, 3.0f, -3.0f, 0.99f, 8388607.0f, 16777216.0f})
    values.push_back(value);
  for (float x : values)
    for (float y : values)
      operands.add(x, y);
  // Results of every size, of numbers near 1 as well.
  std::mt19937 random(3);
  std::uniform_real_distribution<double> result(-152, 130), base(-149, 128);
  for (int i = 0; i < 200000; ++i) {
    const auto x = static_cast<float>(std::exp2(base(random) * (i % 2 ? 1 : 1e-4)));
    operands.add(x, static_cast<float>(result(random) / std::log2(static_cast<double>(x))));
  }
  const std::vector<float> z = compute("tk::pow(v, w)", operands);
  size_t wrong = 0;
  for (size_t i = 0; i < operands.x.size(); ++i) {
    const double exact = std::pow(double(operands.x[i]), double(operands.y[i]));
    const auto want = static_cast<float>(exact);
    const int64_t apart = std::abs(int64_t(bitsOf(z[i])) - int64_t(bitsOf(want)));
    if (!isSame(z[i], want) && apart > 1 && wrong++ < 10)
      FAIL_CHECK(operands.x[i] << " ^ " << operands.y[i] << " is " << z[i] << ", not " << want);
  }
  CHECK(wrong == 0);
}
