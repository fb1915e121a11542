// What a test can ask of and tell to the fake driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tk::test {

struct FakeCudaState {
  int driver_version = 13000;
  int device_count = 1;
  bool capturing = false;
  int capture_mode = 0; ///< of the thread; allocations while capturing are refused but for 2
  int launch_result = 0;
  int alloc_result = 0;
  int load_result = 0;
  int pointer_result = 0;
  int ipc_result = 0; ///< of making a handle
  int opened_handles = 0;
  int memory_operations = 0; ///< of streams
  int one_shots = 0;         ///< launches of kernels of one-shot exchanges
  int host_result = 0;       ///< of allocating memory of the host
  int contexts_pushed = 0;
  int contexts_current = 0; ///< pushed and not yet popped
  int live_allocations = 0;
  int allocations = 0;
  int modules_loaded = 0;
  int memsets = 0;
  int encode_result = 0;
  int active_blocks = 0;   ///< of a launch on a multiprocessor
  int active_clusters = 0; ///< of a launch on the device
  struct Map {
    int type, swizzle, promotion, fill;
    std::vector<uint64_t> extents, strides;
    std::vector<uint32_t> box;
    std::vector<int> lower, upper; ///< of windows
    std::vector<uint32_t> steps;
  };
  std::vector<Map> maps; ///< as they were encoded; the first word of one is its address
  struct Launch {
    unsigned grid[3], block[3], shared, num_attributes, cluster[3];
    bool overlapped; ///< may begin before the launch before it has ended
    std::vector<uint64_t> arguments;
  };
  std::vector<Launch> launches;
  unsigned num_arguments = 0; ///< how many to read from each launch
};

} // namespace tk::test

extern "C" tk::test::FakeCudaState *fake_cuda_state();
