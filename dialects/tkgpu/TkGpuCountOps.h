//===- TkGpuCountOps.h - last-block reductions ------------------*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUCOUNTOPS_H
#define TK_DIALECTS_TKGPU_TKGPUCOUNTOPS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuCountOps.h.inc"

#endif // TK_DIALECTS_TKGPU_TKGPUCOUNTOPS_H
