#include "tests/unit/catch.h"
#include "tests/unit/runtime/SampleSignature.h"

#include <cmath>
#include <limits>

using namespace tk;
using Shapes = std::vector<std::optional<Extents>>;

namespace {

std::string solve_error(const Shapes &shapes, std::vector<std::optional<int64_t>> preset = {}) {
  auto result = solve_dims(test::gemm_signature(), shapes, preset);
  REQUIRE(!result);
  return result.error().message();
}

} // namespace

TEST_CASE("dimensions come from bare occurrences", "[plan]") {
  auto dims =
      solve_dims(test::gemm_signature(), Shapes{Extents{5, 6}, Extents{6, 14}, Extents{5, 7}});
  REQUIRE(dims);
  CHECK(*dims == std::vector<std::optional<int64_t>>{5, 6, 7});
}

TEST_CASE("what nothing determines stays open", "[plan]") {
  auto dims = solve_dims(test::gemm_signature(), Shapes{std::nullopt, std::nullopt, Extents{5, 7}});
  REQUIRE(dims);
  CHECK(*dims == std::vector<std::optional<int64_t>>{5, std::nullopt, 7});
}

TEST_CASE("a literal multiple binds a dimension that stands alone nowhere", "[plan]") {
  auto dims =
      solve_dims(test::gemm_signature(), Shapes{std::nullopt, Extents{6, 14}, std::nullopt});
  REQUIRE(dims);
  CHECK(*dims == std::vector<std::optional<int64_t>>{std::nullopt, 6, 7});
  CHECK(solve_error({std::nullopt, Extents{6, 15}, std::nullopt}) ==
        "argument 'b' (axis 1): expected a multiple of 2 (2 * N), got 15");
}

TEST_CASE("an extent that differs by a literal binds a dimension that stands alone nowhere",
          "[plan]") {
  // kernel k(off: i32[G + 1], d: f32[N - 1])
  Signature signature;
  signature.name = "k";
  signature.dims = {"G", "N"};
  Expr g = Expr::variable(0), n = Expr::variable(1);
  signature.params.push_back(test::tensor("off", DType::i32, {{g + Expr(1), "G + 1"}}, 1));
  signature.params.push_back(test::tensor("d", DType::f32, {{n - Expr(1), "N - 1"}}, 2));
  CHECK(solve_dims(signature, Shapes{Extents{5}, Extents{7}}).value() ==
        std::vector<std::optional<int64_t>>{4, 8});
  auto none = solve_dims(signature, Shapes{Extents{0}, Extents{7}});
  REQUIRE(!none);
  CHECK(none.error().message() == "argument 'off' (axis 0): expected at least 1 (G + 1), got 0");
}

TEST_CASE("extents that scalars give", "[plan]") {
  // kernel k(S: i32, x: f32[S, N], y: f32[S + N])
  Signature signature;
  signature.name = "k";
  signature.dims = {"N"};
  Expr n = Expr::variable(0), s = Expr::variable(1);
  signature.params.push_back(test::scalar("S", DType::i32));
  signature.params.push_back(test::tensor("x", DType::f32, {{s, "S"}, {n, "N"}}, 2));
  signature.params.push_back(test::tensor("y", DType::f32, {{s + n, "S + N"}}, 3));
  std::vector<std::optional<Extents>> shapes = {Extents{4, 3}, Extents{7}};
  CHECK(solve_dims(signature, shapes).value() == std::vector<std::optional<int64_t>>{3});
  auto message = [&](int64_t scalar) {
    std::vector<Scalar> variables = {Scalar(3), Scalar(scalar)};
    Status status = check_scalar_extents(signature, shapes, variables);
    return status ? std::string() : status.error().message();
  };
  CHECK(message(4).empty());
  CHECK(message(5) == "argument 'S' is 5, but argument 'x' has the extent 4 (axis 0)");
  shapes[0].reset();
  CHECK(message(5) == "argument 'y' (axis 0): expected S + N = 8 (S = 5, N = 3), got 7");
  // The number of a scalar is no dimension's.
  std::vector<std::optional<int64_t>> known = {std::nullopt};
  signature.params[2].shape[0] = {s, "S"};
  Facts facts = usual_facts(signature, known);
  REQUIRE(facts.dims.size() == 1);
  CHECK(facts.dims[0].divisor == 4); // of x's rows
  CHECK(facts.small_tensors);
}

