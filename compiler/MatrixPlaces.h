//===- MatrixPlaces.h - source lines of warpgroup products in SASS -*- C++ -*-===//
#ifndef TK_COMPILER_MATRIXPLACES_H
#define TK_COMPILER_MATRIXPLACES_H

#include "compiler/StageText.h"

namespace tk {

/// Gives the warpgroup products of machine code the lines that they have in PTX.
void placeMatrixInstructions(StageText &sass, const StageText &ptx);

} // namespace tk

#endif // TK_COMPILER_MATRIXPLACES_H
