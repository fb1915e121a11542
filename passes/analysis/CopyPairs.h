//===- CopyPairs.h - two computations of one named value --------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_COPYPAIRS_H
#define TK_PASSES_ANALYSIS_COPYPAIRS_H

#include "mlir/IR/Value.h"

namespace tk {

/// Are the copies different elements of the named tensor? They begin as one expression, and read a
/// tensor at different constant places.
bool areApart(mlir::OpResult a, mlir::OpResult b);

/// Are the copies the same computation in loops of one statement over the same ranges? Tiles are
/// those of the statement, so that each loop computes its copy with the same instructions, unless a
/// schedule block, which goes by names, says otherwise. A scan in the terms of another one is the
/// same as beside that.
bool areAlike(mlir::OpResult a, mlir::OpResult b);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_COPYPAIRS_H
