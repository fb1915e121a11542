//===- TkGpuSortOps.h - rows sorted in shared memory ------------*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUSORTOPS_H
#define TK_DIALECTS_TKGPU_TKGPUSORTOPS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuSortOps.h.inc"

#endif // TK_DIALECTS_TKGPU_TKGPUSORTOPS_H
