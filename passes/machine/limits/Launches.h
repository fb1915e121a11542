//===- Launches.h - limits of launches --------------------------*- C++ -*-===//
//
// Registers, groups of blocks and counters of launches (passes/launch). Each namespace is that of
// the file that uses it. Values without a measurement beside them are assumed; a device that
// differs much from an H200 needs them looked at.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LIMITS_LAUNCHES_H
#define TK_PASSES_MACHINE_LIMITS_LAUNCHES_H

#include <cstdint>

namespace tk::limits::join_launches {

/// Groups of a kernel's blocks: as many as there are counters for.
inline constexpr int64_t mostCounters = 512;

} // namespace tk::limits::join_launches

namespace tk::limits::launch_pair {

/// Blocks of a group, which count themselves one after the other: more were not measured.
inline constexpr int64_t mostBlocksOfGroup = 128;
/// If there is one group, whose blocks all run at once and go through more than they hold, as many
/// are as fast: 256 were measured.
inline constexpr int64_t mostPerProcessor = 2;
/// Below all sizes, also if several are added.
inline constexpr int64_t nothingKnown = -(int64_t(1) << 48);

} // namespace tk::limits::launch_pair

namespace tk::limits::limit_registers {

/// Loops with fewer registers left over convert early of themselves.
inline constexpr int64_t spareInSteps = 24;
/// With so many blocks on a multiprocessor some always load; with more they hide latencies of
/// arithmetic. Of blocks of fewer threads there are as many more. Registers below the least gain
/// nothing.
inline constexpr int64_t enoughBlocks = 6, mostBlocks = 8, leastRegisters = 64;
/// The threads of these blocks.
inline constexpr int64_t usualThreads = 128;
/// Registers to compute with beside all tiles that are live in a loop of products, whose elements
/// ptxas computes one after the other.
inline constexpr int64_t workingBesideProducts = 24;
/// Threads of a multiprocessor whose loads come before arithmetic that does not need them, and
/// instructions of that for each element that is loaded. Dropout of 16384 x 8192 in bf16 on an
/// H200: 135.6 us so, 137.5 with 2048 threads (the copy 128.2).
inline constexpr int64_t threadsBesideLoads = 1536;
inline constexpr double leastBesideLoads = 8;

} // namespace tk::limits::limit_registers

namespace tk::limits::share_grids {

/// Warps that a multiprocessor holds, and waves of them: a longer launch has little to gain, and
/// would run with the registers of the other function.
inline constexpr int64_t warpsOfProcessor = 64, mostWaves = 2;

} // namespace tk::limits::share_grids

#endif // TK_PASSES_MACHINE_LIMITS_LAUNCHES_H
