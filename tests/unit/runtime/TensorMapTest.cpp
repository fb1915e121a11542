// Tensor maps and clusters of a launch plan, on the fake driver.
#include "tests/unit/runtime/FakeGpu.h"

using namespace tk;
using test::fake;

namespace {

/// The sample kernel with `a` [M, K] and the strided `b` [K, 2 N] handed over as tensor maps.
struct MappedGemm : test::GpuGemm {
  MappedGemm() {
    Expr m = Expr::variable(0), k = Expr::variable(1), n = Expr::variable(2);
    TensorMap a;
    a.dtype = DType::f32;
    a.extents = {k, m};
    a.strides = {k};
    a.box = {32, 64};
    a.swizzle = 3;
    TensorMap b = a;
    b.index = 1;
    b.extents = {Expr(2) * n, k};
    b.stride_axes = {0};
    b.box = {4, 8};
    b.swizzle = 0;
    b.fill_nan = true;
    maps = {a, b};
    backend.last->adjust = [this](LaunchPlan &plan) {
      plan.tensor_maps = maps;
      plan.launches[0].args[0] = {ArgKind::tensor_map, 0, 0, DType::i64, {}};
      plan.launches[0].args[1] = {ArgKind::tensor_map, 1, 0, DType::i64, {}};
      for (int axis = 0; axis < 3; ++axis)
        plan.launches[0].cluster[axis] = cluster[axis];
      plan.launches[0].resident = resident;
      if (grid)
        plan.launches[0].grid[0] = Expr(*grid);
      plan.launches.front().overlapped = waits;
      for (bool overlapped : following) {
        plan.launches.push_back(plan.launches[0]);
        plan.launches.back().overlapped = overlapped;
        plan.launches.back().grid[0] = 1;
      }
    };
  }
  Status run(int64_t m, int64_t k, int64_t n, int64_t stride, size_t shift = 0) {
    char *at = memory + shift;
    TensorView b(at + 4096, DType::f32, {k, 2 * n}, {stride, 1}, Device::cuda(0));
    std::vector<NamedValue> in = {{"a", TensorView(at, DType::f32, {m, k}, Device::cuda(0))},
                                  {"b", b}};
    std::vector<NamedValue> out = {
        {"c", TensorView(at + 8192, DType::f32, {m, n}, Device::cuda(0))}};
    return kernel->try_launch(stream, in, out);
  }
  std::vector<TensorMap> maps;
  unsigned cluster[3] = {1, 1, 1};
  std::optional<int64_t> grid;
  bool resident = false;
  bool waits = false;          ///< the first launch is overlapped
  std::vector<bool> following; ///< more launches: which are overlapped
  alignas(256) char memory[16384] = {};
};

} // namespace

TEST_CASE_METHOD(MappedGemm, "a tensor map is encoded from sizes and strides of the call",
                 "[driver]") {
  REQUIRE(run(6, 8, 10, 24));
  REQUIRE(fake().maps.size() == 2);
  const auto &a = fake().maps[0], &b = fake().maps[1];
  CHECK(a.type == 7);
  CHECK(a.swizzle == 3);
  CHECK(a.fill == 0);
  CHECK(a.extents == std::vector<uint64_t>{8, 6});
  CHECK(a.strides == std::vector<uint64_t>{32});
  CHECK(a.box == std::vector<uint32_t>{32, 64});
  CHECK(b.extents == std::vector<uint64_t>{20, 8});
  CHECK(b.strides == std::vector<uint64_t>{96});
  CHECK(b.fill == 1);
  REQUIRE(fake().launches.size() == 1);
  CHECK(fake().launches[0].arguments[0] == reinterpret_cast<uint64_t>(memory));
  CHECK(fake().launches[0].arguments[1] == reinterpret_cast<uint64_t>(memory + 4096));
}

TEST_CASE_METHOD(MappedGemm, "a map is encoded again only where its tensor moves", "[driver]") {
  REQUIRE(run(6, 8, 10, 24));
  REQUIRE(run(6, 8, 10, 24));
  CHECK(fake().maps.size() == 2);
  REQUIRE(run(6, 8, 10, 24, 256));
  CHECK(fake().maps.size() == 4);
  CHECK(fake().launches[2].arguments[0] == reinterpret_cast<uint64_t>(memory + 256));
  REQUIRE(run(6, 8, 10, 24, 256));
  CHECK(fake().maps.size() == 4);
}

TEST_CASE_METHOD(MappedGemm, "places of windows are encoded by the corners of their box",
                 "[driver]") {
  // a[M, K] as M images of K / 4 places of 4 elements, each read from 2 before on, 2 apart.
  Expr m = Expr::variable(0), k = Expr::variable(1);
  TensorMap &a = maps[0];
  a.extents = {Expr(4), Expr(64), m};
  a.strides = {Expr(4), k};
  a.box = {4, 8, 1};
  a.swizzle = 0;
  a.places = {{-2, 2, k}};
  REQUIRE(run(6, 8, 10, 24));
  const auto &map = fake().maps[0];
  CHECK(map.extents == std::vector<uint64_t>{4, 64, 6});
  CHECK(map.box == std::vector<uint32_t>{4, 8});
  CHECK(map.lower == std::vector<int>{-2});
  CHECK(map.upper == std::vector<int>{-2 + 2 * 7 + 1 - 64});
  CHECK(map.steps == std::vector<uint32_t>{1, 2, 1});
  // Corners have 16 bits of one axis.
  Status far = run(1, 20000, 2, 24);
  REQUIRE(!far);
  CHECK(far.error().code() == ErrorCode::overflow);
  CHECK(far.error().message() ==
        "tensor 'a': windows reach 39933 elements beyond an axis, and bulk "
        "copies take from -32768 to 32767");
  fake().encode_result = 1;
  Status refused = run(6, 8, 12, 24);
  REQUIRE(!refused);
  CHECK(refused.error().message().find("cuTensorMapEncodeIm2col") == 0);
}

