//===- KeepReads.h - loads whose lines stay in a cache ----------*- C++ -*-===//
#ifndef TK_PASSES_MEMORY_KEEPREADS_H
#define TK_PASSES_MEMORY_KEEPREADS_H

#include "llvm/ADT/StringRef.h"

namespace tk::gpu {

/// On a load: from so many blocks of the launch on, its lines should stay in the second-level
/// cache.
inline constexpr llvm::StringLiteral keptFromAttrName = "tkgpu.kept_from";

} // namespace tk::gpu

#endif // TK_PASSES_MEMORY_KEEPREADS_H
