//===- TkGpuRecurrenceOps.h - linear recurrences along an axis --*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPURECURRENCEOPS_H
#define TK_DIALECTS_TKGPU_TKGPURECURRENCEOPS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuRecurrenceOps.h.inc"

namespace tk::gpu {

/// Bytes that a block needs to exchange the pairs of decay and element of its warps.
int64_t recurrenceBytes(RecurrenceOp recurrence, FuncOp function);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPURECURRENCEOPS_H
