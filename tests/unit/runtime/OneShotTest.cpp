// Collectives by the kernel of one-shot exchanges, which the fake driver runs on the host: results
// are those of collectives in host memory, and a rank that does not come is an error.
#include "runtime/mesh/NcclRank.h"
#include "tests/unit/runtime/FakeCuda.h"
#include "tests/unit/runtime/FakeMesh.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <limits>
#include <numeric>
#include <random>

using namespace tk;
using test::join;
using test::onEach;
using Kind = MeshStep::Kind;

namespace {

test::FakeCudaState &fake() {
  ::setenv("TK_LIBCUDA", FAKE_CUDA_PATH, 1);
  static auto get = reinterpret_cast<test::FakeCudaState *(*)()>(
      dlsym(dlopen(FAKE_CUDA_PATH, RTLD_NOW), "fake_cuda_state"));
  return *get();
}

const std::string &reasonOf(const Mesh &mesh) {
  return dynamic_cast<detail::NcclRank &>(mesh.impl()).reason_for_no_one_shot();
}

MeshStep stepOf(Kind kind, uint32_t dim = 0, uint32_t toDim = 0,
                MeshCombine combine = MeshCombine::sum) {
  MeshStep step;
  step.kind = kind, step.dim = dim, step.to_dim = toDim, step.combine = combine;
  return step;
}

/// An exchange by one kernel is the fastest for every size.
constexpr detail::StepBounds always{int64_t{1} << 30};

Extents shapeBehind(const MeshStep &step, Extents shape, int64_t ranks) {
  if (step.kind == Kind::all_gather || step.kind == Kind::all_to_all)
    shape[step.dim] *= ranks;
  if (step.kind == Kind::reduce_scatter)
    shape[step.dim] /= ranks;
  if (step.kind == Kind::all_to_all)
    shape[step.to_dim] /= ranks;
  return shape;
}

size_t bytesOf(DType dtype, const Extents &shape) {
  return static_cast<size_t>(byte_count(dtype, shape).value());
}

/// Small numbers, of which sums and products are exact in each type.
std::vector<std::byte> randomTensor(DType dtype, const Extents &shape, size_t seed) {
  std::vector<std::byte> bytes(bytesOf(dtype, shape));
  std::mt19937 random(static_cast<unsigned>(seed));
  const size_t size = size_of(dtype);
  for (size_t i = 0; i < bytes.size(); i += size)
    store_from_f64(dtype, bytes.data() + i,
                   dtype == DType::boolean ? random() % 2 : static_cast<double>(random() % 3));
  return bytes;
}

/// Runs a step along an axis, and compares each rank's result with that of host memory. `inWindow`
/// says whether the result lies between launches.
void compare(const std::vector<Mesh> &meshes, size_t axis, const MeshStep &step, DType dtype,
             const Extents &from, bool inWindow) {
  const int64_t along = meshes[0].axes()[axis].size;
  const Extents to = shapeBehind(step, from, along);
  std::vector<std::vector<std::byte>> inputs(meshes.size()), outputs(meshes.size());
  for (size_t rank = 0; rank < meshes.size(); ++rank) {
    inputs[rank] = randomTensor(dtype, from, 17 + rank);
    outputs[rank].resize(bytesOf(dtype, to));
  }
  const int before = fake().one_shots;
  onEach(meshes, [&](size_t rank) {
    detail::Communicator &own = meshes[rank].impl();
    detail::CollectiveCall call{&step, axis, dtype, from, to, inputs[rank].data(), nullptr};
    call.bounds = always;
    const auto bytes = static_cast<int64_t>(bytesOf(dtype, to));
    const int64_t landing = own.landing_bytes(call, inWindow);
    for (int round = 0; round < 2; ++round) { // flags are used again
      const auto memory = own.temporaries(bytes + 256 + landing, {}, true);
      auto *begin = static_cast<std::byte *>(memory.get());
      call.to = inWindow ? begin : outputs[rank].data();
      call.landing = landing > 0 ? begin + (bytes + 255) / 256 * 256 : nullptr;
      own.run(call, {});
      if (inWindow)
        std::memcpy(outputs[rank].data(), call.to, outputs[rank].size());
    }
  });
  CHECK((fake().one_shots > before) == (along > 1));
  for (size_t rank = 0; rank < meshes.size(); ++rank) {
    std::vector<const void *> peers;
    for (int64_t peer : detail::peers_along(meshes[0].axes(), static_cast<int64_t>(rank), axis))
      peers.push_back(inputs[static_cast<size_t>(peer)].data());
    std::vector<std::byte> expected(outputs[rank].size());
    detail::combine_on_host({&step, axis, dtype, from, to, inputs[rank].data(), expected.data()},
                            peers, static_cast<size_t>(meshes[rank].position(axis)));
    INFO(name(step.kind) << " " << name(dtype) << " dim " << step.dim << " to " << step.to_dim);
    CHECK(outputs[rank] == expected);
  }
}

void compareAll(const std::vector<Mesh> &meshes, size_t axis, const Extents &shape, bool inWindow) {
  for (uint32_t dim : {0, 1, 2})
    for (Kind kind : {Kind::all_gather, Kind::all_reduce, Kind::reduce_scatter})
      compare(meshes, axis, stepOf(kind, dim), DType::i8, shape, inWindow);
  compare(meshes, axis, stepOf(Kind::exchange), DType::i8, shape, inWindow);
  Extents flat = shape;
  flat[0] = 1; // what an all-to-all between the others needs
  compare(meshes, axis, stepOf(Kind::all_to_all, 1, 2), DType::i8, flat, inWindow);
  compare(meshes, axis, stepOf(Kind::all_to_all, 2, 1), DType::i8, flat, inWindow);
  compare(meshes, axis, stepOf(Kind::all_to_all, 0, 2), DType::i8, shape, inWindow);
  compare(meshes, axis, stepOf(Kind::all_to_all, 2, 0), DType::i8, shape, inWindow);
}

} // namespace

