//===- Machine.h - the machine that code is compiled for --------*- C++ -*-===//
//
// One description of the target for all passes: what its architecture can do (Architectures.def)
// and how large and fast the product is (Devices.def). Passes ask hasFeature() for an instruction,
// never for a number of an architecture.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_MACHINE_H
#define TK_PASSES_MACHINE_MACHINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace tk::gpu {
class TargetAttr;
} // namespace tk::gpu

namespace tk {

/// What the compiler may emit for an architecture.
enum class Feature : uint8_t {
  AsyncCopies,       ///< cp.async: threads copy to shared memory without registers
  ByteFloats,        ///< products of 8-bit floats
  Clusters,          ///< blocks that reach each other's shared memory
  LaunchOverlap,     ///< programmatic dependent launch
  BulkCopies,        ///< TMA loads and stores of boxes
  WarpgroupProducts, ///< wgmma
  RegisterTargets,   ///< setmaxnreg
  TensorMemory,      ///< tcgen05; no pass emits it
};

/// Facts that are the same from compute capability 8.0 on (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability").
inline constexpr int64_t lanesOfWarp = 32;
inline constexpr int64_t warpsOfWarpgroup = 4;
inline constexpr int64_t threadsOfWarpgroup = warpsOfWarpgroup * lanesOfWarp;
inline constexpr int64_t schedulersOfProcessor = 4;
inline constexpr int64_t mostWarpsOfBlock = 32;
inline constexpr int64_t mostRegistersOfThread = 240;  ///< that setmaxnreg may ask for, of 255
inline constexpr int64_t registersOfThread = 255;      ///< of 32 bits, at most
inline constexpr int64_t registersOfProcessor = 65536; ///< of 32 bits
inline constexpr int64_t registerUnitOfWarp = 256;     ///< a warp's registers are a multiple of it
inline constexpr int64_t registerUnitOfThread = 8;     ///< the same for one of its 32 threads
inline constexpr int64_t sharedUnit = 128;             ///< bytes
inline constexpr int64_t sharedOfSystem = 1024;        ///< bytes that the system takes of a block's
inline constexpr int64_t sharedWithoutOptIn = 48 << 10;
inline constexpr int64_t sectorBytes = 32; ///< what a cache line is filled by
inline constexpr int64_t lineBytes = 128;  ///< of both caches
inline constexpr int64_t vectorBytes = 16; ///< the widest access of a thread
inline constexpr int64_t vectorBits = 8 * vectorBytes;
inline constexpr int64_t sharedRate = 128; ///< bytes a clock from shared memory

/// The second-level cache by which plans are made, whatever the device: an H100's. The driver of an
/// H200 reports 60 MiB.
inline constexpr int64_t cacheBytesOfPlans = 50 << 20;

/// What threads hold of tiles.
inline constexpr int64_t mostOutputsOfThread = 512; ///< beyond, nearly all of them spill
inline constexpr int64_t usualRegistersOfThread = 64;
inline constexpr int64_t usualThreadsOfProcessor = registersOfProcessor / usualRegistersOfThread;

/// Facts of TMA, mbarriers and wgmma (PTX ISA).
inline constexpr int64_t mostExtentOfBox = 256;
inline constexpr size_t mostAxesOfTensorMap = 5;
inline constexpr int64_t swizzleBytes = 128;      ///< the widest swizzle of a tile's row
inline constexpr int64_t swizzleAlignment = 1024; ///< of tiles, bytes after which it repeats
inline constexpr int64_t barrierBytes = 8;        ///< of an mbarrier, and its alignment
inline constexpr int64_t rowsOfWarpgroup = 64;    ///< of one wgmma
inline constexpr int64_t mostColumnsOfWarpgroup = 256;

/// Operations a clock of one multiprocessor.
struct Rates {
  double f32, f64, special;
  double half, tf32, byteFloat, byteInteger, doubles; ///< multiply-adds of the matrix unit
};

/// A row of Architectures.def.
struct Architecture {
  llvm::StringRef name;
  int64_t arch;              ///< compute capability times ten
  int64_t sharedOfBlock;     ///< bytes
  int64_t sharedOfProcessor; ///< bytes
  int64_t warps, blocks;     ///< that a multiprocessor holds
  Rates rates;
  uint32_t features;
  llvm::StringRef device;

  bool has(Feature feature) const { return features >> static_cast<unsigned>(feature) & 1; }
};

/// A row of Devices.def. Rates are in bytes a nanosecond (GB/s), clocks in cycles a nanosecond.
struct DeviceSpec {
  static constexpr double unmeasured = 0;

  llvm::StringRef name;
  int64_t arch;
  int64_t processors;
  double megahertz, datasheetRate, measuredCopyRate, cacheMiB, measuredCacheRate, measuredShare;
  llvm::StringRef source;

  double clock() const { return megahertz * 1e-3; }
  /// Bytes a nanosecond that a long copy moves; 90 % of the datasheet's where nobody has measured.
  double copyRate() const;
  /// Bytes a nanosecond from the second-level cache; 60 bytes a clock and multiprocessor where
  /// nobody has measured.
  double cacheRate() const;
  double cacheBytes() const { return cacheMiB * (1 << 20); }
  /// The share of the matrix unit's peak rate that long products sustain; 80 % where nobody has
  /// measured.
  double matrixShare() const;
};

llvm::ArrayRef<Architecture> allArchitectures();
llvm::ArrayRef<DeviceSpec> allDevices();
/// Null if there is none of that name.
const Architecture *findArchitectureRow(llvm::StringRef name);
const DeviceSpec *findDevice(llvm::StringRef name);

/// The architecture and the product that a module is compiled for.
struct Machine {
  const Architecture *architecture;
  DeviceSpec device;
};

/// The machine of a target attribute; a missing attribute stands for sm_80. The numbers of the
/// attribute (multiprocessors) override those of the device's row.
Machine machineOf(gpu::TargetAttr target);
Machine machineOf(const Architecture &architecture, const DeviceSpec &device);

/// Whether code for `target` may use the feature; false without a target.
bool hasFeature(gpu::TargetAttr target, Feature feature);
/// The lowest compute capability, times ten, with the feature.
int64_t firstArchWith(Feature feature);

} // namespace tk

#endif // TK_PASSES_MACHINE_MACHINE_H
