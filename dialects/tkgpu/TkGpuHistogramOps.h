//===- TkGpuHistogramOps.h - sums by a key in shared memory -----*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUHISTOGRAMOPS_H
#define TK_DIALECTS_TKGPU_TKGPUHISTOGRAMOPS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuHistogramOps.h.inc"

#endif // TK_DIALECTS_TKGPU_TKGPUHISTOGRAMOPS_H
