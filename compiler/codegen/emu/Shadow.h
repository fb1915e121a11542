//===- Shadow.h - who touched what -------------------------------*- C++ -*-===//
//
// Every cell of memory (a byte of shared memory, an element of a global buffer) remembers its last
// write, and up to two reads and two atomic additions since. Two accesses race if neither is
// ordered before the other and one of them writes, unless both are atomic additions.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_EMU_SHADOW_H
#define TK_COMPILER_CODEGEN_EMU_SHADOW_H

#include "compiler/codegen/emu/Order.h"

namespace tk::emu {

struct Cell {
  Access write, reads[2], additions[2];

  /// Notes a read; returns the write that it races with, or nullptr.
  const Access *read(const Order &order, const Access &mine, const Viewer &viewer) {
    for (const Access *other : {&write, &additions[0], &additions[1]})
      if (*other && !order.before(*other, viewer))
        return other;
    note(reads, order, mine, viewer);
    return nullptr;
  }
  /// Notes a write; returns what it races with, or nullptr.
  const Access *overwrite(const Order &order, const Access &mine, const Viewer &viewer) {
    for (const Access *other : {&write, &reads[0], &reads[1], &additions[0], &additions[1]})
      if (*other && !order.before(*other, viewer))
        return other;
    write = mine;
    reads[0] = reads[1] = additions[0] = additions[1] = Access();
    return nullptr;
  }
  /// Notes an atomic addition; returns what it races with, or nullptr.
  const Access *add(const Order &order, const Access &mine, const Viewer &viewer) {
    for (const Access *other : {&write, &reads[0], &reads[1]})
      if (*other && !order.before(*other, viewer))
        return other;
    note(additions, order, mine, viewer);
    return nullptr;
  }
  /// Does `other`, which an access races with, read?
  bool isRead(const Access *other) const { return other == &reads[0] || other == &reads[1]; }

private:
  /// In the place of an access that `mine` comes after, else in the second one.
  static void note(Access (&last)[2], const Order &order, const Access &mine,
                   const Viewer &viewer) {
    (!last[0] || order.before(last[0], viewer) ? last[0] : last[1]) = mine;
  }
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_SHADOW_H
