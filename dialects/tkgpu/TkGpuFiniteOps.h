//===- TkGpuFiniteOps.h - values that are not finite ------------*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUFINITEOPS_H
#define TK_DIALECTS_TKGPU_TKGPUFINITEOPS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuFiniteOps.h.inc"

#endif // TK_DIALECTS_TKGPU_TKGPUFINITEOPS_H
