//===- ShareRandomBlocks.h - numbers of one Philox block --------*- C++ -*-===//
#ifndef TK_PASSES_MEMORY_SHARERANDOMBLOCKS_H
#define TK_PASSES_MEMORY_SHARERANDOMBLOCKS_H

#include "llvm/ADT/StringRef.h"

namespace tk {

/// On a tile of random numbers: so many consecutive registers, 2 or 4, hold numbers of one block.
inline constexpr llvm::StringLiteral neighboursAttrName = "tkgpu.neighbours";

/// On such a tile that is only compared with limits, and on the comparisons: it holds the words
/// that are drawn, and they are compared as integers.
inline constexpr llvm::StringLiteral wordsAttrName = "tkgpu.words";

} // namespace tk

#endif // TK_PASSES_MEMORY_SHARERANDOMBLOCKS_H
