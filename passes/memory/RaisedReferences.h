//===- RaisedReferences.h - references of weights that are at least 0 -----===//
#ifndef TK_PASSES_MEMORY_RAISEDREFERENCES_H
#define TK_PASSES_MEMORY_RAISEDREFERENCES_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// Maxima over rows in a loop, each with the number of what it is joined with and becomes.
using RunningMaxima = llvm::SmallVector<std::pair<gpu::ReduceOp, unsigned>>;

/// Part of tk-compare-as-integers: a loop over a tile's steps without masks that follows one over
/// steps with masks, where the tile before has begun this one (tk-overlap-tiles).
///
/// Where references are free, those of first steps are raised to at least 0. Whether that is so of
/// all rows of a warpgroup is asked where its threads meet anyway, before the tile before is
/// stored, and carried to the next one. Of a tile for which it is not, the loop with masks takes
/// all steps.
class ReferenceRaising {
public:
  ReferenceRaising(mlir::scf::ForOp loop, const RunningMaxima &maxima)
      : loop(loop), maxima(maxima) {}

  bool analyse();
  void apply();

private:
  bool findMasked();
  bool findFirst();
  bool isKnownAtMeeting(mlir::BlockArgument argument);
  bool canAnswer(mlir::Value reference);
  mlir::Value answer(mlir::Value reference);
  mlir::Value answerOfNext();
  void raise(mlir::Value reference);

  mlir::scf::ForOp loop;
  RunningMaxima maxima;
  mlir::scf::ForOp tiles, masked; ///< the loop over tiles; the loop before
  gpu::BarrierOp meeting;         ///< where a warpgroup's threads meet before they store a tile
  mlir::BlockArgument carried;    ///< what the tile before hands on of a tile it has begun
  llvm::SmallVector<mlir::Value> first; ///< references of first steps
};

} // namespace tk

#endif // TK_PASSES_MEMORY_RAISEDREFERENCES_H