TEST_CASE("two sizes of one dimension name both places", "[plan]") {
  auto result = solve_dims(test::gemm_signature(), Shapes{Extents{5, 64}, Extents{32, 14}});
  REQUIRE(!result);
  CHECK(result.error().code() == ErrorCode::shape_mismatch);
  CHECK(result.error().message() ==
        "dimension 'K' is 64 in argument 'a' (axis 1) and 32 in 'b' (axis 0)");
  REQUIRE(result.error().spans().size() == 2);
  CHECK(result.error().spans()[1].line == 3);
  CHECK(solve_error({Extents{5, 64}}, {std::nullopt, 32}) ==
        "dimension 'K' is 32 as given and 64 in 'a' (axis 1)");
}

TEST_CASE("derived extents and ranks are checked", "[plan]") {
  CHECK(solve_error({Extents{5, 6}, Extents{6, 15}, Extents{5, 7}}) ==
        "argument 'b' (axis 1): expected 2 * N = 14 (N = 7), got 15");
  CHECK(solve_error({Extents{5}}) == "argument 'a': expected rank 2 (a: f32[M, K]), got rank 1");
}

TEST_CASE("defaults are computed and rounded to their type", "[plan]") {
  Signature signature = test::gemm_signature();
  std::vector<int64_t> dims = {4, 3, 5};
  std::vector<std::optional<Scalar>> scalars = {std::nullopt};
  auto variables = complete_variables(signature, dims, scalars).value();
  REQUIRE(variables.size() == 4);
  CHECK(variables[3].f == static_cast<double>(static_cast<float>(1.0 / std::sqrt(3.0))));
  scalars[0] = Scalar(2);
  CHECK(complete_variables(signature, dims, scalars).value()[3].f == 2.0);
  signature.params[2].has_default = false;
  auto missing =
      complete_variables(signature, dims, std::vector<std::optional<Scalar>>{std::nullopt});
  REQUIRE(!missing);
  CHECK(missing.error().message() == "missing argument 'scale': expected scale: f32");
  signature.params[2].dtype = DType::i8;
  CHECK(!complete_variables(signature, dims, std::vector<std::optional<Scalar>>{Scalar(128)}));
  CHECK(!complete_variables(signature, dims, std::vector<std::optional<Scalar>>{Scalar(0.5)}));
}

TEST_CASE("constraints say their text and the values", "[plan]") {
  Signature signature = test::gemm_signature();
  std::vector<Scalar> variables = {Scalar(1), Scalar(3), Scalar(1), Scalar(1.0)};
  Status status = run_checks(signature, variables);
  REQUIRE(!status);
  CHECK(status.error().code() == ErrorCode::constraint_failed);
  CHECK(status.error().message() == "constraint 'K % 2 == 0' does not hold with K = 3");
  CHECK(status.error().span().line == 5);
  variables[1] = Scalar(4);
  CHECK(run_checks(signature, variables));
  signature.checks[0].condition = Expr::floor_div(Expr(1), Expr::variable(0) - Expr(1));
  CHECK(run_checks(signature, variables).error().code() == ErrorCode::constraint_failed);
}

TEST_CASE("facts describe a size by its divisor and bound", "[plan]") {
  CHECK(fact_for(0) == DimFact{1 << 20, 0, std::nullopt});
  CHECK(fact_for(1) == DimFact{1, 1, 1});
  CHECK(fact_for(7) == DimFact{1, 8, 7});
  CHECK(fact_for(16) == DimFact{16, 16, 16});
  CHECK(fact_for(17) == DimFact{1, 32, std::nullopt});
  CHECK(fact_for(96) == DimFact{32, 128, std::nullopt});
  CHECK(fact_for(4096) == DimFact{4096, 4096, std::nullopt});
  CHECK(fact_for(130) == DimFact{2, 256, std::nullopt});
  CHECK(fact_for(5000) == DimFact{8, 5120, std::nullopt});
  CHECK(fact_for(5121) == DimFact{1, 5632, std::nullopt});
  CHECK(fact_for(1100) == DimFact{4, 1152, std::nullopt});
  CHECK(fact_for(8191).upper == 8192);
  CHECK(fact_for(std::numeric_limits<int64_t>::max()).upper == -1);
  std::vector<int64_t> dims = {96, 7};
  CHECK(facts_for(dims).key() == "32,<=128;=7");
}

TEST_CASE("what is usual is assumed of sizes that are not known", "[plan]") {
  Signature signature = test::gemm_signature();
  std::vector<std::optional<int64_t>> known(3);
  Facts facts = usual_facts(signature, known);
  // a[M, K] and c[M, N] end in K and N; of M nothing is known, nor of b's 2 * N.
  CHECK(facts.key() == "1;4;4|small");
  known[1] = 6;
  CHECK(usual_facts(signature, known).key() == "1;=6;4|small");
  // Sizes that make a tensor large are believed.
  known = {1 << 20, 1 << 10, std::nullopt};
  CHECK_FALSE(usual_facts(signature, known).small_tensors);
  known = {int64_t{1} << 30, std::nullopt, std::nullopt};
  CHECK_FALSE(usual_facts(signature, known).small_tensors);
  known = {1 << 19, 1 << 10, std::nullopt};
  CHECK(usual_facts(signature, known).small_tensors);
  signature.results.front().dtype = DType::bf16;
  CHECK(usual_facts(signature, {known}).dims[2].divisor == 8);
}

