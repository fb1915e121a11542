//===- Machine.cpp - the tables of architectures and devices --------------===//
#include "passes/machine/Machine.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <string>

using namespace mlir;

namespace tk {
namespace {

/// Bits of Architecture::features, for the expressions in Architectures.def.
enum FeatureBits : uint32_t {
#define TK_FEATURE_BIT(NAME) NAME = 1U << static_cast<unsigned>(Feature::NAME)
  TK_FEATURE_BIT(AsyncCopies),
  TK_FEATURE_BIT(ByteFloats),
  TK_FEATURE_BIT(Clusters),
  TK_FEATURE_BIT(LaunchOverlap),
  TK_FEATURE_BIT(BulkCopies),
  TK_FEATURE_BIT(WarpgroupProducts),
  TK_FEATURE_BIT(RegisterTargets),
  TK_FEATURE_BIT(TensorMemory),
#undef TK_FEATURE_BIT
};

#define LIMITS(BLOCK, PROCESSOR, WARPS, BLOCKS) BLOCK, PROCESSOR, WARPS, BLOCKS
#define RATES(...) {__VA_ARGS__}
#define TK_ARCHITECTURE(NAME, ARCH, LIMITS, RATES, FEATURES, DEVICE)                               \
  {NAME, ARCH, LIMITS, RATES, FEATURES, DEVICE},
const Architecture architectures[] = {
#include "passes/machine/Architectures.def"
};
#undef LIMITS
#undef RATES

constexpr double unmeasured = DeviceSpec::unmeasured;
#define TK_DEVICE(NAME, ARCH, PROCESSORS, CLOCK, MEMORY, COPY, CACHE, CACHE_RATE, SHARE, SOURCE)   \
  {NAME, ARCH, PROCESSORS, CLOCK, MEMORY, COPY, CACHE, CACHE_RATE, SHARE, SOURCE},
const DeviceSpec devices[] = {
#include "passes/machine/Devices.def"
};

// Assumptions for figures that nobody has measured; see DeviceSpec.
constexpr double shareOfDatasheet = 0.9;
constexpr double cacheBytesOfClock = 60;
constexpr double shareOfMatrixPeak = 0.8;

} // namespace

double DeviceSpec::copyRate() const {
  return measuredCopyRate > 0 ? measuredCopyRate : shareOfDatasheet * datasheetRate;
}

double DeviceSpec::cacheRate() const {
  return measuredCacheRate > 0 ? measuredCacheRate
                               : cacheBytesOfClock * static_cast<double>(processors) * clock();
}

double DeviceSpec::matrixShare() const {
  return measuredShare > 0 ? measuredShare / 100 : shareOfMatrixPeak;
}

llvm::ArrayRef<Architecture> allArchitectures() { return architectures; }
llvm::ArrayRef<DeviceSpec> allDevices() { return devices; }

const Architecture *findArchitectureRow(llvm::StringRef name) {
  const auto *row = llvm::find_if(architectures, [&](auto &row) { return row.name == name; });
  return row == std::end(architectures) ? nullptr : row;
}

/// A device's name without case, separators, the vendor and the size of the memory: "h100" of
/// "NVIDIA H100 80GB HBM3".
static std::string plainNameOf(llvm::StringRef name) {
  std::string plain;
  auto isNoise = [](llvm::StringRef word) {
    return word == "nvidia" || word == "geforce" || word.starts_with("hbm") ||
           (word.ends_with("gb") && llvm::all_of(word.drop_back(2), llvm::isDigit));
  };
  for (size_t begin = 0; begin < name.size();) {
    llvm::StringRef word = name.substr(begin).take_while(llvm::isAlnum);
    if (std::string lower = word.lower(); !isNoise(lower))
      plain += lower;
    begin += word.size() + 1;
  }
  return plain;
}

const DeviceSpec *findDevice(llvm::StringRef name) {
  // Passes ask for a row's own name, which takes no words apart.
  const auto *exact = llvm::find_if(devices, [&](auto &row) { return row.name == name; });
  if (exact != std::end(devices))
    return exact;
  auto find = [](llvm::StringRef plain) -> const DeviceSpec * {
    const auto *row =
        llvm::find_if(devices, [&](auto &row) { return plainNameOf(row.name) == plain; });
    return row == std::end(devices) ? nullptr : row;
  };
  const std::string plain = plainNameOf(name);
  if (const DeviceSpec *row = find(plain))
    return row;
  // A row without a form factor is of the usual one, which is SXM for those that have several.
  const size_t form = plain.rfind("sxm");
  const bool hasForm =
      form != std::string::npos && llvm::all_of(plain.substr(form + 3), llvm::isDigit);
  return hasForm ? find(llvm::StringRef(plain).take_front(form)) : nullptr;
}

/// The row of a compute capability, or of the last one before it. Of two rows of one capability
/// the attribute's flag chooses: sm_90a has warpgroup products, sm_90 has not.
static const Architecture *rowOf(int64_t arch, bool hasWarpgroups) {
  const Architecture *found = &architectures[0];
  for (const Architecture &row : architectures)
    if (row.arch <= arch && row.has(Feature::WarpgroupProducts) == hasWarpgroups &&
        (row.arch > found->arch || found->has(Feature::WarpgroupProducts) != hasWarpgroups))
      found = &row;
  return found;
}

Machine machineOf(const Architecture &architecture, const DeviceSpec &device) {
  return {&architecture, device};
}

Machine machineOf(gpu::TargetAttr target) {
  const Architecture *row = target ? rowOf(target.getArch(), target.getHopper()) : architectures;
  Machine machine{row, *findDevice(row->device)};
  if (target)
    machine.device.processors = target.getProcessors();
  return machine;
}

bool hasFeature(gpu::TargetAttr target, Feature feature) {
  return target && rowOf(target.getArch(), target.getHopper())->has(feature);
}

int64_t firstArchWith(Feature feature) {
  const auto *row = llvm::find_if(architectures, [&](auto &row) { return row.has(feature); });
  return row->arch;
}

} // namespace tk
