//===- Occupancy.cpp - how many blocks a multiprocessor holds -------------===//
#include "passes/machine/Occupancy.h"

#include "passes/machine/Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace tk {

Occupancy occupancyOf(unsigned arch, const BlockNeeds &needs) {
  const auto rows = allArchitectures();
  const Architecture *machine = llvm::find_if(rows, [&](auto &row) { return row.arch == arch; });
  if (machine == rows.end() || needs.threads == 0)
    return {};
  const int64_t warps = llvm::divideCeil(int64_t{needs.threads}, lanesOfWarp);
  Occupancy result{static_cast<unsigned>(machine->blocks), 0, "blocks"};
  auto limit = [&](int64_t blocks, std::string_view limiter) {
    if (blocks < result.blocks)
      result = {static_cast<unsigned>(blocks), 0, limiter};
  };
  limit(machine->warps / warps, "threads");
  if (needs.registers > 0) {
    // Warps are spread over the schedulers, each of which has its part of the registers.
    int64_t perWarp = llvm::alignTo(needs.registers * lanesOfWarp, registerUnitOfWarp);
    int64_t warpsThatFit = llvm::alignDown(registersOfProcessor / perWarp, schedulersOfProcessor);
    limit(warpsThatFit / warps, "registers");
  }
  limit(machine->sharedOfProcessor /
            static_cast<int64_t>(llvm::alignTo(needs.sharedBytes + sharedOfSystem, sharedUnit)),
        "shared memory");
  result.fraction = double(result.blocks * warps) / double(machine->warps);
  return result;
}

} // namespace tk
