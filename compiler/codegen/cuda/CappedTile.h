//===- CappedTile.h - tiles with a soft cap ----------------------*- C++ -*-===//
//
// What the emitter tells by one call of soft_cap.cuh: factor * tanh(x * scale), with what is added
// to it, and powers of 2 of the sums under references of rows.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_CUDA_CAPPEDTILE_H
#define TK_COMPILER_CODEGEN_CUDA_CAPPEDTILE_H

#include "mlir/IR/Value.h"

#include <string>

namespace tk::cuda {

/// A tile with a soft cap, factor * tanh(x * scale), and what is added to it, which may be null:
/// both factors are numbers for all of it.
struct CappedTile {
  mlir::Value x, scale, factor, added;
  mlir::Value reference;      ///< that weights of the tile are under, if it is they that are wanted
  bool hasSharedRows = false; ///< of the reference, see BoundScores.h
};

/// What is added to register `r` of a capped tile: `sum`, or, where it rises or falls with the
/// column, what all registers have in common and a product.
struct AddedToCap {
  std::string first;          ///< in common; empty: `sum` is all
  std::string factor, column; ///< of the product
  std::string sum;
};

/// References of rows that two of a thread's rows share, and what is added under them.
struct RowReferences {
  std::string name;
  AddedToCap added;
};

/// What a step takes from references of rows: the product of both. The factor is null where it is
/// none, the number where nothing is taken.
struct StepOfReferences {
  mlir::Value factor, number;
};

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_CAPPEDTILE_H
