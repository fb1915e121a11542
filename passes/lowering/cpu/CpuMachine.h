//===- CpuMachine.h - what the CPU lowering knows of the machine ---*- C++ -*-===//
#ifndef TK_PASSES_LOWERING_CPU_CPUMACHINE_H
#define TK_PASSES_LOWERING_CPU_CPUMACHINE_H

#include <cstdint>

namespace tk::cpu {

/// Sizes that shape the emitted loops. The defaults are for AVX-512 with 1 MiB of L2 a core.
struct CpuMachine {
  int64_t vectorBytes = 64;    ///< of a vector register
  int64_t registerRows = 8;    ///< rows of a matrix product's register tile
  int64_t registerVectors = 2; ///< vectors in a row of it
  int64_t rowTile = 128;       ///< rows of a matrix product in one tile
  int64_t columnTile = 512;    ///< columns; both multiples of the register tile
  int64_t depthTile = 256;     ///< terms of a sum of products taken at once
  int64_t keyTile = 256;       ///< chunk of a reduction around a matrix product
  int64_t vectorTile = 2048;   ///< chunk of the innermost index of anything else
  int64_t onlineTile = 1024;   ///< chunk of an online reduction without matrix products

  static CpuMachine avx512() { return {}; }
  static CpuMachine avx2() {
    CpuMachine machine;
    machine.vectorBytes = 32;
    machine.registerRows = 4;
    return machine;
  }
};

} // namespace tk::cpu

#endif // TK_PASSES_LOWERING_CPU_CPUMACHINE_H
