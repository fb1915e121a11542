//===- CostReport.cpp - predicted times of launches as text ---------------===//
#include "compiler/CostReport.h"

#include "frontend/Diagnostics.h"

#include <cstdarg>
#include <cstdio>
#include <utility>

namespace tk {
namespace {

/// A program that does more operations than this times what it needs gets a note.
constexpr double mostRecomputation = 2;
/// One that does fewer than this times what it has, too.
constexpr double leastRecomputation = 0.95;

__attribute__((format(printf, 1, 2))) std::string format(const char *pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

double productsOf(const LaunchWork &work, size_t type) {
  return work.warpgroupProducts[type] + work.warpProducts[type];
}

/// Multiply-adds of the matrix unit by type: "5.5e+11 f16".
std::string productsText(const LaunchWork &work) {
  std::string text;
  for (size_t t = 0; t < numMatrixTypes; ++t)
    if (double count = productsOf(work, t); count > 0)
      text += format("%s%.3g %s", text.empty() ? "" : " + ", count,
                     nameOf(static_cast<MatrixType>(t)).str().c_str());
  return text.empty() ? "0" : text;
}

/// Multiprocessors whose shares of the work differ by less than this count as even.
constexpr double leastUneven = 1.02;

/// The parts of a launch's time that contain the factor `uneven`, but those of no time.
std::string unevenParts(const Prediction &time) {
  std::string text;
  for (size_t part = 0; part < numBounds; ++part)
    if (isUnevenPart(static_cast<Bound>(part)) && time.parts[part] > 0)
      text += (text.empty() ? "" : ", ") + nameOf(static_cast<Bound>(part)).str();
  return text;
}

/// How the time of a launch is the sum of others.
void printSum(const Prediction &time) {
  std::printf("  time       %.1f us before the first block + %.1f us first and last blocks + %.1f "
              "us of parts that overlap + %.1f us latency\n",
              time.launch * 1e-3, time.begin * 1e-3, time.overlapped * 1e-3,
              time.of(Bound::Latency) * 1e-3);
  if (const std::string parts = unevenParts(time); time.uneven > leastUneven && !parts.empty())
    std::printf("  uneven     %.2f, the busiest multiprocessor's share of the work over an even "
                "share: a factor of %s\n",
                time.uneven, parts.c_str());
}

/// How much more than the program needs is done; 0 if the program needs no float operation.
double recomputationOf(const PredictedCost &cost) {
  return cost.neededOperations > 0 ? cost.kernel.operations / cost.neededOperations : 0;
}

} // namespace

static std::string textOf(const std::map<std::string, std::string> &texts,
                          const std::string &symbol) {
  auto text = texts.find(symbol);
  return text == texts.end() ? "" : text->second;
}

void printPlan(const PredictedCost &cost, const std::string &symbol) {
  std::printf("  plan       %s\n", textOf(cost.plans, symbol).c_str());
  if (const std::string stages = textOf(cost.pipelines, symbol); !stages.empty())
    std::printf("  pipeline   %s\n", stages.c_str());
}

std::string planJson(const PredictedCost &cost, const std::string &symbol) {
  std::string text = "\"plan\":";
  quoteJson(textOf(cost.plans, symbol), text);
  text += ",\"pipeline\":";
  quoteJson(textOf(cost.pipelines, symbol), text);
  return text;
}

/// Bytes of each tensor: its size, and what moves between it and the device's memory and L2.
static void printTensors(const LaunchCost &cost) {
  const char *label = "tensors";
  for (const TensorCost &tensor : cost.tensors) {
    std::printf("  %-10s %s: %.4g MB", std::exchange(label, ""), tensor.name.c_str(),
                tensor.size * 1e-6);
    if (tensor.cacheRead > 0)
      std::printf(", %.4g MB read, %.4g MB through L2", tensor.memoryRead * 1e-6,
                  tensor.cacheRead * 1e-6);
    if (tensor.memoryWritten > 0)
      std::printf(", %.4g MB written", tensor.memoryWritten * 1e-6);
    std::printf("\n");
  }
}

/// A line with less of a launch's time than this is not printed.
constexpr double leastShareOfLine = 0.005;

/// The lines of the source that a launch computes, with their times.
static void printLines(llvm::ArrayRef<LineTime> lines, double total) {
  const char *label = "lines";
  for (const LineTime &line : lines)
    if (line.nanoseconds >= leastShareOfLine * total)
      std::printf("  %-10s %.1f us for %s:%u: %s\n", std::exchange(label, ""),
                  line.nanoseconds * 1e-3, line.file.c_str(), line.line, line.text.c_str());
}

void printCost(const PredictedCost &predicted, const LaunchCost &cost) {
  const LaunchWork &work = cost.work;
  const Prediction &time = cost.prediction;
  std::printf("  predicted  %.1f us, bound by %s; %.3g wave%s of blocks\n", time.total * 1e-3,
              nameOf(time.bound).str().c_str(), time.waves, time.waves == 1 ? "" : "s");
  std::printf("  bytes      %.4g MB read, %.4g MB written, %.4g MB through L2\n",
              work.readBytes * 1e-6, work.writtenBytes * 1e-6, work.cacheBytes * 1e-6);
  printTensors(cost);
  std::printf("  operations matrix unit %s, CUDA cores %.3g, special functions %.3g\n",
              productsText(work).c_str(), work.instructions + work.doubles, work.special);
  printSum(time);
  if (auto lines = predicted.lines.find(cost.symbol); lines != predicted.lines.end())
    printLines(lines->second, time.total);
  for (const std::string &note : cost.notes)
    std::printf("  note       %s\n", note.c_str());
}

void printTotal(const PredictedCost &cost) {
  const double factor = recomputationOf(cost);
  std::printf("predicted  %.1f us on %s; %.3g operations", cost.kernel.nanoseconds * 1e-3,
              cost.device.c_str(), cost.kernel.operations);
  if (factor > 0)
    std::printf(", %.2f for each of the program as written%s", factor,
                factor > mostRecomputation
                    ? "; note: values are computed again, or tiles are padded"
                : factor < leastRecomputation ? "; masks and shared values leave some out"
                                              : "");
  std::printf("; %.4g MB of scratch\n", cost.kernel.scratchBytes * 1e-6);
  std::printf("least      %.1f us by %s, for %.4g MB at the machine's full rates, with %.1f us of "
              "a launch; "
              "predicted is %.2f times that\n",
              cost.least.nanoseconds * 1e-3, nameOf(cost.least.bound).str().c_str(),
              cost.least.bytes * 1e-6, cost::launch * 1e-3,
              cost.kernel.nanoseconds / cost.least.nanoseconds);
}

std::string costJson(const LaunchCost &cost) {
  const LaunchWork &work = cost.work;
  const Prediction &time = cost.prediction;
  std::string text =
      format("\"predicted_us\":%.6g,\"launch_us\":%.4g,\"begin_us\":%.4g,\"overlapped_us\":%.6g,"
             "\"bound\":\"%s\",\"waves\":%.4g,\"blocks\":%.0f,\"multiprocessors\":%lld,"
             "\"uneven\":%.4g",
             time.total * 1e-3, time.launch * 1e-3, time.begin * 1e-3, time.overlapped * 1e-3,
             nameOf(time.bound).str().c_str(), time.waves, work.blocks,
             static_cast<long long>(cost.processors), time.uneven);
  text += ",\"parts_us\":{";
  for (size_t part = 0; part < numBounds; ++part)
    text += format("%s\"%s\":%.4g", part ? "," : "", nameOf(static_cast<Bound>(part)).str().c_str(),
                   time.parts[part] * 1e-3);
  text +=
      format("},\"roofs\":{\"bytes_per_us\":%.6g,\"operations_per_us\":%.6g,"
             "\"operations_of\":\"%s\"",
             cost.roofs.bytes * 1e3, cost.roofs.operations * 1e3, cost.roofs.operationsOf.c_str());
  text += format("},\"read_bytes\":%.6g,\"written_bytes\":%.6g,\"l2_bytes\":%.6g", work.readBytes,
                 work.writtenBytes, work.cacheBytes);
  text += ",\"matrix_multiply_adds\":{";
  const char *separator = "";
  for (size_t t = 0; t < numMatrixTypes; ++t)
    if (double count = productsOf(work, t); count > 0) {
      text += format("%s\"%s\":%.6g", separator, nameOf(static_cast<MatrixType>(t)).str().c_str(),
                     count);
      separator = ",";
    }
  text += format("},\"core_instructions\":%.6g,\"special_functions\":%.6g,\"operations\":%.6g",
                 work.instructions + work.doubles, work.special, cost.operations);
  text += format(",\"waits\":%.4g,\"barriers\":%.4g,\"heaviest\":%.4g,\"blocks_at_once\":%.4g",
                 work.waits, work.barriers, work.heaviest, work.blocksAtOnce);
  text += ",\"tensors\":[";
  separator = "";
  for (const TensorCost &tensor : cost.tensors) {
    text += format("%s{\"name\":\"%s\",\"bytes\":%.6g,\"l2_read\":%.6g,\"read\":%.6g,"
                   "\"written\":%.6g}",
                   separator, tensor.name.c_str(), tensor.size, tensor.cacheRead, tensor.memoryRead,
                   tensor.memoryWritten);
    separator = ",";
  }
  text += "],\"notes\":[";
  separator = "";
  for (const std::string &note : cost.notes) {
    text += separator;
    quoteJson(note, text);
    separator = ",";
  }
  return text + "]";
}

std::string linesJson(const PredictedCost &cost, const std::string &symbol) {
  std::string text = "\"lines\":[";
  if (auto lines = cost.lines.find(symbol); lines != cost.lines.end())
    for (const LineTime &line : lines->second) {
      text += text.back() == '[' ? "{\"file\":" : ",{\"file\":";
      quoteJson(line.file, text);
      text += format(",\"line\":%u,\"us\":%.6g}", line.line, line.nanoseconds * 1e-3);
    }
  return text + "]";
}

std::string totalJson(const PredictedCost &cost) {
  std::string text = "\"signature\":";
  quoteJson(cost.signature, text);
  return text + format(",\"device\":\"%s\",\"predicted_us\":%.6g,\"operations\":%.6g,"
                       "\"needed_operations\":%.6g,\"needed_bytes\":%.6g,\"recomputation\":%.4g,"
                       "\"scratch_bytes\":%.6g,\"least_us\":%.6g,\"least_launch_us\":%.4g,"
                       "\"least_bound\":\"%s\",\"least_bytes\":%.6g",
                       cost.device.c_str(), cost.kernel.nanoseconds * 1e-3, cost.kernel.operations,
                       cost.neededOperations, cost.neededBytes, recomputationOf(cost),
                       cost.kernel.scratchBytes, cost.least.nanoseconds * 1e-3, cost::launch * 1e-3,
                       nameOf(cost.least.bound).str().c_str(), cost.least.bytes);
}

} // namespace tk