TEST_CASE("collectives by one kernel give what those on host memory give", "[one-shot]") {
  for (const std::vector<MeshAxis> &axes : {std::vector<MeshAxis>{{"tp", 2}},
                                            {{"tp", 3}},
                                            {{"tp", 4}},
                                            {{"tp", 8}},
                                            {{"dp", 2}, {"tp", 3}}}) {
    const std::vector<Mesh> meshes = join(axes);
    for (size_t axis = 0; axis < axes.size(); ++axis)
      for (bool inWindow : {true, false}) {
        compareAll(meshes, axis, {24, 24, 24}, inWindow); // accesses of 1 to 8 bytes
        compareAll(meshes, axis, {24, 24, 96}, inWindow); // of up to 16 bytes
      }
    for (const Mesh &mesh : meshes)
      CHECK(reasonOf(mesh).empty());
  }
}

TEST_CASE("one kernel combines elements of each type", "[one-shot]") {
  const std::vector<Mesh> meshes = join({{"tp", 3}});
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                      DType::i8, DType::u8})
    for (MeshCombine combine :
         {MeshCombine::sum, MeshCombine::prod, MeshCombine::max, MeshCombine::min})
      for (int64_t columns : {16, 5}) // accesses of 16 bytes, and of an element
        compare(meshes, 0, stepOf(Kind::reduce_scatter, 1, 0, combine), dtype, {2, 6, columns},
                true);
  for (MeshCombine combine : {MeshCombine::any, MeshCombine::all})
    compare(meshes, 0, stepOf(Kind::all_reduce, 0, 0, combine), DType::boolean, {3, 7}, true);
  compare(meshes, 0, stepOf(Kind::all_gather), DType::bf16, {1, 3}, true); // 2 bytes an access
  compare(meshes, 0, stepOf(Kind::all_gather), DType::i8, {1, 3}, true);
}

TEST_CASE("many thread blocks exchange their parts", "[one-shot]") {
  const std::vector<Mesh> meshes = join({{"tp", 2}});
  for (int64_t rows : {80, 600}) // thread blocks: some, and as many as there may be
    for (Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce})
      compare(meshes, 0, stepOf(kind), DType::f32, {rows, 501}, true);
}

TEST_CASE("tensors that are exchanged together are one launch", "[one-shot]") {
  const std::vector<Mesh> meshes = join({{"cp", 2}});
  const MeshStep gather = stepOf(Kind::all_gather), reduce = stepOf(Kind::all_reduce);
  const int before = [&] {
    onEach(meshes, [&](size_t rank) { meshes[rank].impl().temporaries(4096, {}, true); });
    return fake().one_shots;
  }();
  onEach(meshes, [&](size_t rank) {
    const auto memory = meshes[rank].impl().temporaries(4096, {}, true);
    auto *floats = static_cast<float *>(memory.get());
    const float own[2] = {static_cast<float>(rank + 1), 5};
    std::vector<detail::CollectiveCall> calls(2);
    calls[0] = {&gather, 0, DType::f32, {2, 1}, {4, 1}, own, floats};
    calls[1] = {&reduce, 0, DType::f32, {2, 1}, {2, 1}, own, floats + 64};
    calls[1].landing = floats + 128;
    for (detail::CollectiveCall &call : calls)
      call.bounds = always;
    meshes[rank].impl().run_together(calls, {});
    const std::vector<float> gathered(floats, floats + 4), reduced(floats + 64, floats + 66);
    CHECK(gathered == std::vector<float>{1, 5, 2, 5});
    CHECK(reduced == std::vector<float>{3, 10});
  });
  CHECK(fake().one_shots == before + 2); // one a rank
}

