//===- Occupancy.cpp - how many blocks a multiprocessor holds -------------===//
#include "compiler/arch/Occupancy.h"

#include <algorithm>

namespace tk {
namespace {

/// What one multiprocessor has.
struct Multiprocessor {
  unsigned arch;
  unsigned warps, blocks;
  int64_t sharedBytes;
};

constexpr Multiprocessor table[] = {
    {80, 64, 32, 164 << 10},  {86, 48, 16, 100 << 10},  {87, 48, 16, 164 << 10},
    {89, 48, 24, 100 << 10},  {90, 64, 32, 228 << 10},  {100, 64, 32, 228 << 10},
    {103, 64, 32, 228 << 10}, {120, 48, 24, 100 << 10},
};

// The same from compute capability 8.0 on.
constexpr unsigned threadsPerWarp = 32;
constexpr unsigned registersPerMultiprocessor = 65536;
constexpr unsigned registerUnit = 256;        ///< a warp's registers come in multiples of it
constexpr unsigned warpUnit = 4;              ///< warps are spread over four schedulers
constexpr int64_t sharedUnit = 128;           ///< bytes
constexpr int64_t sharedReservedBytes = 1024; ///< by the system, a block

constexpr int64_t roundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

} // namespace

Occupancy occupancyOf(unsigned arch, const BlockNeeds &needs) {
  const Multiprocessor *machine =
      std::find_if(std::begin(table), std::end(table), [&](auto &row) { return row.arch == arch; });
  if (machine == std::end(table) || needs.threads == 0)
    return {};
  unsigned warps = (needs.threads + threadsPerWarp - 1) / threadsPerWarp;
  Occupancy result{machine->blocks, 0, "blocks"};
  auto limit = [&](int64_t blocks, std::string_view limiter) {
    if (blocks < result.blocks)
      result = {static_cast<unsigned>(blocks), 0, limiter};
  };
  limit(machine->warps / warps, "threads");
  if (needs.registers > 0) {
    int64_t perWarp = roundUp(int64_t{needs.registers} * threadsPerWarp, registerUnit);
    int64_t warpsThatFit = registersPerMultiprocessor / perWarp / warpUnit * warpUnit;
    limit(warpsThatFit / warps, "registers");
  }
  limit(machine->sharedBytes / roundUp(needs.sharedBytes + sharedReservedBytes, sharedUnit),
        "shared memory");
  result.fraction = double(result.blocks * warps) / machine->warps;
  return result;
}

} // namespace tk
