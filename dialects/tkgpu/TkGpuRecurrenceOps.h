//===- TkGpuRecurrenceOps.h - linear recurrences along an axis --*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPURECURRENCEOPS_H
#define TK_DIALECTS_TKGPU_TKGPURECURRENCEOPS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include <optional>

#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuRecurrenceOps.h.inc"

namespace tk::gpu {

/// How a block joins the runs of its threads at once, where they have an axis like this:
/// neighbouring elements in registers (`joined`), then all lanes, then the first bits of the warp
/// number, then registers again (`high`). A thread has one run for each of `groups` values of the
/// upper registers.
struct RunsOfThreads {
  unsigned joined = 0, high = 0; ///< bits of the register number
  int64_t groups = 1;            ///< values of `high`
  int64_t warps = 1;             ///< that have a row
  int64_t rows = 1;              ///< recurrences that a thread takes part in
};

/// Nothing if threads have the axis in another way, or if lanes and warps are joined as fast one
/// bit after the other.
std::optional<RunsOfThreads> runsOfThreads(RecurrenceOp recurrence, FuncOp function);

/// Bytes that a block needs to exchange the pairs of decay and element of its warps.
int64_t recurrenceBytes(RecurrenceOp recurrence, FuncOp function);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPURECURRENCEOPS_H
