//===- TkGpuRepeats.h - stored elements for several of a tile ---*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUREPEATS_H
#define TK_DIALECTS_TKGPU_TKGPUREPEATS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk::gpu {

/// How many neighbours along each axis of the tile that `load` reads one stored element stands for,
/// as a word of packed numbers does; empty if each stands for itself.
llvm::SmallVector<int64_t> repeatsOf(LocalLoadOp load);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPUREPEATS_H
