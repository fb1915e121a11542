//===- Step.cpp - the predicted time of a training step -------------------===//
#include "compiler/step/Step.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace llvm;

namespace tk::step {

double StepPrediction::rate() const {
  return flops / time.step / double(placement.mesh.numDevices());
}

namespace {

/// A collective hides as much of its transfer as its launch still lasts beside others.
void hideBesideLaunches(std::vector<Row> &rows) {
  std::vector<double> left;
  for (const Row &row : rows)
    left.push_back(row.total);
  for (Row &row : rows) {
    if (row.beside < 0)
      continue;
    double &rest = left[size_t(row.beside)];
    // Of a measured collective the latency is not known: the predicted one is taken.
    row.hidden = std::max(std::min(row.total - row.comms.latency, rest), 0.0);
    rest -= row.hidden;
  }
}

double sumOf(ArrayRef<Row> rows, Phase phase) {
  double sum = 0;
  for (const Row &row : rows)
    if (row.phase == phase && row.parallelism != Parallelism::Pipeline)
      sum += row.count * (row.total - row.hidden);
  return sum;
}

/// Gradients are reduced layer by layer. Those of the layer that the backward pass ends with wait
/// for it.
void hideGradients(std::vector<Row> &rows, double layers, StepTime &time, bool hides) {
  double all = 0, first = 0;
  for (const Row &row : rows)
    if (row.phase == Phase::Update && row.isCollective()) {
      all += row.count * row.total;
      first += row.count > 1 ? row.total : 0;
    }
  const double under = time.backward * std::max(layers - 1, 0.0) / std::max(layers, 1.0);
  const double hidden = hides ? std::min(std::max(all - first, 0.0), under) : 0;
  time.hiddenGradients = hidden;
  time.gradients = all - hidden;
  for (Row &row : rows)
    if (row.phase == Phase::Update && row.isCollective() && all > 0)
      row.hidden = row.total * hidden / all;
}

/// Weights of a layer are gathered under the launches of the one before it; those of the first
/// layer of a pass are exposed.
void hideWeights(std::vector<Row> &rows, double layers, Phase phase) {
  auto isGather = [&](const Row &row) {
    return row.phase == phase &&
           (row.parallelism == Parallelism::Data || row.parallelism == Parallelism::ExpertData);
  };
  double launches = 0, gathers = 0;
  for (const Row &row : rows)
    if (row.phase == phase && !row.isCollective())
      launches += row.count * row.total;
    else if (isGather(row))
      gathers += row.count * row.total;
  const double later = std::max(layers - 1, 0.0) / std::max(layers, 1.0);
  const double hidden = std::min(gathers, launches) * later;
  for (Row &row : rows)
    if (isGather(row) && gathers > 0)
      row.hidden = row.total * hidden / gathers;
}

StepTime timeOf(std::vector<Row> &rows, const Stage &stage, const Placement &placement,
                const StepOptions &options) {
  StepTime time;
  if (options.overlap == Overlap::All)
    hideBesideLaunches(rows);
  if (options.overlap != Overlap::None)
    for (Phase phase : {Phase::Forward, Phase::Backward})
      hideWeights(rows, stage.layers(), phase);
  time.forward = sumOf(rows, Phase::Forward);
  time.backward = sumOf(rows, Phase::Backward);
  hideGradients(rows, stage.layers(), time, options.overlap != Overlap::None);
  double hopForward = 0, hopBackward = 0;
  for (const Row &row : rows) {
    if (row.parallelism == Parallelism::Pipeline)
      (row.phase == Phase::Forward ? hopForward : hopBackward) += row.total;
    if (row.phase == Phase::Update && !row.isCollective())
      time.optimizer += row.total;
  }
  const double stages = placement.stages(), chunks = double(placement.block.chunks),
               microbatches = double(placement.block.microbatches);
  // Sends of the fill and of the drain are exposed; with no overlap, those of each microbatch.
  const double fill = stages * chunks - 1;
  const double sends = options.overlap == Overlap::None ? fill + (microbatches - 1) * chunks : fill;
  time.hops = (hopForward + hopBackward) * sends;
  // A stage waits for one chunk of each other stage.
  const double waits = (stages - 1) / chunks;
  time.bubble = waits * (time.forward + time.backward);
  time.step = microbatches * (time.forward + time.backward) + time.bubble + time.hops +
              time.gradients + time.optimizer;
  time.forwardStep = (microbatches + waits) * time.forward + hopForward * sends;
  return time;
}

/// Operations of a model's step: each weight is multiplied once forward and twice backward.
double flopsOf(const Block &block, double tokens) {
  const double keys = double(block.sequence) / (block.isCausal ? 2 : 1);
  const double scores = 4 * keys * double(block.heads * block.headSize) * double(block.layers);
  constexpr double passes = 3;
  return passes * tokens * (2 * block.activeWeights() + scores);
}

} // namespace

Expected<StepPrediction> predictStep(const Placement &placement, const StepOptions &options) {
  StepPrediction best;
  std::map<std::string, double> open = options.measured;
  const std::vector<Stage> stages = stagesOf(placement.block, int64_t(placement.stages()));
  for (const auto &[s, stage] : enumerate(stages)) {
    if (is_contained(ArrayRef(stages).take_front(s), stage))
      continue; // it takes as long as the one before
    std::vector<Row> rows = rowsOf(placement, stage);
    // A time may be of a row that other stages have not, such as the head.
    std::map<std::string, double> own;
    for (const Row &row : rows)
      if (auto found = options.measured.find(row.name); found != options.measured.end()) {
        own.insert(*found);
        open.erase(row.name);
      }
    if (Error error = setMeasured(rows, own))
      return error;
    const StepTime time = timeOf(rows, stage, placement, options);
    if (s == 0 || time.forward + time.backward > best.time.forward + best.time.backward) {
      best.time = time;
      best.rows = std::move(rows);
      best.slowest = s;
    }
  }
  if (!open.empty()) // no stage has it: the message names a near one of the slowest stage
    if (Error error = setMeasured(best.rows, open))
      return error;
  best.placement = placement;
  best.stages = stages;
  best.tokens = double(placement.block.batch) * double(placement.block.sequence);
  best.flops = flopsOf(placement.block, best.tokens);
  best.limits = limitsOf(placement, best.rows);
  return best;
}

} // namespace tk::step
