// Bundles on the fake driver: what is loaded and launched, and what does not fit.
#include "tests/unit/catch.h"
#include "tests/unit/runtime/FakeGpu.h"
#include "tests/unit/runtime/SampleBundle.h"

#include "runtime/cuda/Driver.h"

using namespace tk;
using test::fake;

namespace {

/// A call of the sample kernel with square sizes, on memory that the fake GPU shares.
struct Call {
  explicit Call(int64_t n, size_t offset = 0) : n(n), base(storage.data() + offset) {}
  Status run(const Module &module) {
    std::vector<NamedValue> values = {
        {"a", view(0, {n, n})}, {"b", view(1, {n, 2 * n})}, {"c", view(3, {n, n})}};
    return module.kernel("gemm").try_launch({}, values, {});
  }
  TensorView view(int64_t part, Extents shape) const {
    return TensorView(base + part * n * n * 4, DType::f32, shape, Device::cuda(0));
  }
  int64_t n;
  std::vector<char> storage = std::vector<char>(static_cast<size_t>(n * n) * 16 + 512);
  char *base;
};

Module load(std::vector<BundleVariant> variants) {
  fake() = {};
  return load_bundle_bytes(encode(test::sample_bundle(std::move(variants))), "gemm.tkb");
}

std::string refusal(const Expected<Module> &module) {
  REQUIRE(!module);
  CHECK(module.error().code() == ErrorCode::unsupported);
  return module.error().message();
}

} // namespace

TEST_CASE("a bundle is launched without a compiler", "[bundle]") {
  Module module = load({test::sample_variant("sm_90a", 1, -1)});
  CHECK(module.kernel_names() == std::vector<std::string>{"gemm"});
  CHECK(module.target() == "sm_90a");
  Call call(64);
  REQUIRE(call.run(module));
  REQUIRE(fake().launches.size() == 1);
  CHECK(fake().launches[0].grid[1] == 2);
  CHECK(fake().modules_loaded == 1);
  // The signature's constraints hold for bundles too.
  CHECK(Call(3).run(module).error().code() == ErrorCode::constraint_failed);
  CHECK(module.kernel("gemm").signature() == test::gemm_signature());
}

TEST_CASE("the first variant that covers a call is launched", "[bundle]") {
  Module module =
      load({test::sample_variant("sm_90a", 64, 4096), test::sample_variant("sm_90a", 2, -1)});
  auto variant_of = [&](int64_t n) {
    Call call(n);
    return module.kernel("gemm")
        .bind({call.view(0, {n, n}), call.view(1, {n, 2 * n}), call.view(3, {n, n})})
        .executable()
        .cubin;
  };
  CHECK(variant_of(128) == "sm_90a % 64");
  CHECK(variant_of(66) == "sm_90a % 2");
}

TEST_CASE("code of the closest architecture is loaded", "[bundle]") {
  Module module = load({test::sample_variant("sm_80", 1, -1), test::sample_variant("sm_90", 1, -1),
                        test::sample_variant("sm_90a", 1, -1)});
  Call call(8);
  CHECK(module.kernel("gemm")
            .bind({call.view(0, {8, 8}), call.view(1, {8, 16}), call.view(3, {8, 8})})
            .executable()
            .cubin == "sm_90a % 1");
}

TEST_CASE("what a bundle has no code for is refused with a reason", "[bundle]") {
  Module module = load({test::sample_variant("sm_90a", 64, 4096)});
  Status status = Call(66).run(module);
  REQUIRE(!status);
  CHECK(status.error().code() == ErrorCode::unsupported);
  CHECK(status.error().message().find(
            "'gemm.tkb' has no code of 'gemm' for M % 2 == 0, M <= 128") == 0);
  CHECK(status.error().message().find("it has code for M % 64 == 0, M <= 4096") !=
        std::string::npos);
  status = Call(64, 4).run(module);
  REQUIRE(!status);
  CHECK(status.error().message().find("addresses aligned to 4") != std::string::npos);
  CHECK(fake().launches.empty());
  CHECK_THROWS_AS(module.ptx("gemm"), Error);
}

TEST_CASE("a bundle for other GPUs is refused when it is loaded", "[bundle]") {
  fake() = {};
  std::string bytes = encode(test::sample_bundle(
      {test::sample_variant("sm_80", 1, -1), test::sample_variant("sm_100a", 1, -1)}));
  CHECK(refusal(try_load_bundle_bytes(bytes, "gemm.tkb")) ==
        "'gemm.tkb' has code of 'gemm' for sm_80, sm_100a; this GPU (Fake GPU) is sm_90a");
  CHECK(refusal(try_load_bundle_bytes(encode(test::sample_bundle({})), "x")) ==
        "'x' has code of 'gemm' for no GPU; this GPU (Fake GPU) is sm_90a");
  CHECK(try_load_bundle("/nowhere.tkb").error().code() == ErrorCode::io);
}
