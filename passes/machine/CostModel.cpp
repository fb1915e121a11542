//===- CostModel.cpp - how long a launch takes ----------------------------===//
#include "passes/machine/CostModel.h"

#include <algorithm>
#include <cmath>

namespace tk {

llvm::StringRef nameOf(Bound bound) {
  static constexpr llvm::StringLiteral names[] = {
      "memory", "L2", "shared memory", "matrix unit", "CUDA cores", "special functions", "latency"};
  return names[static_cast<size_t>(bound)];
}

llvm::StringRef nameOf(MatrixType type) {
  static constexpr llvm::StringLiteral names[] = {"f16", "tf32", "f8", "i8", "f64"};
  return names[static_cast<size_t>(type)];
}

double matrixRate(const Architecture &architecture, MatrixType type) {
  const Rates &rates = architecture.rates;
  switch (type) {
  case MatrixType::Half:
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

/// The exponents of the norms by which times add up: the larger, the better they overlap.
constexpr double overlapOfUnits = 2, overlapOfTransfers = 8;

double norm(std::initializer_list<double> times, double exponent) {
  const double most = std::max(times);
  double sum = 0;
  for (double time : times)
    sum += most > 0 ? std::pow(time / most, exponent) : 0;
  return most * std::pow(sum, 1 / exponent);
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
  const double arithmetic =
      norm({result.of(Bound::Matrix), result.of(Bound::Cores), result.of(Bound::Special)},
           overlapOfUnits);
  result.launch = cost::launch - cost::launchThatRuns;
  result.total = cost::launch + norm({arithmetic, result.of(Bound::Memory), result.of(Bound::Cache),
                                      result.of(Bound::Shared), result.of(Bound::Latency)},
                                     overlapOfTransfers);
  return result;
}

std::array<double, numBounds> sharesOfParts(const Prediction &prediction) {
  const auto units = {prediction.of(Bound::Matrix), prediction.of(Bound::Cores),
                      prediction.of(Bound::Special)};
  const double arithmetic = norm(units, overlapOfUnits);
  const double all = norm({arithmetic, prediction.of(Bound::Memory), prediction.of(Bound::Cache),
                           prediction.of(Bound::Shared), prediction.of(Bound::Latency)},
                          overlapOfTransfers);
  std::array<double, numBounds> shares = {};
  if (all <= 0)
    return shares;
  // The derivative of a norm by a part, times the part, over the norm.
  auto shareOf = [](double part, double whole, double exponent) {
    return whole > 0 ? std::pow(part / whole, exponent) : 0;
  };
  for (size_t part = 0; part < numBounds; ++part) {
    const auto bound = static_cast<Bound>(part);
    const bool isUnit = bound == Bound::Matrix || bound == Bound::Cores || bound == Bound::Special;
    shares[part] = isUnit ? shareOf(prediction.parts[part], arithmetic, overlapOfUnits) *
                                shareOf(arithmetic, all, overlapOfTransfers)
                          : shareOf(prediction.parts[part], all, overlapOfTransfers);
  }
  return shares;
}

} // namespace tk
