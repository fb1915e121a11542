//===- SeparateRows.h - what rows of scores have in common ------*- C++ -*-===//
#ifndef TK_PASSES_NUMERICS_SEPARATEROWS_H
#define TK_PASSES_NUMERICS_SEPARATEROWS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// See SeparateRows.cpp. To be called on a function of tiles before they have layouts.
void separateRows(gpu::FuncOp func);

} // namespace tk

#endif // TK_PASSES_NUMERICS_SEPARATEROWS_H
