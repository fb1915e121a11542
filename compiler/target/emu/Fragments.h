//===- Fragments.h - what matrix instructions compute ------------*- C++ -*-===//
//
// Fragment layouts as in the PTX ISA, "Matrix fragments for mma.m16n8". Lane l is 4 g + t.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_TARGET_EMU_FRAGMENTS_H
#define TK_COMPILER_TARGET_EMU_FRAGMENTS_H

#include "runtime/device/emu/engine.h"

namespace tk::emu {

inline constexpr unsigned warpSize = 32;

/// c += a b, a [16, k], b [k, 8], where a row of k takes 32 bytes. By lane: pointers to the
/// registers, 16 bytes of a, 8 of b, 16 of c.
void multiplyFragments(Products type, void *const *c, const void *const *a, const void *const *b);

/// Distributes `words` matrices of 8 rows of 16 bytes to the lanes' registers `y`: `rows[m][r]` is
/// row r of matrix m.
void distributeRows(void *const *y, const unsigned char (*rows)[8][16], int words, bool transposed);

} // namespace tk::emu

#endif // TK_COMPILER_TARGET_EMU_FRAGMENTS_H
