//===- Limits.cpp - what limits each kind of parallelism ------------------===//
//
// For each axis, the time of the products that its collectives can run beside is compared with the
// time of these collectives, and the size at which both are equal is computed:
//
//   dp   tokens of a data-parallel rank        C g / (4 A) * weights / active weights
//        (C / W for gradients of two bytes, where A = W / 2)
//   tp   the degree                            2 * matrices * F / C / (b / W_gather + w /
//   W_scatter)
//        (F W / C for two matrices and two bytes)
//   ep   the hidden size F of an expert        C n^2 b min(k / n, 1) / (A matrices k)
//   pp   microbatches for a bubble of a tenth  9 (stages - 1) / chunks
//
// C: sustained operations of the matrix unit; g, b, w: bytes of a gradient, of an element, of a
// partial sum; A: bytes of the array a nanosecond of the collective, with its (N - 1) / N.
//
//===----------------------------------------------------------------------===//
#include "compiler/step/Step.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace llvm;
using tk::network::Collective;

namespace tk::step {
namespace {

/// Sums over rows of the step.
struct Sums {
  double math = 0, comms = 0;
  const Row *longest = nullptr;
};

Sums sumsOf(const std::vector<Row> &rows, function_ref<bool(const Row &)> isLaunch,
            function_ref<bool(const Row &)> isComms) {
  Sums sums;
  for (const Row &row : rows) {
    if (!row.isCollective() && isLaunch(row))
      sums.math += row.count * row.total;
    if (!row.isCollective() || !isComms(row))
      continue;
    sums.comms += row.count * row.total;
    if (!sums.longest || row.count * row.total > sums.longest->count * sums.longest->total)
      sums.longest = &row;
  }
  return sums;
}

bool isOfExperts(const Row &row) { return StringRef(row.name).contains(".expert_"); }

Limit limitFrom(const Placement &at, Parallelism of, const Sums &sums) {
  Limit limit;
  limit.parallelism = of;
  limit.math = sums.math;
  limit.comms = sums.comms;
  limit.isBoundByMath = sums.math >= sums.comms;
  if (sums.longest)
    limit.level = at.network.levels[sums.longest->comms.level].name;
  return limit;
}

Limit ofData(const Placement &at, const std::vector<Row> &rows, Parallelism of) {
  const Block &block = at.block;
  const bool isExperts = of == Parallelism::ExpertData;
  // The gradients are complete in the last microbatch only: its backward pass is compared.
  Limit limit = limitFrom(
      at, of,
      sumsOf(
          rows,
          [&](const Row &row) {
            return row.phase == Phase::Backward && isOfExperts(row) == isExperts;
          },
          [&](const Row &row) { return row.phase == Phase::Update && row.parallelism == of; }));
  const double rate = network::bandwidthOf(at.network, at.group(of), Collective::AllReduce);
  const double spread =
      isExperts ? double(block.experts.count) / double(block.experts.topK) / at.experts() : 1;
  limit.quantity = "tokens of a data-parallel rank in a microbatch";
  limit.value = at.rows();
  limit.limit = sustainedRate(block.type, at.machine) * block.gradients.bytes / (4 * rate) * spread;
  limit.formula =
      isExperts ? "at least C/W * gradient bytes/2 * E/(k ep)" : "at least C/W * gradient bytes/2";
  limit.holds = limit.value >= limit.limit;
  return limit;
}

Limit ofTensor(const Placement &at, const std::vector<Row> &rows) {
  const Block &block = at.block;
  Limit limit = limitFrom(
      at, Parallelism::Tensor,
      sumsOf(
          rows, [](const Row &row) { return row.phase != Phase::Update && row.launch.flops > 0; },
          [](const Row &row) { return row.parallelism == Parallelism::Tensor; }));
  const network::Group &group = at.group(Parallelism::Tensor);
  const double gather = network::bandwidthOf(at.network, group, Collective::AllGather),
               scatter = network::bandwidthOf(at.network, group, Collective::ReduceScatter);
  const bool hasExperts = block.experts.count > 0;
  const double hidden =
      double(hasExperts ? block.experts.hidden * std::max<int64_t>(block.experts.shared, 1)
                        : block.hidden);
  limit.quantity = "degree of tp";
  limit.value = at.tensor();
  limit.limit = 2 * block.matrices() * hidden / sustainedRate(block.type, at.machine) /
                (block.type.bytes / gather + block.wire.bytes / scatter);
  limit.formula = "at most F W/C * matrices/2";
  limit.holds = limit.value <= limit.limit;
  return limit;
}

Limit ofExperts(const Placement &at, const std::vector<Row> &rows) {
  const Block &block = at.block;
  Limit limit = limitFrom(
      at, Parallelism::Experts,
      sumsOf(
          rows, [](const Row &row) { return row.phase != Phase::Update && isOfExperts(row); },
          [](const Row &row) { return row.parallelism == Parallelism::Experts; }));
  const double ranks = at.experts(), topK = double(block.experts.topK);
  const double rate =
      network::bandwidthOf(at.network, at.group(Parallelism::Experts), Collective::AllToAll);
  limit.quantity = "hidden size of an expert";
  limit.value = double(block.experts.hidden);
  limit.limit = sustainedRate(block.type, at.machine) * ranks * ranks * block.type.bytes *
                network::partOfTopK(topK, ranks) / (rate * block.matrices() * topK);
  limit.formula = "at least 2 C/W * (N-1) min(k/N, 1)/(matrices k)";
  limit.holds = limit.value >= limit.limit;
  return limit;
}

Limit ofPipeline(const Placement &at, const std::vector<Row> &rows) {
  constexpr double stagesOfTenth = 9; // (p - 1) / (m + p - 1) <= 1/10
  Limit limit =
      limitFrom(at, Parallelism::Pipeline,
                sumsOf(
                    rows, [](const Row &row) { return row.phase != Phase::Update; },
                    [](const Row &row) { return row.parallelism == Parallelism::Pipeline; }));
  limit.quantity = "microbatches, for a bubble of a tenth";
  limit.value = double(at.block.microbatches);
  limit.limit = stagesOfTenth * (at.stages() - 1) / double(at.block.chunks);
  limit.formula = "at least 9 (stages - 1)/chunks";
  limit.holds = limit.value >= limit.limit;
  return limit;
}

} // namespace

std::vector<Limit> limitsOf(const Placement &at, const std::vector<Row> &rows) {
  std::vector<Limit> limits;
  if (at.size(Parallelism::Data) > 1)
    limits.push_back(ofData(at, rows, Parallelism::Data));
  if (at.block.experts.count && at.size(Parallelism::ExpertData) > 1)
    limits.push_back(ofData(at, rows, Parallelism::ExpertData));
  if (at.tensor() > 1)
    limits.push_back(ofTensor(at, rows));
  if (at.experts() > 1)
    limits.push_back(ofExperts(at, rows));
  if (at.stages() > 1)
    limits.push_back(ofPipeline(at, rows));
  return limits;
}

} // namespace tk::step
