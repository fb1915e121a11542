//===- CostModel.cpp - how long a launch takes ----------------------------===//
#include "passes/machine/CostModel.h"

#include <algorithm>
#include <cmath>

namespace tk {

llvm::StringRef nameOf(Bound bound) {
  static constexpr llvm::StringLiteral names[] = {
      "memory", "L2", "L1 and shared memory", "matrix unit", "CUDA cores", "special functions",
      "latency"};
  return names[static_cast<size_t>(bound)];
}

llvm::StringRef nameOf(MatrixType type) {
  static constexpr llvm::StringLiteral names[] = {"f16", "bf16", "tf32", "f8", "i8", "f64"};
  return names[static_cast<size_t>(type)];
}

double matrixRate(const Architecture &architecture, MatrixType type) {
  const Rates &rates = architecture.rates;
  switch (type) {
  case MatrixType::Half:
  case MatrixType::BFloat:
    return rates.half;
  case MatrixType::TF32:
    return rates.tf32;
  case MatrixType::ByteFloat:
    return rates.byteFloat;
  case MatrixType::ByteInteger:
    return rates.byteInteger;
  case MatrixType::Double:
    return rates.doubles;
  }
  return 0;
}

namespace cost {

double ofByte(const Machine &machine) { return 1 / machine.device.copyRate(); }

double ofScratch(const Machine &machine, double bytes) {
  const DeviceSpec &device = machine.device;
  const bool stays = bytes <= device.cacheBytes() / 2;
  return launch + 2 * bytes / (stays ? device.cacheRate() : device.copyRate());
}

double ofRecomputation(const Machine &machine, double operations, double times) {
  const double rate = static_cast<double>(machine.device.processors) *
                      machine.architecture->rates.f32 * machine.device.clock() * issueShare;
  return operations * std::max(times - 1, 0.0) / rate;
}

} // namespace cost

namespace {

/// Shares of the machine that a launch can use.
struct Use {
  double processors; ///< all of them
  double busy;       ///< those that have a block
  double uneven;     ///< see the top of CostModel.h
  double issue;      ///< of the issue rate, by how many warps there are
};

Use useOf(const LaunchWork &work, const Machine &machine) {
  const double processors = static_cast<double>(machine.device.processors);
  const double blocks = std::max(work.blocks, 1.0);
  const double busiest = std::max(std::ceil(blocks / processors), work.heaviest);
  const double atOnce = std::min(work.blocksAtOnce, std::ceil(blocks / processors));
  const double warps = std::max(work.warps * atOnce, 1.0);
  return {processors, std::min(blocks, processors), std::max(busiest * processors / blocks, 1.0),
          std::min(warps / cost::warpsThatFill, 1.0) * cost::issueShare};
}

/// The exponent of the norm by which times add up: the larger, the better they overlap.
constexpr double overlap = 4;

/// The time of what overlaps: all parts but the latency.
double overlapped(const Prediction &prediction) {
  double most = 0, sum = 0;
  for (size_t part = 0; part < numBounds; ++part)
    if (static_cast<Bound>(part) != Bound::Latency)
      most = std::max(most, prediction.parts[part]);
  for (size_t part = 0; part < numBounds; ++part)
    if (static_cast<Bound>(part) != Bound::Latency)
      sum += most > 0 ? std::pow(prediction.parts[part] / most, overlap) : 0;
  return most * std::pow(sum, 1 / overlap);
}

double matrixTime(const LaunchWork &work, const Machine &machine) {
  const bool hasWarpgroups = machine.architecture->has(Feature::WarpgroupProducts);
  const double share = hasWarpgroups ? cost::shareOfWarpProducts : 1;
  double cycles = 0;
  for (size_t t = 0; t < numMatrixTypes; ++t) {
    const double rate = matrixRate(*machine.architecture, static_cast<MatrixType>(t));
    if (rate > 0)
      cycles += (work.warpgroupProducts[t] + work.warpProducts[t] / share) / rate;
  }
  return cycles / machine.device.matrixShare();
}

} // namespace

Prediction predict(const LaunchWork &work, const Machine &machine) {
  Prediction result;
  if (work.blocks <= 0)
    return result;
  const DeviceSpec &device = machine.device;
  const Rates &rates = machine.architecture->rates;
  const Use use = useOf(work, machine);
  auto set = [&](Bound bound, double time) { result.parts[static_cast<size_t>(bound)] = time; };
  /// Cycles of all multiprocessors together, as the time of the busiest one.
  auto timeOf = [&](double cycles) {
    return cycles / (use.processors * device.clock()) * use.uneven;
  };
  const double reach = use.busy * cost::bytesOfClock * device.clock();
  set(Bound::Memory, (work.readBytes + work.writtenBytes) / std::min(device.copyRate(), reach));
  set(Bound::Cache, work.cacheBytes / std::min(device.cacheRate(), 2 * reach));
  set(Bound::Shared, timeOf(work.sharedBytes / sharedRate));
  set(Bound::Matrix, timeOf(matrixTime(work, machine)));
  set(Bound::Cores, timeOf((work.instructions / rates.f32 + work.doubles / rates.f64) / use.issue));
  set(Bound::Special, timeOf(work.special / rates.special));
  result.waves = work.blocks / (use.processors * std::max(work.blocksAtOnce, 1.0));
  set(Bound::Latency,
      std::ceil(result.waves) * (work.waits * cost::memoryLatency + work.barriers * cost::barrier));
  for (size_t part = 0; part < numBounds; ++part)
    if (result.parts[part] > result.of(result.bound))
      result.bound = static_cast<Bound>(part);
  result.uneven = use.uneven;
  result.launch = cost::launch - cost::launchThatRuns;
  result.begin = cost::launchThatRuns;
  result.overlapped = overlapped(result);
  result.total = cost::launch + result.overlapped + result.of(Bound::Latency);
  return result;
}

bool isUnevenPart(Bound part) {
  return part == Bound::Shared || part == Bound::Matrix || part == Bound::Cores ||
         part == Bound::Special;
}

Roofs roofsOf(const LaunchWork &work, const Machine &machine) {
  const DeviceSpec &device = machine.device;
  const double cycles = static_cast<double>(device.processors) * device.clock();
  Roofs roofs{device.copyRate(), 2 * machine.architecture->rates.f32 * cycles, "CUDA cores"};
  if (work.doubles > work.instructions)
    roofs.operations = 2 * machine.architecture->rates.f64 * cycles;
  double fastest = 0;
  for (size_t t = 0; t < numMatrixTypes; ++t) {
    const auto type = static_cast<MatrixType>(t);
    const double rate = matrixRate(*machine.architecture, type) * device.matrixShare();
    if (work.warpgroupProducts[t] + work.warpProducts[t] > 0 && rate > fastest) {
      fastest = rate;
      roofs.operations = 2 * rate * cycles;
      roofs.operationsOf = nameOf(type).str() + " on the matrix unit";
    }
  }
  return roofs;
}

std::array<double, numBounds> sharesOfParts(const Prediction &prediction) {
  const double together = prediction.overlapped, all = together + prediction.of(Bound::Latency);
  std::array<double, numBounds> shares = {};
  if (all <= 0)
    return shares;
  for (size_t part = 0; part < numBounds; ++part) {
    // The derivative of the time by a part, times the part, over the time.
    const bool isLatency = static_cast<Bound>(part) == Bound::Latency;
    if (isLatency || together > 0)
      shares[part] = isLatency
                         ? prediction.parts[part] / all
                         : std::pow(prediction.parts[part] / together, overlap) * together / all;
  }
  return shares;
}

} // namespace tk
