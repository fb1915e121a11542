//===- Step.h - the predicted time of a training step -----------*- C++ -*-===//
//
//   forward, backward   a stage's rows of a microbatch, less what is hidden beside launches
//   pipeline            (microbatches + (stages - 1) / chunks) * (forward + backward) + sends of
//   the
//                       fill
//   gradients           reduced under the backward pass of the last microbatch, as far as it lasts
//   step                pipeline + gradients that are exposed + optimizer
//
// The slowest stage gives the pace of the pipeline.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_STEP_STEP_H
#define TK_COMPILER_STEP_STEP_H

#include "compiler/step/Rows.h"

namespace tk::step {

/// Which collectives run beside launches.
enum class Overlap : uint8_t {
  None,      ///< none
  Gradients, ///< the reduction of gradients beside the backward pass, and the gather of sharded
             ///< weights
  All,       ///< also those next to a product, which computes rows as they arrive
};

struct StepOptions {
  Overlap overlap = Overlap::Gradients;
  std::map<std::string, double> measured; ///< nanoseconds by row
};

/// Nanoseconds of one GPU of the slowest stage.
struct StepTime {
  double forward = 0, backward = 0; ///< of one microbatch
  double bubble = 0;                ///< while the stage waits for others
  double hops = 0;                  ///< exposed sends between stages
  double gradients = 0, hiddenGradients = 0;
  double optimizer = 0;
  double step = 0;        ///< the whole training step
  double forwardStep = 0; ///< the forward passes of all microbatches alone
};

/// What limits a kind of parallelism.
struct Limit {
  Parallelism parallelism = Parallelism::None;
  double math = 0, comms = 0; ///< nanoseconds of what is compared
  bool isBoundByMath = true;
  std::string level;    ///< the busiest level of the network
  std::string formula;  ///< "tokens >= C/W * …"
  std::string quantity; ///< what `value` and `limit` are
  double value = 0, limit = 0;
  bool holds = true; ///< whether the value is on the side of the limit that math binds
};

struct StepPrediction {
  Placement placement;
  std::vector<Stage> stages;
  size_t slowest = 0;    ///< stage
  std::vector<Row> rows; ///< of the slowest stage
  StepTime time;
  std::vector<Limit> limits;
  double flops = 0; ///< of the model in a training step, over all GPUs, without recomputation
  double tokens = 0;

  /// Operations a nanosecond and GPU.
  double rate() const;
};

llvm::Expected<StepPrediction> predictStep(const Placement &placement, const StepOptions &options);

/// The limits of the parallelisms that the mesh has.
std::vector<Limit> limitsOf(const Placement &placement, const std::vector<Row> &rows);

} // namespace tk::step

#endif // TK_COMPILER_STEP_STEP_H
