// Blocks that go to the memory of peers by copies, on a fake NCCL and a fake driver: what arrives
// is what NCCL brings, and where peers cannot be reached it is NCCL that brings it.
#include "runtime/mesh/NcclRank.h"
#include "tests/unit/runtime/FakeCuda.h"
#include "tests/unit/runtime/FakeMesh.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>

using namespace tk;
using test::join;
using test::onEach;

namespace {

test::FakeCudaState &fake() {
  ::setenv("TK_LIBCUDA", FAKE_CUDA_PATH, 1);
  static auto get = reinterpret_cast<test::FakeCudaState *(*)()>(
      dlsym(dlopen(FAKE_CUDA_PATH, RTLD_NOW), "fake_cuda_state"));
  return *get();
}

/// TK_MESH_COPIES while it lives.
struct Copies {
  explicit Copies(const char *value) { ::setenv("TK_MESH_COPIES", value, 1); }
  ~Copies() { ::unsetenv("TK_MESH_COPIES"); }
};

float *floats(const std::shared_ptr<void> &memory) { return static_cast<float *>(memory.get()); }

const std::string &reasonOf(const Mesh &mesh) {
  return dynamic_cast<detail::NcclRank &>(mesh.impl()).reason_for_nccl();
}

constexpr size_t elements = 6;            // of a block beside a launch
constexpr size_t large = size_t{1} << 20; // of a block alone that copies move

/// A launch by rows whose blocks are gathered, twice, as flags are used again.
void checkGather(const std::vector<Mesh> &meshes) {
  const auto ranks = static_cast<int64_t>(meshes.size());
  onEach(meshes, [&](size_t rank) {
    for (float round : {1.0F, 2.0F}) {
      const auto memory = meshes[rank].impl().temporaries(
          static_cast<int64_t>(elements * sizeof(float)) * ranks, {}, true);
      std::vector<float> own(elements, 10 * round + static_cast<float>(rank));
      std::vector<size_t> order;
      MeshStep step;
      step.kind = MeshStep::Kind::gather_launch;
      const detail::CollectiveCall call{&step,          0,          DType::f32,  {2, 3},
                                        {2 * ranks, 3}, own.data(), memory.get()};
      meshes[rank].impl().run_by_rows(call, {}, [&](size_t block) {
        order.push_back(block);
        CHECK(floats(memory)[block * elements + 5] == 10 * round + static_cast<float>(block));
      });
      CHECK(order.size() == meshes.size());
      CHECK(order.front() == rank);
    }
  });
}

void checkExchange(const std::vector<Mesh> &meshes, bool isLaunch) {
  const auto ranks = static_cast<int64_t>(meshes.size());
  const size_t count = isLaunch ? elements : large;
  onEach(meshes, [&](size_t rank) {
    const auto memory = meshes[rank].impl().temporaries(
        static_cast<int64_t>(count * sizeof(float)) * ranks, {}, true);
    std::vector<float> partial(count * meshes.size());
    auto fill = [&](size_t block) {
      std::fill_n(partial.begin() + static_cast<ptrdiff_t>(block * count), count,
                  static_cast<float>(10 * rank + block));
    };
    MeshStep step;
    step.kind = isLaunch ? MeshStep::Kind::launch_exchange : MeshStep::Kind::exchange;
    const Extents whole{static_cast<int64_t>(count) / 2 * ranks, 2};
    detail::CollectiveCall call{&step, 0, DType::f32, whole, whole, partial.data(), memory.get()};
    call.bounds.copied_from = 0;
    if (isLaunch) {
      meshes[rank].impl().run_by_rows(call, {}, fill);
    } else {
      for (size_t block = 0; block < meshes.size(); ++block)
        fill(block);
      meshes[rank].impl().run(call, {});
    }
    for (size_t peer = 0; peer < meshes.size(); ++peer)
      CHECK(floats(memory)[peer * count + count - 1] == static_cast<float>(10 * peer + rank));
  });
}

/// Two tensors that are gathered together.
void checkTogether(const std::vector<Mesh> &meshes) {
  const size_t ranks = meshes.size();
  onEach(meshes, [&](size_t rank) {
    const auto memory = meshes[rank].impl().temporaries(
        static_cast<int64_t>(2 * large * sizeof(float) * ranks), {}, true);
    std::vector<float> first(large, static_cast<float>(rank)), second(large, -1);
    MeshStep step;
    step.kind = MeshStep::Kind::all_gather;
    float *to = floats(memory);
    const Extents share{large, 1}, whole{static_cast<int64_t>(large * ranks), 1};
    std::vector<detail::CollectiveCall> calls{
        {&step, 0, DType::f32, share, whole, first.data(), to},
        {&step, 0, DType::f32, share, whole, second.data(), to + large * ranks}};
    for (detail::CollectiveCall &call : calls)
      call.bounds.copied_from = 0;
    const int before = fake().memory_operations;
    meshes[rank].impl().run_together(calls, {});
    CHECK((fake().memory_operations > before) == (ranks > 1 && reasonOf(meshes[rank]).empty()));
    for (size_t peer = 0; peer < ranks; ++peer) {
      CHECK(to[peer * large] == static_cast<float>(peer));
      CHECK(to[(ranks + peer) * large + large - 1] == -1);
    }
  });
}

void checkAll(const std::vector<Mesh> &meshes) {
  checkGather(meshes);
  checkExchange(meshes, true);
  checkExchange(meshes, false);
  checkTogether(meshes);
}

} // namespace

