// Ranks of GPUs that are threads, on a fake NCCL and a fake driver.
#pragma once

#include "tests/unit/catch.h"
#include "tk/mesh_nccl.h"

#include <cstdlib>
#include <thread>

namespace tk::test {

/// Meshes of GPUs that are threads: all have joined.
inline std::vector<Mesh> join(const std::vector<MeshAxis> &axes, const MeshOptions &options = {}) {
  ::setenv("TK_NVRTC", FAKE_NVRTC_PATH, 1);
  ::setenv("TK_CACHE", "off", 1); // what the fake NVRTC makes is no code
  ::setenv("TK_NCCL", FAKE_NCCL_PATH, 1);
  ::setenv("TK_LIBCUDA", FAKE_CUDA_PATH, 1);
  int64_t ranks = 1;
  for (const MeshAxis &axis : axes)
    ranks *= axis.size;
  const std::string id = nccl_unique_id();
  std::vector<Mesh> meshes(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { meshes[rank] = join_nccl(id, rank, axes, 0, options); });
  for (std::thread &thread : threads)
    thread.join();
  return meshes;
}

/// Runs work on all ranks at once.
template <typename Work> void onEach(const std::vector<Mesh> &meshes, Work work) {
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < meshes.size(); ++rank)
    threads.emplace_back([&, rank] { work(rank); });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace tk::test
