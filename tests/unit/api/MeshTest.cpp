// Sharded kernels on ranks that are threads: shares, faults, and the errors that name a rank; and
// the bounds of transfers, which ranks that are GPUs follow.
#include "compiler/plan/StepBounds.h"
#include "runtime/mesh/StepBounds.h"
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

#include <thread>

using namespace tk;

namespace {

constexpr const char *source = R"(
mesh (tp)
kernel sums(x: f32[R, C @ tp]) -> (y: f32[R]) {
  y[r] = sum[c](x[r, c])
}
kernel wired(x: f32[R, C @ tp]) -> (y: f32[R]) {
  y[r] = sum[c; wire = bf16](x[r, c])
}
kernel halves(x: f32[R, C]) -> (y: f32[R @ tp]) {
  y[r] = max[c](x[r, c])
}
)";

CompileOptions onCpu() {
  CompileOptions options;
  options.target = "cpu";
  return options;
}

/// Runs `work` on a thread for each rank, and returns what each says.
template <typename Work> std::vector<Status> onEach(const std::vector<Mesh> &meshes, Work work) {
  std::vector<Status> all(meshes.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < meshes.size(); ++rank)
    threads.emplace_back([&, rank] { all[rank] = work(rank); });
  for (std::thread &thread : threads)
    thread.join();
  return all;
}

/// One rank's call of `sums` with rows of `columns` elements, all `value`.
Status callSums(const Kernel &kernel, const Mesh &mesh, int64_t columns, float value,
                std::vector<float> &y) {
  std::vector<float> x(y.size() * static_cast<size_t>(columns), value);
  const auto rows = static_cast<int64_t>(y.size());
  const std::vector<NamedValue> inputs{{"x", TensorView(x.data(), DType::f32, {rows, columns})}};
  const std::vector<NamedValue> outputs{{"y", TensorView(y.data(), DType::f32, {rows})}};
  return MeshKernel(kernel, mesh).try_launch({}, inputs, outputs);
}

} // namespace

TEST_CASE("every rank has the sum over all shares", "[mesh]") {
  TemporaryCache cache;
  const Kernel kernel = compile(source, onCpu()).kernel("sums");
  for (int64_t ranks : {1, 2, 3, 4, 8}) {
    const std::vector<Mesh> meshes = Mesh::threads({{"tp", ranks}});
    std::vector<std::vector<float>> y(meshes.size(), std::vector<float>(3));
    for (const Status &status : onEach(meshes, [&](size_t rank) {
           return callSums(kernel, meshes[rank], 5, static_cast<float>(rank + 1), y[rank]);
         }))
      CHECK(status);
    for (const std::vector<float> &own : y)
      CHECK(own == std::vector<float>(3, static_cast<float>(5 * ranks * (ranks + 1) / 2)));
  }
}

TEST_CASE("partial sums are rounded to the type in which they travel", "[mesh]") {
  TemporaryCache cache;
  const Module module = compile(source, onCpu());
  const std::vector<Mesh> meshes = Mesh::threads({{"tp", 2}});
  const float value = 1.0F + 0x1p-8F; // 1 in bf16
  for (auto [name, expected] : {std::pair("sums", 2 * value), std::pair("wired", 2.0F)}) {
    const Kernel kernel = module.kernel(name);
    std::vector<std::vector<float>> y(2, std::vector<float>(3));
    for (const Status &status : onEach(meshes, [&](size_t rank) {
           return callSums(kernel, meshes[rank], 1, value, y[rank]);
         }))
      CHECK(status);
    CHECK(y[0] == std::vector<float>(3, expected));
    CHECK(y[1] == y[0]);
  }
  std::vector<float> x(3, value), y(3);
  const std::vector<NamedValue> inputs{{"x", TensorView(x.data(), DType::f32, {3, 1})}};
  const std::vector<NamedValue> outputs{{"y", TensorView(y.data(), DType::f32, {3})}};
  REQUIRE(module.kernel("wired").try_launch({}, inputs, outputs));
  CHECK(y[0] == value); // on one rank nothing travels
}