TEST_CASE("signatures and plans survive serialisation, damage does not", "[plan]") {
  Signature signature = test::gemm_signature();
  LaunchPlan plan = test::gemm_plan();
  plan.tensor_maps.push_back({});
  std::string signature_bytes = encode(signature), plan_bytes = encode(plan);
  CHECK(decode_signature(signature_bytes) == signature);
  CHECK(decode_plan(plan_bytes) == plan);
  for (size_t size = 0; size < signature_bytes.size(); ++size)
    CHECK(!decode_signature(std::string_view(signature_bytes).substr(0, size)));
  for (size_t size = 0; size < plan_bytes.size(); ++size)
    CHECK(!decode_plan(std::string_view(plan_bytes).substr(0, size)));
  CHECK(!decode_plan(plan_bytes + "x"));
  // A flipped byte may give another valid value, but never a crash or a plan that reaches outside.
  for (size_t i = 0; i < plan_bytes.size(); ++i) {
    std::string damaged = plan_bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x81);
    if (auto decoded = decode_plan(damaged))
      (void)decoded->str(signature);
    damaged = signature_bytes;
    damaged[i % damaged.size()] = static_cast<char>(damaged[i % damaged.size()] ^ 0x81);
    if (auto decoded = decode_signature(damaged))
      (void)decoded->str();
  }
}

TEST_CASE("a plan that points outside its signature is refused", "[plan]") {
  Signature signature = test::gemm_signature();
  LaunchPlan plan = test::gemm_plan();
  CHECK(well_formed(plan, signature));
  plan.launches[0].args[0].index = 3;
  CHECK(!well_formed(plan, signature));
  plan = test::gemm_plan();
  plan.launches[0].args[3].index = 1;
  CHECK(!well_formed(plan, signature));
  plan = test::gemm_plan();
  plan.launches[0].grid[0] = Expr::variable(9);
  CHECK(!well_formed(plan, signature));
  // A map begins before its tensor by the window that its boxes fill, and by no more.
  plan = test::gemm_plan();
  TensorMap map;
  map.extents = {64, 16, 32};
  map.strides = {64, 64};
  map.box = {64, 16, 1};
  for (uint32_t before : {0u, 16u, 17u}) {
    map.before = before;
    plan.tensor_maps = {map};
    CHECK(well_formed(plan, signature) == (before <= 16));
  }
  // Places are along all axes but the first and the last one.
  map.before = 0;
  map.places = {{-1, 2, Expr::variable(0)}};
  plan.tensor_maps = {map};
  CHECK(well_formed(plan, signature));
  CHECK(decode_plan(encode(plan)) == plan);
  CHECK(plan.str(signature).find(", places (M from -1 by 2)\n") != std::string::npos);
  for (const WindowPlaces &along : {WindowPlaces{0, 0, Expr(4)}, WindowPlaces{0, 9, Expr(4)},
                                    WindowPlaces{0, 1, Expr::variable(9)}}) {
    plan.tensor_maps[0].places = {along};
    CHECK(!well_formed(plan, signature));
  }
  plan.tensor_maps[0].places = {map.places[0], map.places[0]};
  CHECK(!well_formed(plan, signature));
}

TEST_CASE("plans print in terms of the signature", "[plan]") {
  std::string text = test::gemm_plan().str(test::gemm_signature());
  CHECK(text ==
        "scratch0: M * 4 bytes, zeroed, row sums\n"
        "launch gemm_0 grid (ceildiv(M, 64), ceildiv(N, 32), 1) block (128, 1, 1) shared 50000 "
        "args (a, b, c, scratch0, M, N, stride(b, 0), scale)\n");
  LaunchPlan plan = test::gemm_plan();
  plan.scratch.push_back({Expr(4), false, "counter", true});
  CHECK(plan.str(test::gemm_signature()).find("scratch1: 4 bytes, restored, counter\n") !=
        std::string::npos);
  TensorMap map;
  map.extents = {Expr::variable(2), Expr::variable(0)};
  map.strides = {Expr::variable(2)};
  map.box = {64, 16};
  map.swizzle = 3;
  plan.tensor_maps = {map};
  CHECK(plan.str(test::gemm_signature())
            .find("map0: of a, bf16, extents (N, M), strides (N), box "
                  "64x16, swizzle 128B\n") != std::string::npos);
}
