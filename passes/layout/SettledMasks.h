//===- SettledMasks.h - registers that lie before all ends ------*- C++ -*-===//
//
// A tile may reach beyond the end of a row, and so each of its elements is compared with the row's
// length. But only the last registers of a thread can lie behind the end, as lengths have a lower
// bound, too. A mask that holds in some registers of all threads costs no instruction there, nor
// does what depends on it.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_SETTLEDMASKS_H
#define TK_PASSES_LAYOUT_SETTLEDMASKS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// On a comparison of tiles: bit r is set where it holds in register r of every thread.
inline constexpr llvm::StringLiteral settledAttrName = "tkgpu.settled";

/// Has comparisons say in which registers they hold whatever the sizes are. Returns how many do.
unsigned settleMasks(gpu::FuncOp function);

} // namespace tk

#endif // TK_PASSES_LAYOUT_SETTLEDMASKS_H
