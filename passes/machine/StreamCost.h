//===- StreamCost.h - blocks that stream parts of a range -------*- C++ -*-===//
//
// Split-KV attention has a block for each part of a range of keys. A block reads its part term by
// term, and stores a state that another launch combines. Blocks run in rounds: as many at a time as
// the multiprocessors hold. Memory bounds a full round. It does not bound a last round of few
// blocks, each of which takes its time for a term however few they are.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_STREAMCOST_H
#define TK_PASSES_MACHINE_STREAMCOST_H

#include <cstdint>

namespace tk::cost {

/// A launch of blocks that each stream up to `terms` terms.
struct StreamWork {
  int64_t blocks = 1;
  int64_t places = 1;     ///< blocks that run at a time
  int64_t terms = 0;      ///< of the longest block
  double allTerms = 0;    ///< of all blocks
  double bytesOfTerm = 0; ///< that a block reads for a term
  double bytesOfState = 0;
};

/// Nanoseconds that a warp alone takes for a term of 16 rows: 64 terms in 1.6 us, of which half is
/// the latency of memory and of barriers. 8-bit keys and values of 128 columns on an H200 take 3.3
/// us for two loads that nothing hides.
inline constexpr double termOfWarp = 25;

/// Nanoseconds of the launch and of its states, which are written and read once.
double timeOfStream(const StreamWork &work);

} // namespace tk::cost

#endif // TK_PASSES_MACHINE_STREAMCOST_H
