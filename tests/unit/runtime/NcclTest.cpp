// NCCL that is missing, too old or incomplete; and collectives of GPUs against those on host
// memory, on a fake NCCL and a fake driver.
#include "runtime/mesh/Nccl.h"
#include "runtime/mesh/Communicator.h"
#include "tests/unit/runtime/FakeMesh.h"

#include <numeric>
#include <random>

using namespace tk;
using cuda::Nccl;
using test::join;
using test::onEach;

TEST_CASE("an NCCL is loaded by path, with its version", "[nccl]") {
  Expected<std::unique_ptr<Nccl>> nccl = Nccl::load(FAKE_NCCL_PATH);
  REQUIRE(nccl);
  CHECK((*nccl)->version_text() == "2.27.3");
  CHECK_NOTHROW((*nccl)->check(0, "ncclAllReduce"));
  try {
    (*nccl)->check(3, "ncclAllReduce");
    FAIL("a failed call is taken");
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::nccl_failed);
    CHECK(error.message() == "ncclAllReduce: planted error");
  }
}

TEST_CASE("an NCCL that is missing, old or incomplete is a typed error", "[nccl]") {
  const Error missing = Nccl::load("/nowhere/libnccl.so.2").error();
  CHECK(missing.code() == ErrorCode::no_nccl);
  CHECK(missing.message().find("/nowhere/libnccl.so.2") != std::string::npos);
  const Error old = Nccl::load(FAKE_OLD_NCCL_PATH).error();
  CHECK(old.code() == ErrorCode::nccl_too_old);
  CHECK(old.message().find("is version 2.17.1; tk needs 2.18.0 or newer") != std::string::npos);
  const Error incomplete = Nccl::load(FAKE_INCOMPLETE_NCCL_PATH).error();
  CHECK(incomplete.code() == ErrorCode::nccl_too_old);
  CHECK(incomplete.message().find("has no function ncclCommSplit") != std::string::npos);
}

namespace {

Extents scaled(Extents shape, uint32_t dim, int64_t by, bool isDivided) {
  shape[dim] = isDivided ? shape[dim] / by : shape[dim] * by;
  return shape;
}

/// The shape behind a collective of `ranks` ranks.
Extents shapeBehind(const MeshStep &step, const Extents &from, int64_t ranks) {
  switch (step.kind) {
  case MeshStep::Kind::all_gather:
    return scaled(from, step.dim, ranks, false);
  case MeshStep::Kind::reduce_scatter:
    return scaled(from, step.dim, ranks, true);
  case MeshStep::Kind::all_to_all:
    return scaled(scaled(from, step.dim, ranks, false), step.to_dim, ranks, true);
  default:
    return from;
  }
}

/// Runs a step on all ranks and compares each with what host memory gives.
void compare(const std::vector<Mesh> &meshes, size_t axis, const MeshStep &step,
             const Extents &from) {
  const int64_t along = meshes[0].axes()[axis].size;
  const Extents to = shapeBehind(step, from, along);
  std::mt19937 random(7);
  std::vector<std::vector<float>> inputs(meshes.size()), outputs(meshes.size());
  for (size_t rank = 0; rank < meshes.size(); ++rank) {
    inputs[rank].resize(static_cast<size_t>(element_count(from).value()));
    outputs[rank].resize(static_cast<size_t>(element_count(to).value()), -1.0F);
    for (float &value : inputs[rank])
      value = static_cast<float>(random() % 64);
  }
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < meshes.size(); ++rank)
    threads.emplace_back([&, rank] {
      meshes[rank].impl().run(
          {&step, axis, DType::f32, from, to, inputs[rank].data(), outputs[rank].data()}, {});
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t rank = 0; rank < meshes.size(); ++rank) {
    std::vector<const void *> peers;
    for (int64_t peer : detail::peers_along(meshes[0].axes(), static_cast<int64_t>(rank), axis))
      peers.push_back(inputs[static_cast<size_t>(peer)].data());
    std::vector<float> expected(outputs[rank].size());
    detail::combine_on_host(
        {&step, axis, DType::f32, from, to, inputs[rank].data(), expected.data()}, peers,
        static_cast<size_t>(meshes[rank].position(axis)));
    CHECK(outputs[rank] == expected);
  }
}

} // namespace

TEST_CASE("collectives of GPUs give what those on host memory give", "[nccl]") {
  for (const std::vector<MeshAxis> &axes : {std::vector<MeshAxis>{{"tp", 2}},
                                            {{"tp", 3}},
                                            {{"dp", 2}, {"tp", 3}},
                                            {{"tp", 1}, {"dp", 2}}}) {
    const std::vector<Mesh> meshes = join(axes);
    for (size_t axis = 0; axis < axes.size(); ++axis)
      for (uint32_t dim : {0, 1, 2}) {
        MeshStep step;
        step.dim = dim;
        for (auto kind : {MeshStep::Kind::all_gather, MeshStep::Kind::all_reduce,
                          MeshStep::Kind::reduce_scatter})
          for (auto combine : {MeshCombine::sum, MeshCombine::max}) {
            step.kind = kind, step.combine = combine;
            compare(meshes, axis, step, {6, 12, 6});
          }
        step.kind = MeshStep::Kind::exchange;
        compare(meshes, axis, step, {6, 12, 6});
        step.kind = MeshStep::Kind::all_to_all;
        for (uint32_t to : {0, 1, 2}) {
          step.to_dim = to;
          if (to != dim)
            compare(meshes, axis, step, {6, 12, 6});
        }
      }
  }
}

