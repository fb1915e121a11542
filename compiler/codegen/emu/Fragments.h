//===- Fragments.h - what matrix instructions compute ------------*- C++ -*-===//
//
// Fragment layouts as in the PTX ISA, "Matrix fragments for mma.m16n8". Lane l is 4 g + t.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_EMU_FRAGMENTS_H
#define TK_COMPILER_CODEGEN_EMU_FRAGMENTS_H

#include "runtime/device/emu/engine.h"

namespace tk::emu {

inline constexpr unsigned warpSize = 32;

enum class Element { bf16, f16, tf32, i8, e4m3, e5m2 };
Element elementOfA(Products type);
Element elementOfB(Products type);
int sizeOf(Element type);
float decode(Element type, const unsigned char *from);
/// To nearest, halves away from zero.
float roundToTf32(float x);

/// c + the sum of a[i] b[i]: of 8-bit floats in the 14 bits that the hardware keeps, else in f64
/// and rounded once to nearest.
float dot(Products type, const float *a, const float *b, int k, float c);
int dotIntegers(const float *a, const float *b, int k, int c);

/// c += a b, a [16, k], b [k, 8], where a row of k takes 32 bytes. By lane: pointers to the
/// registers, 16 bytes of a, 8 of b, 16 of c.
void multiplyFragments(Products type, void *const *c, const void *const *a, const void *const *b);

/// The same of f64: 2, 1 and 4 elements by lane.
void multiplyWide(void *const *c, const void *const *a, const void *const *b);

/// Distributes `words` matrices of 8 rows of 16 bytes to the lanes' registers `y`: `rows[m][r]` is
/// row r of matrix m.
void distributeRows(void *const *y, const unsigned char (*rows)[8][16], int words, bool transposed);

/// The reverse: the rows from the lanes' registers `x`.
void collectRows(unsigned char (*rows)[8][16], const void *const *x, int words, bool transposed);

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_FRAGMENTS_H