TEST_CASE("ranks with other sizes are a mismatch that names one", "[mesh]") {
  TemporaryCache cache;
  const Kernel kernel = compile(source, onCpu()).kernel("sums");
  const std::vector<Mesh> meshes = Mesh::threads({{"tp", 2}});
  std::vector<std::vector<float>> y(2, std::vector<float>(3));
  const std::vector<Status> all = onEach(meshes, [&](size_t rank) {
    return callSums(kernel, meshes[rank], rank == 0 ? 5 : 6, 1.0F, y[rank]);
  });
  REQUIRE(!all[0]);
  REQUIRE(!all[1]);
  const bool first = all[0].error().code() == ErrorCode::mesh_mismatch;
  const Error &error = all[first ? 0 : 1].error();
  CHECK(error.code() == ErrorCode::mesh_mismatch);
  CHECK(error.message().find(first ? "rank 1 of the mesh" : "rank 0 of the mesh") !=
        std::string::npos);
  CHECK(error.message().find("'sums'") != std::string::npos);
}

TEST_CASE("another kernel on a rank is a mismatch", "[mesh]") {
  TemporaryCache cache;
  const Module module = compile(source, onCpu());
  const std::vector<Mesh> meshes = Mesh::threads({{"tp", 2}});
  const std::vector<Status> all = onEach(meshes, [&](size_t rank) {
    std::vector<float> x(8, 1.0F), y(2);
    const Kernel kernel = module.kernel(rank == 0 ? "sums" : "halves");
    const std::vector<NamedValue> inputs{{"x", TensorView(x.data(), DType::f32, {2, 4})}};
    const std::vector<NamedValue> outputs{
        {"y", TensorView(y.data(), DType::f32, {rank == 0 ? 2 : 1})}};
    return MeshKernel(kernel, meshes[rank]).try_launch({}, inputs, outputs);
  });
  CHECK((!all[0] && !all[1]));
  CHECK((all[0].error().code() == ErrorCode::mesh_mismatch ||
         all[1].error().code() == ErrorCode::mesh_mismatch));
}

TEST_CASE("a rank that does not come is lost within the time", "[mesh]") {
  TemporaryCache cache;
  const Kernel kernel = compile(source, onCpu()).kernel("sums");
  MeshOptions options;
  options.timeout = std::chrono::milliseconds(50);
  const std::vector<Mesh> meshes = Mesh::threads({{"tp", 3}}, options);
  std::vector<std::vector<float>> y(3, std::vector<float>(3));
  const std::vector<Status> all = onEach(meshes, [&](size_t rank) {
    return rank == 1 ? Status() : callSums(kernel, meshes[rank], 5, 1.0F, y[rank]);
  });
  for (size_t rank : {0, 2}) {
    REQUIRE(!all[rank]);
    CHECK(all[rank].error().code() == ErrorCode::rank_lost);
    CHECK(all[rank].error().message().find("rank 1 did not come within 50 ms") !=
          std::string::npos);
  }
}

