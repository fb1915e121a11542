//===- Report.cpp - a predicted step as text and JSON ---------------------===//
#include "compiler/step/Report.h"
#include "compiler/step/Table.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace llvm;

namespace tk::step {
namespace {

/// Three digits and the unit of the largest step of a thousand.
std::string scaled(double value, ArrayRef<StringRef> units) {
  size_t unit = 0;
  while (unit + 1 < units.size() && value >= 999.5) {
    value /= 1000;
    ++unit;
  }
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::string text;
  raw_string_ostream(text) << format("%.*f ", digits, value) << units[unit];
  return text;
}

} // namespace

std::string timeText(double nanoseconds) {
  if (nanoseconds <= 0)
    return "0";
  return scaled(nanoseconds, {"ns", "us", "ms", "s"});
}

std::string bytesText(double bytes) { return scaled(bytes, {"B", "kB", "MB", "GB", "TB"}); }

std::string boundOf(const StepPrediction &prediction, const Row &row) {
  if (!row.isCollective())
    return nameOf(row.launch.bound).str();
  if (row.comms.latency > row.comms.transfer)
    return "latency";
  const std::string &level = prediction.placement.network.levels[row.comms.level].name;
  return level + (row.comms.inSwitches ? " links, reduced in switches" : " links");
}

std::string verdictOf(const Limit &limit) {
  return limit.isBoundByMath ? "math" : limit.level + " links";
}

std::vector<std::pair<std::string, double>> partsOf(const StepPrediction &prediction) {
  const StepTime &time = prediction.time;
  const double microbatches = double(prediction.placement.block.microbatches);
  std::array<double, 3> sums = {}; // launches, and exposed collectives, of all microbatches
  for (const Row &row : prediction.rows)
    if (row.phase != Phase::Update && row.parallelism != Parallelism::Pipeline) {
      const double all = microbatches * row.count * (row.total - row.hidden);
      sums[row.isCollective() ? 2 : size_t(row.phase)] += all;
    }
  return {{"forward launches", sums[0]},    {"backward launches", sums[1]},
          {"exposed collectives", sums[2]}, {"pipeline bubble", time.bubble},
          {"exposed sends", time.hops},     {"exposed gradients", time.gradients},
          {"optimizer", time.optimizer}};
}

namespace {

std::string countText(double count) {
  std::string text;
  raw_string_ostream(text) << format("%g", count);
  return text;
}

std::string numberText(double value) {
  std::string text;
  raw_string_ostream(text) << format(value < 10 ? "%.1f" : "%.0f", value);
  return text;
}

void printHeader(raw_ostream &os, const StepPrediction &prediction) {
  const Placement &at = prediction.placement;
  os << at.block.name << " on " << at.network.name << ", " << at.mesh.numDevices() << " GPUs ("
     << at.machine.device.name << ")";
  for (Parallelism of :
       {Parallelism::Tensor, Parallelism::Data, Parallelism::Experts, Parallelism::Pipeline})
    if (at.size(of) > 1)
      os << " " << nameOf(of) << "=" << countText(at.size(of));
  os << "\n";
  os << "step of " << at.block.batch << " sequences of " << at.block.sequence << " rows, "
     << at.block.microbatches << " microbatches of " << countText(at.rows())
     << " rows on each data-parallel rank\n\n";
}

void printRows(raw_ostream &os, const StepPrediction &prediction) {
  std::vector<std::vector<std::string>> table = {{"launch or collective", "times", "T_math",
                                                  "T_memory", "T_comms", "hidden", "time",
                                                  "bound"}};
  for (const Row &row : prediction.rows) {
    const bool isLaunch = !row.isCollective();
    std::string name = row.name;
    if (!isLaunch)
      name += (" (" + nameOf(row.collective) + ", " + nameOf(row.parallelism) + ")").str();
    table.push_back({name, countText(row.count), isLaunch ? timeText(row.launch.math) : "",
                     isLaunch ? timeText(row.launch.memory) : "",
                     isLaunch ? "" : timeText(row.comms.total()),
                     row.hidden > 0 ? timeText(row.hidden) : "", timeText(row.total),
                     row.isMeasured ? "measured" : boundOf(prediction, row)});
  }
  os << "stage " << prediction.slowest + 1 << " of " << prediction.stages.size()
     << ", the slowest; `times` counts a microbatch, and a step for the update\n";
  printTable(os, table);
  const Stage &stage = prediction.stages[prediction.slowest];
  os << format("\na GPU of this stage holds %.3g weights: %s with gradients and the optimizer's "
               "states, without activations\n",
               weightsOfDevice(prediction.placement, stage),
               bytesText(bytesOfWeights(prediction.placement, stage)).c_str());
}

void printLimits(raw_ostream &os, const StepPrediction &prediction) {
  if (prediction.limits.empty())
    return;
  std::vector<std::vector<std::string>> table = {
      {"parallelism", "T_math", "T_comms", "bound", "value", "limit", "limit of what"}};
  for (const Limit &limit : prediction.limits)
    table.push_back({nameOf(limit.parallelism).str(), timeText(limit.math), timeText(limit.comms),
                     verdictOf(limit), numberText(limit.value),
                     numberText(limit.limit) + (limit.holds ? "" : " (missed)"),
                     limit.quantity + ": " + limit.formula});
  os << "\n";
  printTable(os, table);
}

} // namespace

std::string textOf(const StepPrediction &prediction) {
  std::string text;
  raw_string_ostream os(text);
  const StepTime &time = prediction.time;
  printHeader(os, prediction);
  printRows(os, prediction);
  printLimits(os, prediction);
  os << "\n";
  for (const auto &[name, part] : partsOf(prediction))
    if (part > 0)
      os << format("%-20s %10s  %4.1f %%\n", name.c_str(), timeText(part).c_str(),
                   100 * part / time.step);
  os << format("%-20s %10s  %.0f TFLOP/s a GPU, %.3g tokens/s\n", "training step",
               timeText(time.step).c_str(), prediction.rate() / 1000,
               prediction.tokens / time.step * 1e9);
  os << format("%-20s %10s\n", "forward step", timeText(time.forwardStep).c_str());
  return text;
}

namespace {

json::Object rowObject(const StepPrediction &prediction, const Row &row) {
  json::Object object{{"name", row.name},
                      {"phase", nameOf(row.phase)},
                      {"count", row.count},
                      {"total_ns", row.total},
                      {"hidden_ns", row.hidden},
                      {"measured", row.isMeasured},
                      {"bound", boundOf(prediction, row)}};
  if (!row.isCollective()) {
    object["math_ns"] = row.launch.math;
    object["memory_ns"] = row.launch.memory;
    object["flops"] = row.launch.flops;
    object["bytes"] = row.launch.bytes;
    return object;
  }
  const network::Network &network = prediction.placement.network;
  object["parallelism"] = nameOf(row.parallelism);
  object["collective"] = nameOf(row.collective);
  object["array_bytes"] = row.arrayBytes;
  object["comms_ns"] = row.comms.total();
  object["latency_ns"] = row.comms.latency;
  object["level"] = network.levels[row.comms.level].name;
  object["protocol"] = network.protocols[row.comms.protocol].name;
  object["reduced_in_switches"] = row.comms.inSwitches;
  if (row.beside >= 0)
    object["beside"] = prediction.rows[size_t(row.beside)].name;
  return object;
}

json::Object limitObject(const Limit &limit) {
  return json::Object{{"parallelism", nameOf(limit.parallelism)},
                      {"math_ns", limit.math},
                      {"comms_ns", limit.comms},
                      {"bound", verdictOf(limit)},
                      {"quantity", limit.quantity},
                      {"formula", limit.formula},
                      {"value", limit.value},
                      {"limit", limit.limit},
                      {"holds", limit.holds}};
}

} // namespace

json::Value jsonOf(const StepPrediction &prediction) {
  const Placement &at = prediction.placement;
  json::Array rows, limits, axes;
  for (const Row &row : prediction.rows)
    rows.push_back(rowObject(prediction, row));
  for (const Limit &limit : prediction.limits)
    limits.push_back(limitObject(limit));
  for (const network::Axis &axis : at.mesh.axes)
    axes.push_back(json::Object{{"name", axis.name}, {"size", axis.size}});
  json::Object parts;
  for (const auto &[name, part] : partsOf(prediction))
    parts[name] = part;
  const StepTime &time = prediction.time;
  return json::Object{
      {"format", "tk step 1"},
      {"model", at.block.name},
      {"network", at.network.name},
      {"device", at.machine.device.name},
      {"gpus", at.mesh.numDevices()},
      {"axes", std::move(axes)},
      {"stage", int64_t(prediction.slowest)},
      {"rows", std::move(rows)},
      {"limits", std::move(limits)},
      {"parts_ns", std::move(parts)},
      {"forward_ns", time.forward},
      {"backward_ns", time.backward},
      {"hidden_gradients_ns", time.hiddenGradients},
      {"step_ns", time.step},
      {"forward_step_ns", time.forwardStep},
      {"tokens", prediction.tokens},
      {"flops", prediction.flops},
      {"weights_of_gpu", weightsOfDevice(at, prediction.stages[prediction.slowest])},
      {"bytes_of_weights", bytesOfWeights(at, prediction.stages[prediction.slowest])}};
}

} // namespace tk::step
