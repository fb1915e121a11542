//===- UniteLoads.h - one load for what is read in bounds and chosen -*- C++ -*-===//
#ifndef TK_PASSES_TILING_UNITELOADS_H
#define TK_PASSES_TILING_UNITELOADS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// Lets selections between a loaded element and a constant choose from a load that is masked by the
/// same condition, where there is one; returns how many do.
unsigned uniteLoads(gpu::FuncOp function);

} // namespace tk

#endif // TK_PASSES_TILING_UNITELOADS_H