TEST_CASE("blocks go to the memory of peers", "[copies]") {
  for (const char *mode : {"auto", "handles", "engines"})
    for (int64_t ranks : {1, 2, 3, 4}) {
      const Copies copies(mode);
      const int before = fake().memory_operations;
      {
        const std::vector<Mesh> meshes = join({{"tp", ranks}});
        checkAll(meshes);
        for (const Mesh &mesh : meshes)
          CHECK(reasonOf(mesh).empty());
        const bool hasHandles = std::string(mode) == "handles" && ranks > 1;
        CHECK((fake().opened_handles > 0) == hasHandles);
      }
      CHECK((fake().memory_operations > before) == (ranks > 1));
      CHECK(fake().opened_handles == 0);
    }
}

TEST_CASE("a window grows with what lies between launches", "[copies]") {
  const std::vector<Mesh> meshes = join({{"tp", 2}});
  checkGather(meshes);
  onEach(meshes, [&](size_t rank) { // larger than the first window
    const auto memory = meshes[rank].impl().temporaries(int64_t{8} << 20, {}, true);
    floats(memory)[(size_t{8} << 20) / sizeof(float) - 1] = 1;
  });
  checkAll(meshes);
  CHECK(reasonOf(meshes[0]).empty());
}

TEST_CASE("where peers cannot be reached NCCL brings the blocks", "[copies]") {
  {
    const Copies copies("nccl");
    const int before = fake().memory_operations;
    const std::vector<Mesh> meshes = join({{"tp", 2}});
    checkAll(meshes);
    CHECK(reasonOf(meshes[0]).find("takes NCCL") != std::string::npos);
    CHECK(fake().memory_operations == before);
  }
  const Copies copies("handles");
  fake().ipc_result = 1;
  const std::vector<Mesh> meshes = join({{"tp", 2}});
  checkAll(meshes);
  CHECK(reasonOf(meshes[0]).find("no handle for other processes") != std::string::npos);
  fake().ipc_result = 0;
}

TEST_CASE("copies that are asked for and cannot be are an error", "[copies]") {
  {
    const Copies copies("gpu");
    try {
      detail::PeerMemory::mode_of_environment();
      FAIL("an unknown value is taken");
    } catch (const Error &error) {
      CHECK(error.code() == ErrorCode::invalid_argument);
      CHECK(error.message() == "TK_MESH_COPIES: expected auto, engines or nccl, got 'gpu'");
    }
  }
  join({{"tp", 1}});                                  // the fake libraries
  auto gather = [](const void *bytes, size_t count) { // another rank that wants none
    std::vector<std::byte> all(2 * count);
    std::memcpy(all.data(), bytes, count);
    return all;
  };
  cuda::DeviceContext &device = *cuda::DeviceContext::get(0).value();
  using Mode = detail::PeerMemory::Mode;
  detail::PeerMemory automatic(device, {{"tp", 2}}, 0, gather, Mode::automatic);
  CHECK(automatic.reserve(64, nullptr, false) == 0);
  CHECK_FALSE(automatic.reason().empty());
  CHECK_FALSE(automatic.reaches(0, 64));
  detail::PeerMemory asked(device, {{"tp", 2}}, 0, gather, Mode::engines);
  Error error(ErrorCode::internal, "none");
  try {
    asked.reserve(64, nullptr, false);
  } catch (const Error &found) {
    error = found;
  }
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(error.message().find("rank 0 of the mesh cannot copy to its peers: a rank takes NCCL") !=
        std::string::npos);
}
