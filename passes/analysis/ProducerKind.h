//===- ProducerKind.h - what a result takes to compute ----------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_PRODUCERKIND_H
#define TK_PASSES_ANALYSIS_PRODUCERKIND_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// What a result of a statement takes to compute.
enum class ProducerKind {
  Pointwise, // no reduction
  Rows,      // reductions that read each input element about once
  Products,  // matrix products, or reductions in reductions
  Scan,      // a prefix reduction
};

ProducerKind classify(mlir::OpResult producer);

/// What the producer's element is computed by, in its statement.
llvm::SmallVector<mlir::Operation *> getProducerSlice(mlir::OpResult producer);

/// True if a result replaces a parameter, which has axes of its own.
bool replacesParameter(KernelOp kernel, ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_PRODUCERKIND_H
