//===- WarpArrivals.h - arrivals that speak for a warp ----------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_CUDA_WARPARRIVALS_H
#define TK_COMPILER_CODEGEN_CUDA_WARPARRIVALS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk::cuda {

/// Can lane 0 come to `arrive` while another lane of its warp still waits for a stage of the same
/// ring? `phases` are those that the arrival completes.
bool canLanesWaitBefore(mlir::Operation *arrive, mlir::Value phases);

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_WARPARRIVALS_H
