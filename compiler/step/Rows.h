//===- Rows.h - the launches and collectives of a step ----------*- C++ -*-===//
//
// A step on one GPU is a list of rows. A row is a launch or a collective with its time, and how
// often it runs in a microbatch, or in the whole step for the update of the weights.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_STEP_ROWS_H
#define TK_COMPILER_STEP_ROWS_H

#include "compiler/step/Launches.h"
#include "compiler/step/Placement.h"

#include <map>

namespace tk::step {

enum class Phase : uint8_t { Forward, Backward, Update };
llvm::StringRef nameOf(Phase phase);

struct Row {
  std::string name; ///< "forward.qkv": what --measured names
  Phase phase = Phase::Forward;
  double count = 1;                            ///< in a microbatch; of the update: in a step
  Launch launch;                               ///< of a launch
  Parallelism parallelism = Parallelism::None; ///< of a collective
  network::Collective collective = network::Collective::AllGather;
  double arrayBytes = 0;         ///< of a collective
  network::CollectiveTime comms; ///< of a collective
  bool feedsNext =
      false;         ///< whether launches behind the collective need its data, not those before
  int beside = -1;   ///< the launch that a collective can run beside; -1: none
  double hidden = 0; ///< nanoseconds of the collective that run beside the launch
  double total = 0;  ///< nanoseconds of one
  bool isMeasured = false;

  bool isCollective() const { return parallelism != Parallelism::None; }
};

/// The layers of one stage of the pipeline.
struct Stage {
  double denseLayers = 0, expertLayers = 0;
  bool hasHead = false;

  double layers() const { return denseLayers + expertLayers; }
  bool operator==(const Stage &) const = default;
};
std::vector<Stage> stagesOf(const Block &block, int64_t stages);

/// All rows of a stage, in their order.
std::vector<Row> rowsOf(const Placement &placement, const Stage &stage);

/// Weights that one GPU of a stage holds.
double weightsOfDevice(const Placement &placement, const Stage &stage);
/// Bytes of these weights, of their gradients, and of Adam's states in f32 (the weight and two
/// moments). Activations are not counted.
double bytesOfWeights(const Placement &placement, const Stage &stage);

/// Replaces times by those that were measured, in nanoseconds. Fails for a name that no row has.
llvm::Error setMeasured(std::vector<Row> &rows, const std::map<std::string, double> &times);
/// Reads a file of times.
llvm::Expected<std::map<std::string, double>> parseTimes(llvm::StringRef text);

} // namespace tk::step

#endif // TK_COMPILER_STEP_ROWS_H
