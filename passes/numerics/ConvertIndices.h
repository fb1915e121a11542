//===- ConvertIndices.h - indices as floats ---------------------*- C++ -*-===//
#ifndef TK_PASSES_NUMERICS_CONVERTINDICES_H
#define TK_PASSES_NUMERICS_CONVERTINDICES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// See ConvertIndices.cpp.
void convertIndices(KernelOp kernel, ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_NUMERICS_CONVERTINDICES_H
