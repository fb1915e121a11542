//===- Shadow.h - who touched what -------------------------------*- C++ -*-===//
//
// Every cell of memory (a byte of shared memory, an element of a global buffer) remembers its last
// write and up to two reads since. Two accesses race if neither is ordered before the other and
// one of them writes.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_EMU_SHADOW_H
#define TK_COMPILER_CODEGEN_EMU_SHADOW_H

#include "compiler/codegen/emu/Order.h"

namespace tk::emu {

struct Cell {
  Access write, reads[2];

  /// Notes a read; returns the write that it races with, or nullptr.
  const Access *read(const Order &order, const Access &mine, const Viewer &viewer) {
    if (write && !order.before(write, viewer))
      return &write;
    // The place of a read that this one comes after, else the second one.
    Access &slot = !reads[0] || order.before(reads[0], viewer) ? reads[0] : reads[1];
    slot = mine;
    return nullptr;
  }
  /// Notes a write; returns what it races with, or nullptr.
  const Access *overwrite(const Order &order, const Access &mine, const Viewer &viewer) {
    for (const Access *other : {&write, &reads[0], &reads[1]})
      if (*other && !order.before(*other, viewer))
        return other;
    write = mine;
    reads[0] = reads[1] = Access();
    return nullptr;
  }
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_SHADOW_H