TEST_CASE("an exchange sends the rows that count", "[nccl]") {
  constexpr int64_t ranks = 3, rows = 4, columns = 2;
  const std::vector<Mesh> meshes = join({{"ep", ranks}});
  MeshStep step;
  step.kind = MeshStep::Kind::exchange;
  step.sent = step.received = 0;
  const Extents shape{ranks * rows, columns};
  auto count = [](size_t from, size_t to) { return static_cast<int32_t>((from + 2 * to) % 5); };
  onEach(meshes, [&](size_t rank) {
    std::vector<float> in(ranks * rows * columns), out(in.size(), -1.0F);
    std::iota(in.begin(), in.end(), 100.0F * static_cast<float>(rank));
    std::vector<int32_t> sent, received;
    for (size_t peer = 0; peer < ranks; ++peer)
      sent.push_back(count(rank, peer)), received.push_back(count(peer, rank));
    meshes[rank].impl().run(
        {&step, 0, DType::f32, shape, shape, in.data(), out.data(), sent.data(), received.data()},
        {});
    for (size_t peer = 0; peer < ranks; ++peer)
      for (size_t i = 0; i < rows * columns; ++i) {
        const bool counts = i < static_cast<size_t>(count(peer, rank)) * columns;
        const float expected =
            100.0F * static_cast<float>(peer) + static_cast<float>(rank * rows * columns + i);
        CHECK(out[peer * rows * columns + i] == (counts ? expected : -1.0F));
      }
  });
}

TEST_CASE("blocks of rows are launched as they arrive, and before they go", "[nccl]") {
  for (int64_t ranks : {1, 2, 3}) {
    const std::vector<Mesh> meshes = join({{"tp", ranks}});
    const Extents share{2, 3}, whole{2 * ranks, 3};
    onEach(meshes, [&](size_t rank) {
      std::vector<float> own(6, static_cast<float>(rank)), all(6 * static_cast<size_t>(ranks), -1);
      std::vector<size_t> order;
      MeshStep step;
      step.kind = MeshStep::Kind::gather_launch;
      const detail::CollectiveCall gather{&step, 0,          DType::f32, share,
                                          whole, own.data(), all.data()};
      meshes[rank].impl().run_by_rows(gather, {}, [&](size_t block) {
        order.push_back(block);
        CHECK(all[block * 6] == static_cast<float>(block)); // is there
      });
      CHECK(order.size() == static_cast<size_t>(ranks));
      CHECK(order.front() == rank);
      step.kind = MeshStep::Kind::launch_exchange;
      order.clear();
      std::vector<float> partial(all.size()), blocks(all.size(), -1);
      const detail::CollectiveCall exchange{
          &step, 0, DType::f32, whole, whole, partial.data(), blocks.data()};
      meshes[rank].impl().run_by_rows(exchange, {}, [&](size_t block) {
        order.push_back(block);
        for (size_t i = 0; i < 6; ++i)
          partial[block * 6 + i] = static_cast<float>(10 * rank + block);
      });
      CHECK(order.back() == rank); // the others are on their way before
      for (size_t peer = 0; peer < static_cast<size_t>(ranks); ++peer)
        CHECK(blocks[peer * 6 + 5] == static_cast<float>(10 * peer + rank));
    });
  }
}

TEST_CASE("a rank of a GPU that does not join is an error in time", "[nccl]") {
  join({{"tp", 1}}); // the fake libraries
  MeshOptions options;
  options.timeout = std::chrono::milliseconds(50);
  try {
    join_nccl(nccl_unique_id(), 0, std::vector<MeshAxis>{{"tp", 2}}, 0, options);
    FAIL("a group with a missing rank is taken");
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::rank_lost);
    CHECK(error.message().find("not all 2 ranks joined within 50 ms") != std::string::npos);
  }
}

TEST_CASE("ranks of GPUs compare digests", "[nccl]") {
  const std::vector<Mesh> meshes = join({{"tp", 2}});
  std::vector<std::vector<std::string>> texts(2);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      texts[rank] = meshes[rank].impl().exchange(rank == 0 ? "one program" : "another");
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(texts[0] == texts[1]);
  CHECK(texts[0][0] != texts[0][1]);
  CHECK(meshes[0].impl().compares_once());
  CHECK_FALSE(meshes[0].impl().takes("cpu"));
  CHECK(meshes[0].impl().takes("sm_90a"));
}

TEST_CASE("groups of GPUs that cannot be", "[nccl]") {
  const std::vector<MeshAxis> two{{"tp", 2}};
  CHECK_THROWS_AS(join_nccl("short", 0, two), Error);
  const std::string id = [] {
    join({{"tp", 1}});
    return nccl_unique_id();
  }();
  cuda::NcclComm world = nullptr;
  const Nccl &nccl = *Nccl::get().value();
  cuda::NcclUniqueId unique = {};
  std::copy(id.begin(), id.end(), unique.bytes);
  nccl.check(nccl.functions().init_rank(&world, 1, unique, 0), "ncclCommInitRank");
  try {
    mesh_of_nccl(world, two);
    FAIL("a communicator of another size is taken");
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK(error.message().find("has 1 ranks") != std::string::npos);
  }
}