TEST_CASE_METHOD(MappedGemm, "what a tensor map cannot hold is refused by name", "[driver]") {
  Status narrow = run(6, 6, 10, 24);
  REQUIRE(!narrow);
  CHECK(narrow.error().code() == ErrorCode::invalid_argument);
  CHECK(narrow.error().message() == "tensor 'a': bulk copies need positive strides that are "
                                    "multiples of 16 bytes and below 2^40, got 24 bytes");
  // The stride along an axis of one element is not used.
  CHECK(run(1, 6, 2, 24));
  // Nor is any where there is no element.
  CHECK(run(6, 0, 10, 24));
  Status shifted = run(6, 8, 10, 24, 4);
  REQUIRE(!shifted);
  CHECK(shifted.error().code() == ErrorCode::invalid_argument);
  fake().encode_result = 1;
  Status refused = run(6, 8, 12, 24);
  REQUIRE(!refused);
  CHECK(refused.error().code() == ErrorCode::launch_failed);
  CHECK(refused.error().message().find("cuTensorMapEncodeTiled") == 0);
  // What failed is tried again.
  fake().encode_result = 0;
  CHECK(run(6, 8, 12, 24));
}

TEST_CASE_METHOD(MappedGemm, "clusters are asked for, and have to divide the grid", "[driver]") {
  cluster[0] = 2;
  grid = 6;
  REQUIRE(run(6, 8, 10, 24));
  CHECK(fake().launches[0].num_attributes == 1);
  CHECK(fake().launches[0].cluster[0] == 2);
  CHECK(fake().launches[0].cluster[1] == 1);
}

TEST_CASE_METHOD(MappedGemm, "a launch overlaps those of its plan, not what came before",
                 "[driver]") {
  following = {true, false};
  REQUIRE(run(6, 8, 10, 24));
  REQUIRE(fake().launches.size() == 3);
  CHECK_FALSE(fake().launches[0].overlapped);
  CHECK(fake().launches[1].overlapped);
  CHECK_FALSE(fake().launches[2].overlapped);
  // The first launch of all has no blocks: the next one follows somebody else's.
  grid = 0;
  REQUIRE(run(6, 8, 12, 24));
  REQUIRE(fake().launches.size() == 5);
  CHECK_FALSE(fake().launches[3].overlapped);
}

TEST_CASE_METHOD(MappedGemm, "all launches of a plan overlap whose first one waits itself",
                 "[driver]") {
  waits = true;
  following = {true};
  REQUIRE(run(6, 8, 10, 24));
  REQUIRE(fake().launches.size() == 2);
  CHECK(fake().launches[0].overlapped);
  CHECK(fake().launches[1].overlapped);
  grid = 0;
  REQUIRE(run(6, 8, 12, 24));
  REQUIRE(fake().launches.size() == 3);
  CHECK(fake().launches[2].overlapped);
}

TEST_CASE_METHOD(MappedGemm, "a grid is cut to what runs at once where blocks go round",
                 "[driver]") {
  resident = true; // each call has a variant of its own
  grid = 12;
  fake().active_blocks = 5; // on the fake device's one multiprocessor
  REQUIRE(run(6, 8, 10, 24));
  CHECK(fake().launches[0].grid[0] == 5);
  cluster[0] = 2;
  fake().active_clusters = 3;
  REQUIRE(run(6, 8, 12, 24));
  CHECK(fake().launches[1].grid[0] == 6);
  // Nothing says that it does not run at all: the launch itself will.
  fake().active_clusters = 0;
  REQUIRE(run(6, 8, 8, 24));
  CHECK(fake().launches[2].grid[0] == 2);
  grid = 4;
  fake().active_clusters = 9;
  REQUIRE(run(6, 8, 16, 24));
  CHECK(fake().launches[3].grid[0] == 4);
}

TEST_CASE_METHOD(MappedGemm, "a grid of broken clusters is refused", "[driver]") {
  cluster[0] = 4;
  grid = 6;
  Status status = run(6, 8, 10, 24);
  REQUIRE(!status);
  CHECK(status.error().code() == ErrorCode::internal);
  CHECK(status.error().message() ==
        "'gemm_0' has a grid of 6 blocks in dimension 0, not whole clusters of 4");
  CHECK(fake().launches.empty());
}

TEST_CASE_METHOD(MappedGemm, "maps that the machine does not have are malformed", "[driver]") {
  const Signature signature = test::gemm_signature();
  auto fits = [&] {
    LaunchPlan plan = test::gemm_plan();
    plan.tensor_maps = maps;
    return well_formed(plan, signature);
  };
  CHECK(fits());
  SECTION("a row of a box that is not in units of 16 bytes") { maps[0].box[0] = 30; }
  SECTION("a row wider than the span of its swizzle") { maps[0].box[0] = 64; }
  SECTION("a side above 256") { maps[0].box[1] = 257; }
  SECTION("an empty side") { maps[0].box[1] = 0; }
  SECTION("a tensor that there is not") { maps[1].index = 3; }
  SECTION("an axis that there is not") { maps[1].stride_axes[0] = 2; }
  CHECK(!fits());
}
