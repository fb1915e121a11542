//===- FoldScales.h - positive factors of scores ----------------*- C++ -*-===//
#ifndef TK_PASSES_NUMERICS_FOLDSCALES_H
#define TK_PASSES_NUMERICS_FOLDSCALES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// See FoldScales.cpp. To be called once the weights that may be approximate are marked.
void foldScales(KernelOp kernel, ComputeOp compute);

/// See FoldPowers.cpp. To be called after foldScales.
void foldPowers(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_NUMERICS_FOLDSCALES_H
