// Values that no .npy file brings: infinities of f8e5m2, and views of more elements than there is
// memory.
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

#include <cmath>
#include <limits>

using namespace tk;

namespace {

std::vector<std::string> targets() {
#ifdef TK_HAS_EMU
  return {"cpu", "emu", "emu-sm_80"};
#else
  return {"cpu"};
#endif
}

CompileOptions optionsFor(const std::string &target) {
  CompileOptions options;
  options.target = target;
  return options;
}

} // namespace

TEST_CASE("an infinity of f8e5m2 is read as one, and stored as the largest number", "[api]") {
  constexpr const char *source = R"(
kernel read(x: f8e5m2[N]) -> (y: f32[N], z: f8e5m2[N], w: f8e4m3[N], m: f32[]) {
  y[i] = x[i]
  z[i] = x[i]
  w[i] = x[i]
  m = max[i](x[i])
}
)";
  TemporaryCache cache;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const std::string &target : targets()) {
    INFO(target);
    std::vector<uint8_t> x{0x7c, 0xfc, 0x7b, 0x3c, 0x00}, z(5), w(5);
    std::vector<float> y(5);
    float most = 0;
    compile(source, optionsFor(target))
        .kernel("read")({}, {{"x", TensorView(x.data(), DType::f8e5m2, {5})}},
                        {{"y", TensorView(y.data(), DType::f32, {5})},
                         {"z", TensorView(z.data(), DType::f8e5m2, {5})},
                         {"w", TensorView(w.data(), DType::f8e4m3, {5})},
                         {"m", TensorView(&most, DType::f32, Extents{})}});
    CHECK(y == std::vector<float>{infinity, -infinity, 57344, 1, 0});
    CHECK(z == std::vector<uint8_t>{0x7b, 0xfb, 0x7b, 0x3c, 0x00});
    CHECK(w == std::vector<uint8_t>{0x7e, 0xfe, 0x7e, 0x38, 0x00});
    CHECK(most == infinity);
  }
}

TEST_CASE("more places than an i32 has are refused, in a view of one row", "[api]") {
  constexpr const char *source = R"(
kernel place(strided x: i8[R, C]) -> (i: i32[]) { i = argmax[r, c](x[r, c]) }
)";
  TemporaryCache cache;
  for (const std::string &target : targets()) {
    INFO(target);
    std::vector<int8_t> x(4096);
    x[4000] = 1;
    int32_t place = -1;
    const std::vector<NamedValue> outputs{{"i", TensorView(&place, DType::i32, Extents{})}};
    auto launch = [&](int64_t rows) {
      const TensorView view(x.data(), DType::i8, {rows, 4096}, {0, 1}, Device::cpu());
      const std::vector<NamedValue> inputs{{"x", view}};
      Kernel kernel = compile(source, optionsFor(target)).kernel("place");
      return kernel.try_launch({}, inputs, outputs);
    };
    const Status far = launch(600000);
    REQUIRE(!far);
    CHECK(far.error().message().find("the positions of argmax[r, c](…) fit i32") !=
          std::string::npos);
    CHECK(place == -1);
    REQUIRE(launch(3));
    CHECK(place == 4000);
  }
}
