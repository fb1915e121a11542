//===- WidenIndices.h - indices as wide integers ----------------*- C++ -*-===//
#ifndef TK_PASSES_NUMERICS_WIDENINDICES_H
#define TK_PASSES_NUMERICS_WIDENINDICES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// See WidenIndices.cpp.
void widenIndices(KernelOp kernel, ComputeOp compute);

/// Do all indices that a statement compares, reads at or counts to fit 32 bits, as far as sizes are
/// known?
bool fitIndices(KernelOp kernel, ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_NUMERICS_WIDENINDICES_H
