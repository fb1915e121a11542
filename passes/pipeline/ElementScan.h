//===- ElementScan.h - one element of a result, term by term ----*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_ELEMENTSCAN_H
#define TK_PASSES_PIPELINE_ELEMENTSCAN_H

#include "dialects/tkgpu/TkGpuFiniteOps.h"

#include "mlir/IR/IRMapping.h"

namespace tk {

/// Adds what computes `element` for the arguments that `mapping` holds; returns its value. If the
/// element is under a reference, `reference` is the one that the value is for.
mlir::Value addElement(mlir::OpBuilder &builder, gpu::ElementOp element,
                       const mlir::IRMapping &mapping, mlir::Value reference = {});

} // namespace tk

#endif // TK_PASSES_PIPELINE_ELEMENTSCAN_H
