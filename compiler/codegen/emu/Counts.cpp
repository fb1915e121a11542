//===- Counts.cpp - what the blocks of a launch move and multiply ---------===//
#include "compiler/codegen/emu/Counts.h"

#include <algorithm>

namespace tk::emu {

static constexpr uintptr_t bytesOfSector = 32;
static constexpr unsigned lanesOfWarp = 32;

void Counts::access(const Access &mine, uintptr_t address, int bytes, bool isWrite) {
  const uint64_t place = uint64_t{mine.site} << 1 | uint64_t{isWrite};
  const uint32_t number = accessesOf[uint64_t{mine.agent} << 17 | place]++;
  const uint64_t warp = uint64_t{mine.agent} / lanesOfWarp;
  Sectors &sectors = ofWarps[warp << 49 | uint64_t{number} << 17 | place];
  const uintptr_t last = (address + static_cast<uintptr_t>(bytes) - 1) / bytesOfSector;
  for (uintptr_t sector = address / bytesOfSector; sector <= last; ++sector) {
    if (std::find(sectors.begin(), sectors.end(), sector) != sectors.end())
      continue;
    sectors.push_back(sector);
    (isWrite ? written : read) += bytesOfSector;
  }
}

void Counts::endCluster() {
  accessesOf.clear();
  ofWarps.clear();
}

} // namespace tk::emu
