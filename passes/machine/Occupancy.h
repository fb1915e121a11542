//===- Occupancy.h - how many blocks a multiprocessor holds ------*- C++ -*-===//
//
// What the driver's occupancy query answers, from the tables of the CUDA programming guide
// (technical specifications per compute capability), for machines without that GPU.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_OCCUPANCY_H
#define TK_PASSES_MACHINE_OCCUPANCY_H

#include <cstdint>
#include <string_view>

namespace tk {

/// What one block needs.
struct BlockNeeds {
  unsigned threads = 0;
  unsigned registers = 0; ///< a thread
  int64_t sharedBytes = 0;
};

struct Occupancy {
  unsigned blocks = 0;      ///< on one multiprocessor
  double fraction = 0;      ///< of the warps that it has room for
  std::string_view limiter; ///< "registers", "shared memory", "threads", "blocks"
};

/// `arch` is the compute capability times ten.
Occupancy occupancyOf(unsigned arch, const BlockNeeds &needs);

} // namespace tk

#endif // TK_PASSES_MACHINE_OCCUPANCY_H
