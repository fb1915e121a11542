//===- TransposedLoads.h - loads whose tile is transposed -------*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_TRANSPOSEDLOADS_H
#define TK_PASSES_LAYOUT_TRANSPOSEDLOADS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// Turns a transposition of a loaded tile into a load of the transposed tile: which element lies
/// where is then a matter of layout, and the tile can be copied to shared memory as it stands.
void foldTransposedLoads(gpu::FuncOp function);

} // namespace tk

#endif // TK_PASSES_LAYOUT_TRANSPOSEDLOADS_H