TEST_CASE("the device reads the counts of an exchange", "[one-shot]") {
  constexpr int64_t ranks = 3, rows = 4, columns = 2;
  const std::vector<Mesh> meshes = join({{"ep", ranks}});
  // Without bounds: of counted ones there is no other that nothing waits for.
  const MeshStep step = stepOf(Kind::exchange);
  const Extents shape{ranks * rows, columns};
  auto count = [](size_t from, size_t to) { return static_cast<int32_t>((from + 2 * to) % 5); };
  onEach(meshes, [&](size_t rank) {
    const auto memory = meshes[rank].impl().temporaries(4096, {}, true);
    auto *out = static_cast<float *>(memory.get());
    std::vector<float> in(ranks * rows * columns);
    std::fill_n(out, in.size(), -1.0F);
    std::iota(in.begin(), in.end(), 100.0F * static_cast<float>(rank));
    std::vector<int32_t> sent, received;
    for (size_t peer = 0; peer < ranks; ++peer)
      sent.push_back(count(rank, peer)), received.push_back(count(peer, rank));
    const int before = fake().one_shots;
    meshes[rank].impl().exchange("all have filled"); // in order: the fake has no streams
    meshes[rank].impl().run(
        {&step, 0, DType::f32, shape, shape, in.data(), out, sent.data(), received.data()}, {});
    CHECK(fake().one_shots > before);
    for (size_t peer = 0; peer < ranks; ++peer)
      for (size_t i = 0; i < rows * columns; ++i) {
        const bool counts = i < static_cast<size_t>(count(peer, rank)) * columns;
        const float expected =
            100.0F * static_cast<float>(peer) + static_cast<float>(rank * rows * columns + i);
        CHECK(out[peer * rows * columns + i] == (counts ? expected : -1.0F));
      }
  });
}

TEST_CASE("arrays above the bound of the cost model go through NCCL", "[one-shot]") {
  const std::vector<Mesh> meshes = join({{"tp", 2}});
  const MeshStep step = stepOf(Kind::all_gather);
  onEach(meshes, [&](size_t rank) { meshes[rank].impl().temporaries(4096, {}, true); });
  for (int64_t bound : {64, 63}) { // the array has 64 bytes
    const int before = fake().one_shots;
    onEach(meshes, [&](size_t rank) {
      const auto memory = meshes[rank].impl().temporaries(4096, {}, true);
      std::vector<float> own(8, static_cast<float>(rank));
      auto *all = static_cast<float *>(memory.get());
      detail::CollectiveCall call{&step, 0, DType::f32, {8}, {16}, own.data(), all};
      call.bounds.one_shot_up_to = bound;
      meshes[rank].impl().run(call, {});
      CHECK(all[8] == 1);
    });
    CHECK(fake().one_shots - before == (bound == 64 ? 2 : 0));
  }
}

namespace {

MeshOptions quick() {
  MeshOptions options;
  options.timeout = std::chrono::milliseconds(300);
  return options;
}

/// Gathers a word each.
void gather(const Mesh &mesh) {
  const auto memory = mesh.impl().temporaries(4096, {}, true);
  const MeshStep step = stepOf(Kind::all_gather);
  const int32_t own = static_cast<int32_t>(mesh.rank());
  auto *all = static_cast<int32_t *>(memory.get());
  detail::CollectiveCall call{&step, 0, DType::i32, {1}, {2}, &own, all};
  call.bounds = always;
  mesh.impl().run(call, {});
}

} // namespace

TEST_CASE("a rank that does not come to an exchange is an error in time", "[one-shot]") {
  const std::vector<Mesh> meshes = join({{"tp", 2}}, quick());
  onEach(meshes, [&](size_t rank) { gather(meshes[rank]); });
  CHECK_NOTHROW(gather(meshes[0])); // alone: it ends, and is noted
  CHECK_NOTHROW(meshes[1].impl().temporaries(64, {}, true));
  try {
    gather(meshes[0]);
    FAIL("an exchange without a rank is taken");
  } catch (const Error &error) {
    CHECK(error.code() == ErrorCode::rank_lost);
    CHECK(error.message() == "rank 0 of the mesh: rank 1 has given up, or did not come within "
                             "300 ms");
  }
}

TEST_CASE("a rank that gives up holds nobody", "[one-shot]") {
  const std::vector<Mesh> meshes = join({{"tp", 2}}); // who would wait for 30 s
  onEach(meshes, [&](size_t rank) { gather(meshes[rank]); });
  const auto begin = std::chrono::steady_clock::now();
  onEach(meshes, [&](size_t rank) {
    if (rank == 0)
      gather(meshes[0]);
    else
      meshes[1].impl().abort("planted");
  });
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK_THROWS_AS(gather(meshes[0]), Error);
}

TEST_CASE("ranks that cannot compile the kernel take NCCL", "[one-shot]") {
  fake().host_result = 2;
  const std::vector<Mesh> meshes = join({{"tp", 2}});
  const int before = fake().one_shots;
  onEach(meshes, [&](size_t rank) { gather(meshes[rank]); });
  CHECK(fake().one_shots == before);
  CHECK(reasonOf(meshes[0]).find("cuMemHostAlloc") != std::string::npos);
  fake().host_result = 0;
}

TEST_CASE("TK_MESH_COPIES=engines takes no one-shot exchanges", "[one-shot]") {
  ::setenv("TK_MESH_COPIES", "engines", 1);
  const std::vector<Mesh> meshes = join({{"tp", 2}});
  ::unsetenv("TK_MESH_COPIES");
  const int before = fake().one_shots;
  onEach(meshes, [&](size_t rank) { gather(meshes[rank]); });
  CHECK(fake().one_shots == before);
}
