//===- Fiber.h - threads of a block as fibers --------------------*- C++ -*-===//
//
// Stacks that one thread of the process switches between. x86-64, System V.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_EMU_FIBER_H
#define TK_COMPILER_CODEGEN_EMU_FIBER_H

#include <cstddef>

namespace tk::emu {

/// A suspended computation: where its registers are saved on its stack.
struct Context {
  void *stackPointer = nullptr;
  /// What AddressSanitizer must know of the stack, in builds with it: its lowest address and its
  /// size in bytes (those of the process's own stack where the first is null), and what it keeps of
  /// the frames on it.
  const void *bottom = nullptr;
  size_t bytes = 0;
  void *frames = nullptr;
};

/// Suspends the running computation into `from` and resumes `to`.
void switchContext(Context &from, const Context &to);

/// Ends the running computation and resumes `to`.
[[noreturn]] void leaveFor(const Context &to);

/// Memory for `count` stacks, with a page that faults below each. Throws std::bad_alloc.
class Stacks {
public:
  explicit Stacks(size_t count);
  ~Stacks();
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;

  /// A computation on stack `index` that begins with entry(argument), which must not return.
  Context prepare(size_t index, void (*entry)(void *), void *argument);

private:
  char *memory;
  size_t bytes;
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_FIBER_H
