//===- ScheduleEntries.h - the schedule block of a kernel -------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_SCHEDULEENTRIES_H
#define TK_PASSES_ANALYSIS_SCHEDULEENTRIES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// The entries of the schedule block that applies to the kernel, or null.
mlir::DictionaryAttr findScheduleBlock(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_SCHEDULEENTRIES_H
