//===- CostModel.h - how long a launch takes --------------------*- C++ -*-===//
//
// The one cost model. A launch is described by plain numbers (LaunchWork); predict() turns them
// into times in nanoseconds for a machine. docs/explanation/cost-model.md has the formulas with
// their reasons.
//
//   P       multiprocessors
//   b       blocks of the launch
//   A       blocks that one multiprocessor holds at a time
//   waves   b / (P A)
//   uneven  the busiest multiprocessor's share of the work, relative to an even share:
//           max(ceil(b / P) P / b, heaviest block / mean block * P / b, 1)
//
//   memory  (bytes read + bytes written) / min(copy rate, bytes that the busy ones can ask for)
//   cache   bytes through L2 / cache rate
//   shared  bytes of shared memory / (P * rate * clock) * uneven
//   matrix  sum over types of multiply-adds / (P * rate * clock * share) * uneven
//   cores   instructions of threads / (P * rate * clock * issue) * uneven; f64 has its own rate
//   special special functions / (P * rate * clock) * uneven
//   latency ceil(waves) * (waits for memory * latency + barriers * cost of a barrier)
//   total   launch + norm4(matrix, cores, special, memory, cache, shared) + latency
//           where norm_p(x, …) = (x^p + …)^(1/p): units and transfers overlap with nearly all that
//           goes on beside them. Latency is what nothing hides, and adds to the rest
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_COSTMODEL_H
#define TK_PASSES_MACHINE_COSTMODEL_H

#include "passes/machine/Machine.h"

#include <array>
#include <string>

namespace tk {

/// What limits a launch.
enum class Bound : uint8_t { Memory, Cache, Shared, Matrix, Cores, Special, Latency };
inline constexpr size_t numBounds = 7;
llvm::StringRef nameOf(Bound bound);

/// Types of operands on the matrix unit. `Half` (f16) and `BFloat` (bf16) have one rate.
enum class MatrixType : uint8_t { Half, BFloat, TF32, ByteFloat, ByteInteger, Double };
inline constexpr size_t numMatrixTypes = 6;
llvm::StringRef nameOf(MatrixType type);

/// What a launch does, over all of its blocks where nothing else is said.
struct LaunchWork {
  double blocks = 0;
  double blocksAtOnce = 1; ///< that one multiprocessor holds
  double warps = 4;        ///< of a block
  double heaviest = 1;     ///< the heaviest block's work relative to the mean
  double readBytes = 0;    ///< from device memory
  double writtenBytes = 0; ///< to device memory
  double cacheBytes = 0;   ///< through the second-level cache, read and written
  double sharedBytes = 0;  ///< of shared memory, read and written
  std::array<double, numMatrixTypes> warpgroupProducts = {}; ///< multiply-adds of wgmma
  std::array<double, numMatrixTypes> warpProducts = {};      ///< multiply-adds of mma.sync
  double instructions = 0; ///< of threads on CUDA cores, but for those of f64
  double doubles = 0;      ///< instructions of f64
  double special = 0;      ///< special functions of threads
  double waits = 0;        ///< of the longest block for memory, one after the other
  double barriers = 0;     ///< of the longest block
};

/// Times in nanoseconds.
struct Prediction {
  std::array<double, numBounds> parts = {};
  double launch = 0;     ///< before its first block starts
  double begin = 0;      ///< its first blocks start, its last ones end
  double overlapped = 0; ///< what the norm makes of all parts but the latency
  double total = 0;      ///< launch + begin + overlapped + latency
  double uneven = 1;     ///< see the top; a factor of the parts shared, matrix, cores and special
  double waves = 0;
  Bound bound = Bound::Memory;

  double of(Bound part) const { return parts[static_cast<size_t>(part)]; }
};

/// The constants of cost, in nanoseconds and bytes; each with its source.
namespace cost {

/// What one more launch costs: it is queued, its blocks start, and the machine empties at its end.
/// The value by which passes decide.
inline constexpr double launch = 2500;
/// Of that, while the launch runs: its first blocks start and its last ones end. Launches on an
/// H200 that do next to nothing run for 0.8 to 1.6 us.
inline constexpr double launchThatRuns = 1000;
/// To read or write a byte of device memory, as measured on an H200: 3700 GB/s.
/// The value by which passes decide whether to store an operand in another form.
inline constexpr double byte = 2.7e-4;
/// What a wait for device memory adds to the other times. The data is in a register after about
/// 650 ns under load, of which other warps hide the rest. Fitted to 238 launches on an H200, as
/// are the next one and the norm's exponent
/// (lab/results/2026-11-29-h200-chains-sparse-meshes.md).
inline constexpr double memoryLatency = 350;
/// What a meeting of a block's threads adds.
inline constexpr double barrier = 30;
/// The part of that where warps have roles: other warps compute while some meet. Fitted, too.
inline constexpr double shareOfRingBarriers = 0.2;
/// Bytes a clock that one multiprocessor can have on their way from memory: what its outstanding
/// accesses allow. Assumed.
inline constexpr double bytesOfClock = 40;
/// Instructions that schedulers issue in a clock at the boost clock, of the one that they could:
/// dependences, and integers and moves that the model does not see. Pairwise sums of NVRTC's
/// 18 to 19 instructions an element (kde, nbody) reach 0.76 to 0.79 on an H200.
inline constexpr double issueShare = 0.78;
/// Warps that one multiprocessor needs to keep its schedulers busy. Assumed.
inline constexpr double warpsThatFill = 8;
/// The rate of mma.sync on a machine with wgmma, relative to it. Assumed.
inline constexpr double shareOfWarpProducts = 0.62;

/// Nanoseconds that a byte of device memory takes on the machine.
double ofByte(const Machine &machine);
/// Nanoseconds to store a value of so many bytes in scratch and to read it back once: through the
/// second-level cache while it fits in half of that, through memory beyond, and one more launch.
double ofScratch(const Machine &machine, double bytes);
/// Nanoseconds to compute `operations` of the CUDA cores again, so many times more than once.
double ofRecomputation(const Machine &machine, double operations, double times);

} // namespace cost

/// Multiply-adds that the matrix unit of one multiprocessor does in a clock.
double matrixRate(const Architecture &architecture, MatrixType type);

Prediction predict(const LaunchWork &work, const Machine &machine);

/// Whether the part of the time contains the factor `uneven`.
bool isUnevenPart(Bound part);

/// The rates at which a machine bounds a launch, whatever the launch reaches of them.
struct Roofs {
  double bytes = 0;         ///< of device memory, in a nanosecond
  double operations = 0;    ///< of the fastest unit that the launch uses, in a nanosecond
  std::string operationsOf; ///< that unit: a type of the matrix unit, or "CUDA cores"
};
Roofs roofsOf(const LaunchWork &work, const Machine &machine);

/// The share that each part has in what the norms make of the parts: by how much the time grows
/// where the part does. They add up to 1.
std::array<double, numBounds> sharesOfParts(const Prediction &prediction);

} // namespace tk

#endif // TK_PASSES_MACHINE_COSTMODEL_H
