//===- JoinEnds.h - the two ends of a window are one step -------*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_JOINENDS_H
#define TK_PASSES_PIPELINE_JOINENDS_H

#include "passes/pipeline/WindowSteps.h"

namespace tk {

/// A slot of a ring, and the parity of its phase.
struct RingPosition {
  mlir::Value slot, parity;
};

/// A tile's steps, by the term that they begin with.
struct StepRange {
  mlir::Value last, first; ///< all rows end in the one and begin in the other
  mlir::Value isJoined;    ///< whether the two are one step of work
};

/// Where a tile's rows begin and end: the least and the greatest.
struct RowRange {
  mlir::Value lower, lowerMost, upper, upperMost;
};

/// Rewrites one loop over tiles and the copies for it.
class EndJoiner : WindowSteps {
public:
  explicit EndJoiner(const WindowSteps &window)
      : WindowSteps(window), builder(tiles->getContext()) {}
  void apply();

private:
  // JoinedScores.cpp: the scores of both boundary tiles.
  mlir::Value createHalf(RingPlace place, mlir::Value slot, mlir::Value from);
  mlir::Value createBelow(mlir::Value terms, mlir::Value bound, bool isBelow, mlir::Type tile);
  void joinOpening(OpeningStep &opening, const StepRange &range, bool isKnown);
  mlir::Value hoistScalar(mlir::Value value);
  StepRange joinNext();

  // JoinEnds.cpp: the range of iterations, weights and their products.
  StepRange createRange(mlir::Location loc, const RowRange &ofRows);
  mlir::RankedTensorType typeOfHalf(mlir::RankedTensorType whole);
  mlir::Value splitWeights(mlir::OpOperand &weights, const RowMask &rowMask, const StepRange &range,
                           bool isKnown);
  void carryBeyond(mlir::Value ofOwn, mlir::Value ofNext);
  void createSecondStep(mlir::Block *block, const StepRange &range);
  void joinSecondStep(const StepRange &range);

  // JoinedRings.cpp: what is copied, and where it lies.
  RingPosition advance(mlir::Location loc, RingPosition from, unsigned count = 1);
  void createEnter(RingPlace place, RingPosition at);
  void createLeave(RingPlace place, RingPosition at);
  RingPosition createCopy(llvm::ArrayRef<mlir::Operation *> program, mlir::Value key,
                          RingPosition at);
  void createCopies(mlir::Block *block, const StepRange &range, RingPosition at);
  void orderCopies();
  void placeResults();
  void shareStages();
  void shareSteps();
  void shareClosing();

  // JoinedScores.cpp
  mlir::Value constant(mlir::Location loc, int64_t number);
  mlir::Value ofWarpgroup(mlir::Value a, mlir::Value b);
  mlir::Value choose(mlir::Value condition, mlir::Value a, mlir::Value b);

  mlir::OpBuilder builder;
  int64_t slots = 0;                    ///< of the ring that keys and values share
  mlir::Value beyond;                   ///< weights of a tile's first step
  mlir::Value valuesSlot, valuesParity; ///< where the steps' ring of values was
};

} // namespace tk

#endif // TK_PASSES_PIPELINE_JOINENDS_H
