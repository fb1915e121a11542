//===- WindowSteps.h - the steps of a window's tiles ------------*- C++ -*-===//
//
// What passes on windows look for: the loop over tiles of a consumer's program whose tiles overlap
// (tk-overlap-tiles), its first steps, its loop over further ones, their masks and their rings.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PIPELINE_WINDOWSTEPS_H
#define TK_PASSES_PIPELINE_WINDOWSTEPS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace tk {

/// A ring's stage in a step, and where the ring goes on.
struct RingPlace {
  gpu::PhaseWaitOp enter;
  gpu::StageOp stage;
  gpu::PhaseArriveOp leave;
  mlir::arith::SelectOp nextSlot, nextParity;
};

/// A step's mask: rows' terms are those from `lower` to `upper`, one number a row.
struct RowMask {
  mlir::scf::IfOp branch;
  mlir::arith::CmpIOp beforeLower, behindUpper; ///< where the step needs it
  mlir::Value lower, upper, terms;
};

/// A first step: of a tile by itself, or under the end of the tile before.
struct OpeningStep {
  gpu::WarpgroupDotOp dot;
  gpu::WarpgroupWaitOp wait;
  RingPlace keys;
  RowMask mask;
};

/// Tiles of two products in a chain, whose rows begin and end within steps of as many terms as a
/// tile has rows. In names, the right operand of the first product is the keys', of the second the
/// values'.
struct WindowSteps {
  gpu::WarpRolesOp roles;
  mlir::scf::ForOp tiles;
  mlir::scf::ForOp steps;  ///< but the first
  mlir::scf::IfOp branch;  ///< whether the tile has steps
  mlir::scf::IfOp begun;   ///< whether the tile before has begun this one
  mlir::scf::IfOp closing; ///< whether the next tile begins under the end of this one
  OpeningStep own, next;
  RowMask mask; ///< of the steps
  RingPlace keys, values;
  gpu::WarpgroupDotOp scores, sums;
  gpu::WarpgroupWaitOp scoresWait, sumsWait;
  unsigned weightsOfBegun = 0, weightsOfClosing = 0; ///< which results weights of first steps are
  mlir::scf::ForOp copies;                           ///< the steps of the copies' program
  int64_t rows = 0;                                  ///< as many as a step has terms
  RingPlace ofRows;                                  ///< a tile's rows, in one of two stages
  /// Where results lie before they are stored, if they are as large as the rows; else null.
  gpu::AllocSharedOp results;
};

/// The steps of a loop over tiles, if all its copies are of whole steps and its masks follow from
/// where tiles are; two warpgroups, each with half of a tile's rows.
std::optional<WindowSteps> matchWindowSteps(mlir::scf::ForOp tiles, gpu::WarpRolesOp roles);

/// The mask of a step's scores, if `branch` does nothing else and rows' bounds rise by one from row
/// to row.
std::optional<RowMask> matchMask(mlir::scf::IfOp branch, mlir::Value scores);

/// Are rows that no end of a sequence cuts a multiple of steps long, and at least `least` steps?
bool areWholeSteps(const WindowSteps &window, int64_t least);

/// What copies the tiles of `place` in a step: it waits for the stage, announces the bytes and
/// copies them. Empty if it is something else.
llvm::SmallVector<mlir::Operation *> findCopyOf(mlir::scf::ForOp copies, RingPlace place);

} // namespace tk

#endif // TK_PASSES_PIPELINE_WINDOWSTEPS_H