TEST_CASE("a rank that fails, and an abort, end the waiting of the others", "[mesh]") {
  TemporaryCache cache;
  const Kernel kernel = compile(source, onCpu()).kernel("sums");
  std::vector<std::vector<float>> y(2, std::vector<float>(3));
  SECTION("a rank fails") {
    const std::vector<Mesh> meshes = Mesh::threads({{"tp", 2}});
    const std::vector<Status> all = onEach(meshes, [&](size_t rank) {
      if (rank == 0)
        return callSums(kernel, meshes[0], 5, 1.0F, y[0]);
      return MeshKernel(kernel, meshes[1]).try_launch({}, {}, {}); // without arguments
    });
    CHECK(all[1].error().code() == ErrorCode::invalid_argument);
    REQUIRE(!all[0]);
    CHECK(all[0].error().code() == ErrorCode::rank_lost);
    CHECK(all[0].error().message().find("rank 1 failed") != std::string::npos);
  }
  SECTION("an abort") {
    const std::vector<Mesh> meshes = Mesh::threads({{"tp", 2}});
    const std::vector<Status> all = onEach(meshes, [&](size_t rank) {
      if (rank == 0)
        return callSums(kernel, meshes[0], 5, 1.0F, y[0]);
      meshes[1].abort("the engine shuts down");
      return Status();
    });
    REQUIRE(!all[0]);
    CHECK(all[0].error().code() == ErrorCode::rank_lost);
    CHECK(all[0].error().message().find("the engine shuts down") != std::string::npos);
  }
}

TEST_CASE("an axis that does not divide an extent is an error at launch", "[mesh]") {
  TemporaryCache cache;
  const Kernel kernel = compile(source, onCpu()).kernel("halves");
  const std::vector<Mesh> meshes = Mesh::threads({{"tp", 2}});
  std::vector<float> x(3 * 2, 1.0F), y(2);
  const std::vector<NamedValue> inputs{{"x", TensorView(x.data(), DType::f32, {3, 2})}};
  const std::vector<NamedValue> outputs{{"y", TensorView(y.data(), DType::f32, {2})}};
  const Status status = MeshKernel(kernel, meshes[0]).try_launch({}, inputs, outputs);
  REQUIRE(!status);
  // Two rows on each of two ranks are no three rows.
  CHECK(status.error().code() == ErrorCode::shape_mismatch);
  std::vector<std::byte> whole(3 * sizeof(float));
  const std::vector<MeshAxis> axes{{"tp", 2}};
  const std::vector<std::string> sharding{"tp"};
  const std::vector<int64_t> first{0};
  const Expected<HostTensor> share =
      share_of(TensorView(whole.data(), DType::f32, {3}), sharding, axes, first);
  REQUIRE(!share);
  CHECK(share.error().code() == ErrorCode::constraint_failed);
  CHECK(share.error().message().find("axis 'tp' of 2 ranks does not divide an extent of 3") !=
        std::string::npos);
}

TEST_CASE("meshes that cannot be", "[mesh]") {
  TemporaryCache cache;
  CHECK_THROWS_AS(Mesh::threads({{"tp", 0}}), Error);
  CHECK_THROWS_AS(Mesh::threads({{"tp", 2}, {"tp", 2}}), Error);
  CHECK_THROWS_AS(Mesh::threads({{"tp", 2048}}), Error);
  CHECK_THROWS_AS(Mesh().rank(), Error);
  const Module module = compile(source, onCpu());
  const std::vector<Mesh> others = Mesh::threads({{"dp", 2}});
  try {
    MeshKernel(module.kernel("sums"), others[0]);
    FAIL("a mesh without the kernel's axis is taken");
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK(error.message().find("'tp'") != std::string::npos);
  }
}

TEST_CASE("positions are in row-major order of the axes", "[mesh]") {
  const std::vector<Mesh> meshes = Mesh::threads({{"dp", 2}, {"tp", 3}});
  REQUIRE(meshes.size() == 6);
  CHECK(meshes[5].position(0) == 1);
  CHECK(meshes[5].position(1) == 2);
  CHECK(meshes[3].position(0) == 1);
  CHECK(meshes[3].position(1) == 0);
}

