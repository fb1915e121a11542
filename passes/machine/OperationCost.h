//===- OperationCost.h - what an operation of a tile costs ------*- C++ -*-===//
#ifndef TK_PASSES_MACHINE_OPERATIONCOST_H
#define TK_PASSES_MACHINE_OPERATIONCOST_H

#include "passes/machine/CostModel.h"

#include "mlir/IR/Operation.h"

namespace tk {

/// What one element of a result costs.
struct ElementCost {
  double instructions = 0; ///< on CUDA cores
  double doubles = 0;      ///< those of f64
  double special = 0;
  double operations = 0; ///< as WorkCount counts them: 0 for conversions and choices
};

/// Of an elementwise operation of `arith`, `math`, `tk` or `tkgpu` on floats or integers.
ElementCost elementCost(mlir::Operation *op);

/// Elements of a tile's type; 1 for a scalar.
double countElements(mlir::Type type);
/// Elements that threads compute: those that several threads hold count for each.
double countThreadElements(mlir::Type type);
/// Bytes of an element in memory.
double elementBytes(mlir::Type element);

/// The type of operands that the matrix unit multiplies; nothing if CUDA cores do.
std::optional<MatrixType> matrixTypeOf(mlir::Type operand, bool isRounded);

} // namespace tk

#endif // TK_PASSES_MACHINE_OPERATIONCOST_H
