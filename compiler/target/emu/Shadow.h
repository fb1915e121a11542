//===- Shadow.h - who touched what, in which order ---------------*- C++ -*-===//
//
// Every cell of memory (a byte of shared memory, an element of a global buffer) remembers its last
// write and up to two reads since. Two accesses race if neither is ordered before the other and
// one of them writes.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_TARGET_EMU_SHADOW_H
#define TK_COMPILER_TARGET_EMU_SHADOW_H

#include <cstdint>
#include <vector>

namespace tk::emu {

struct Access {
  uint32_t stamp = 0; ///< 0: there was none
  uint16_t thread = 0;
  uint16_t site = 0;
  explicit operator bool() const { return stamp != 0; }
};

/// The order among the accesses of one launch. Blocks run one after the other, but nothing orders
/// them; within a block, barriers do. Stamps only grow.
class Order {
public:
  void beginBlock() { base = start = ++counter, starts.push_back(start); }
  /// All threads of the block have met: what they did before is ordered before what comes.
  void meet() { base = ++counter; }

  Access access(unsigned thread, uint16_t site) const {
    return {base, static_cast<uint16_t>(thread), site};
  }
  /// Whether an access is ordered before what `thread` of the current block does now.
  bool before(const Access &access, unsigned thread) const {
    return access.stamp >= start && (access.stamp < base || access.thread == thread);
  }
  /// Which of the launch's blocks, counted as they ran, made an access.
  unsigned blockOf(const Access &access) const;
  bool inCurrentBlock(const Access &access) const { return access.stamp >= start; }

private:
  uint32_t counter = 0, start = 0, base = 0;
  std::vector<uint32_t> starts;
};

struct Cell {
  Access write, reads[2];

  /// Notes a read; returns the write that it races with, or nullptr.
  const Access *read(const Order &order, const Access &mine) {
    if (write && !order.before(write, mine.thread))
      return &write;
    // The place of a read that this one comes after, else the second one.
    Access &slot = !reads[0] || order.before(reads[0], mine.thread) ? reads[0] : reads[1];
    slot = mine;
    return nullptr;
  }
  /// Notes a write; returns what it races with, or nullptr.
  const Access *overwrite(const Order &order, const Access &mine) {
    for (const Access *other : {&write, &reads[0], &reads[1]})
      if (*other && !order.before(*other, mine.thread))
        return other;
    write = mine;
    reads[0] = reads[1] = Access();
    return nullptr;
  }
};

} // namespace tk::emu

#endif // TK_COMPILER_TARGET_EMU_SHADOW_H
