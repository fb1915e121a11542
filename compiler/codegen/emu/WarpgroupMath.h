//===- WarpgroupMath.h - what products of a warpgroup compute ----*- C++ -*-===//
//
// Operands in shared memory, as in the PTX ISA, "Asynchronous warpgroup-level matrix shared memory
// layout": made of chunks of 16 bytes, eight of which, one a row, are a core matrix.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_EMU_WARPGROUPMATH_H
#define TK_COMPILER_CODEGEN_EMU_WARPGROUPMATH_H

#include "runtime/device/emu/engine.h"

#include <cstdint>
#include <vector>

namespace tk::emu {

struct MatrixDescriptor {
  int64_t address = 0, leading = 0, stride = 0; ///< bytes
  unsigned swizzle = 0; ///< as tensor maps count: 0 none, 1 32 B, 2 64 B, 3 128 B
  unsigned baseOffset = 0;

  static MatrixDescriptor decode(uint64_t bits);
};

struct ProductShape {
  Products type = Products::bf16;
  int n = 0;
  bool transposeA = false, transposeB = false;
  bool aInRegisters = false;

  static constexpr int rows = 64;
  int depth() const; ///< elements of k
  bool operator==(const ProductShape &) const = default;
};

enum class Side { a, b };

/// Offsets in shared memory of the chunks of 16 bytes of an operand: 64 or n rows. A chunk holds 16
/// bytes of k of one row, or where the operand is transposed, 8 rows at one k.
std::vector<int64_t> operandChunks(const ProductShape &shape, Side side,
                                   const MatrixDescriptor &descriptor);
/// The operand's values [rows][depth] from the bytes of those chunks, one after the other.
std::vector<float> operandValues(const ProductShape &shape, Side side, const unsigned char *chunks);
/// A from the registers of the warpgroup's threads, 16 bytes each.
std::vector<float> registerValues(const ProductShape &shape, const void *const *registers);

/// acc = a b + (accumulate ? acc : 0), where acc[t] are the registers of thread t: n / 2 of 4
/// bytes. Summed in f64 and rounded once.
void multiplyWarpgroup(const ProductShape &shape, const std::vector<float> &a,
                       const std::vector<float> &b, bool accumulate, unsigned char *const *acc);

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_WARPGROUPMATH_H
