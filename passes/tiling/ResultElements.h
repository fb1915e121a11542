//===- ResultElements.h - elements without tiles ----------------*- C++ -*-===//
//
// A masked weight is 0, and 0 times an element that is NaN or infinite is NaN. A tile multiplies
// all its rows with the same elements, whether a row sees them or not. Beside such a kernel stands
// how one element of its result is computed alone, term by term (tkgpu.element).
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TILING_RESULTELEMENTS_H
#define TK_PASSES_TILING_RESULTELEMENTS_H

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/PresentTerms.h"

namespace tk {

/// An element of one result of a compute op, as a function of its place.
struct ResultElement {
  unsigned result = 0;
  /// Of a sum of softmax numerators: the result that is the row's reference, which they are under.
  std::optional<unsigned> reference;
  /// It depends on more elements of the tile that the result replaces than on itself.
  bool readsTile = false;
  gpu::FuncOp function;
  llvm::SmallVector<mlir::Value> arguments;           ///< of the function, as values of the kernel
  llvm::SmallVector<std::optional<unsigned>> indices; ///< which of them are the place, by axis

  /// The arguments that are no place.
  llvm::SmallVector<mlir::Value> getTaken() const;
};

/// Builds the elements of all results of `compute` with masks that differ between rows of a tile.
mlir::FailureOr<llvm::SmallVector<ResultElement, 0>>
buildElements(mlir::OpBuilder &builder, KernelOp kernel, ComputeOp compute,
              gpu::ScheduleAttr schedule, const PresentTerms &present);

/// Makes `element` one of `function`, which takes `arguments`. Its own function goes.
void placeElement(ResultElement &element, gpu::FuncOp function,
                  llvm::ArrayRef<mlir::Value> arguments);

} // namespace tk

#endif // TK_PASSES_TILING_RESULTELEMENTS_H
