// Conversions to narrow floats round to nearest, ties to even: what kernels store has the bits that
// the runtime's conversions give. Errors of half a unit are below the tolerance of every other
// test.
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

#include <cmath>

using namespace tk;

namespace {

constexpr const char *source = R"(
kernel narrow(x: f32[N]) -> (b: bf16[N], h: f16[N], e: f8e4m3[N], g: f8e5m2[N]) {
  b[i] = x[i]
  h[i] = x[i]
  e[i] = x[i]
  g[i] = x[i]
}
)";

/// For values of either sign and every magnitude: a value of the type, what lies half-way to the
/// next one, and the neighbours of that, which are not ties.
std::vector<float> near_ties() {
  std::vector<float> values;
  auto add = [&](float low, float high) {
    float middle = low + (high - low) / 2;
    for (float value : {low, middle, std::nextafterf(middle, low), std::nextafterf(middle, high)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  };
  for (unsigned code = 0; code < 0x7e; ++code)
    add(f8e4m3_to_f32(static_cast<uint8_t>(code)), f8e4m3_to_f32(static_cast<uint8_t>(code + 1)));
  for (unsigned code = 0; code < 0x7b; ++code)
    add(f8e5m2_to_f32(static_cast<uint8_t>(code)), f8e5m2_to_f32(static_cast<uint8_t>(code + 1)));
  // Odd steps, so that odd and even codes of every exponent are met.
  for (unsigned code = 0; code + 1 < 0x7f80; code += 37)
    add(bf16_to_f32(static_cast<uint16_t>(code)), bf16_to_f32(static_cast<uint16_t>(code + 1)));
  for (unsigned code = 0; code + 1 < 0x7c00; code += 37)
    add(f16_to_f32(static_cast<uint16_t>(code)), f16_to_f32(static_cast<uint16_t>(code + 1)));
  return values;
}

template <typename Code>
size_t count_wrong(const std::vector<float> &values, const std::vector<Code> &codes,
                   Code (*convert)(float) noexcept) {
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i)
    wrong += codes[i] != convert(values[i]);
  return wrong;
}

void check_rounding(std::string_view target) {
  TemporaryCache cache;
  CompileOptions options;
  options.target = target;
  std::vector<float> x = near_ties();
  auto n = static_cast<int64_t>(x.size());
  std::vector<uint16_t> b(x.size()), h(x.size());
  std::vector<uint8_t> e(x.size()), g(x.size());
  compile(source, options)
      .kernel("narrow")({}, {{"x", TensorView(x.data(), DType::f32, {n})}},
                        {{"b", TensorView(b.data(), DType::bf16, {n})},
                         {"h", TensorView(h.data(), DType::f16, {n})},
                         {"e", TensorView(e.data(), DType::f8e4m3, {n})},
                         {"g", TensorView(g.data(), DType::f8e5m2, {n})}});
  CHECK(count_wrong(x, b, f32_to_bf16) == 0);
  CHECK(count_wrong(x, h, f32_to_f16) == 0);
  CHECK(count_wrong(x, e, f32_to_f8e4m3) == 0);
  CHECK(count_wrong(x, g, f32_to_f8e5m2) == 0);
}

} // namespace

TEST_CASE("what the CPU stores is rounded to nearest even", "[api]") { check_rounding("cpu"); }

#ifdef TK_HAS_EMU
TEST_CASE("what the emulator stores is rounded to nearest even", "[api]") { check_rounding("emu"); }
#endif
