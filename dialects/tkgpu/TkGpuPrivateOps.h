//===- TkGpuPrivateOps.h - stores to thread-private staging -----*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUPRIVATEOPS_H
#define TK_DIALECTS_TKGPU_TKGPUPRIVATEOPS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuPrivateOps.h.inc"

#endif // TK_DIALECTS_TKGPU_TKGPUPRIVATEOPS_H