TEST_CASE("the network decides which collectives a plan has", "[mesh]") {
  TemporaryCache cache;
  const Kernel kernel = compile(R"(mesh (tp)
kernel down(h: f32[M, F @ tp], w: f32[F @ tp, C]) -> (y: f32[M @ tp, C]) {
  y[m, c] = sum[f](h[m, f] * w[f, c])
})",
                                onCpu())
                            .kernel("down");
  auto planOn = [&](const std::string &network) {
    MeshOptions options;
    options.network = network;
    return MeshKernel(kernel, Mesh::threads({{"tp", 2}}, options)[0]).plan();
  };
  // Sizes that are not known count as large ones: blocks go to their owners beside the product.
  const MeshPlan byRows = planOn("h200-node");
  REQUIRE(byRows.steps.size() == 2);
  CHECK(byRows.steps[0].kind == MeshStep::Kind::launch_exchange);
  CHECK(byRows.steps[0].launches());
  CHECK(byRows.num_collectives() == 1);
  CHECK(planOn("").steps == byRows.steps);
  // Where a send is as slow as it can be, the partial sums are scattered behind the product.
  const MeshPlan slowSends = planOn(R"({"name": "slow sends", "source": "", "device": "H200",
    "protocols": [{"name": "p", "base_us": 0}],
    "levels": [{"name": "node", "children": 2, "links": 1, "link_gb_s": 450, "switches": 1,
                "ports": 2, "protocols": {"p": {"step_us": 0, "share": {"send": 0.001, "other": 1}}}}]})");
  CHECK(slowSends.steps[1].kind == MeshStep::Kind::reduce_scatter);
  CHECK_THROWS_AS(planOn("no network"), Error);
}

TEST_CASE("a plan says what each rank runs", "[mesh]") {
  TemporaryCache cache;
  const Kernel kernel = compile(source, onCpu()).kernel("sums");
  const std::vector<Mesh> meshes = Mesh::threads({{"tp", 2}});
  const MeshKernel onMesh(kernel, meshes[0]);
  CHECK(onMesh.plan().num_collectives() == 1);
  CHECK(onMesh.plan().str(kernel.signature()) ==
        "mesh tp=2\n"
        "launch sums_1(x: f32[R, C / 2]) -> (y: f32[R])\n"
        "all_reduce sum over tp: y: f32[R] -> y: f32[R]\n");
}

TEST_CASE("the cost model says up to which size stores are the fastest, and from which copies are",
          "[mesh]") {
  const std::string network = R"({
    "name": "two", "device": "H200",
    "protocols": [{"name": "k", "base_us": 30}, {"name": "s", "by": "stores", "base_us": 2},
                  {"name": "c", "by": "copies", "base_us": 20}],
    "levels": [{"name": "node", "children": 2, "links": 1, "link_gb_s": 100, "switches": 1, "ports": 2,
      "protocols": {"k": {"step_us": 0, "share": 0.5}, "s": {"step_us": 0, "share": 0.25},
                    "c": {"step_us": 0, "share": 1}}}]})";
  MeshPlan plan;
  plan.axes = {{"tp", 2}};
  for (auto kind :
       {MeshStep::Kind::all_gather, MeshStep::Kind::reduce_scatter, MeshStep::Kind::launch})
    plan.steps.emplace_back().kind = kind;
  offerStepBounds();
  const std::vector<detail::StepBounds> bounds = detail::step_bounds_finder()(plan, network);
  REQUIRE(bounds.size() == 3);
  // Half of the array moves. 2 us + b / 25 = 20 us + b / 100 at b = 600 KB.
  CHECK(std::abs(bounds[0].one_shot_up_to - 1'200'000) <= 1);
  CHECK(bounds[0].copied_from == bounds[0].one_shot_up_to + 1);
  // Copies do not add up. 2 us + b / 25 = 30 us + b / 50 at b = 1.4 MB.
  CHECK(std::abs(bounds[1].one_shot_up_to - 2'800'000) <= 1);
  CHECK(bounds[1].copied_from == detail::StepBounds().copied_from);
  CHECK(bounds[2].one_shot_up_to == 0);
  plan.axes[0].size = 1; // nothing moves
  CHECK(detail::step_bounds_finder()(plan, network)[0].one_shot_up_to == 0);
}
