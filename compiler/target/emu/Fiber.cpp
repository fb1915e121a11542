//===- Fiber.cpp - threads of a block as fibers ---------------------------===//
#include "compiler/target/emu/Fiber.h"

#include <cstdint>
#include <new>

#include <sys/mman.h>

#ifndef __x86_64__
#error "the emulator's context switch is written for x86-64"
#endif

// Saves what a called function must preserve, on the stack that is being left.
asm(R"(
.text
.p2align 4
.hidden tk_emu_switch
.globl tk_emu_switch
.type tk_emu_switch, @function
tk_emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tk_emu_switch, .-tk_emu_switch
.p2align 4
.hidden tk_emu_begin
.globl tk_emu_begin
.type tk_emu_begin, @function
tk_emu_begin:
  movq %r12, %rdi
  xorl %ebp, %ebp
  callq *%r13
  ud2
.size tk_emu_begin, .-tk_emu_begin
)");

extern "C" void tk_emu_switch(void **from, void *to);
extern "C" void tk_emu_begin();

namespace tk::emu {

static constexpr size_t stackBytes = 256 << 10, guardBytes = 4096;

void switchContext(Context &from, const Context &to) {
  tk_emu_switch(&from.stackPointer, to.stackPointer);
}

Stacks::Stacks(size_t count) : bytes(count * stackBytes) {
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw std::bad_alloc();
  memory = static_cast<char *>(mapped);
  for (size_t i = 0; i < count; ++i)
    mprotect(memory + i * stackBytes, guardBytes, PROT_NONE);
}

Stacks::~Stacks() { munmap(memory, bytes); }

Context Stacks::prepare(size_t index, void (*entry)(void *), void *argument) {
  // As tk_emu_switch leaves it: six registers, then where to return to. tk_emu_begin finds the
  // stack aligned to 16 bytes.
  auto *top = reinterpret_cast<uint64_t *>(memory + (index + 1) * stackBytes);
  *--top = 0;
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(&tk_emu_begin);
  *--top = 0;                                    // rbp
  *--top = 0;                                    // rbx
  *--top = reinterpret_cast<uint64_t>(argument); // r12
  *--top = reinterpret_cast<uint64_t>(entry);    // r13
  *--top = 0;                                    // r14
  *--top = 0;                                    // r15
  return {top};
}

} // namespace tk::emu
