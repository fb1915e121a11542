//===- Fiber.cpp - threads of a block as fibers ---------------------------===//
#include "compiler/codegen/emu/Fiber.h"

#include <cstdint>
#include <new>

#include <sys/mman.h>

#if __has_feature(address_sanitizer)
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#endif

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

//===----------------------------------------------------------------------===//
// What AddressSanitizer must be told of stacks (sanitizer/common_interface_defs.h)
//===----------------------------------------------------------------------===//

#if __has_feature(address_sanitizer)

/// The stack of the process's running thread.
static Context ownStack() {
  Context own;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void *bottom = nullptr;
    pthread_attr_getstack(&attributes, &bottom, &own.bytes);
    own.bottom = bottom;
    pthread_attr_destroy(&attributes);
  }
  return own;
}

/// Before a switch. What is kept of the frames of a computation that ends (`frames` null) is freed.
static void departTo(const Context &to, void **frames) {
  thread_local const Context own = ownStack();
  const Context &stack = to.bottom ? to : own;
  __sanitizer_start_switch_fiber(frames, stack.bottom, stack.bytes);
}

/// After a switch, on the new stack.
static void arrive(void *frames) { __sanitizer_finish_switch_fiber(frames, nullptr, nullptr); }

#else

static void departTo(const Context &, void **) {}
static void arrive(void *) {}

#endif

//===----------------------------------------------------------------------===//
// Switches and stacks
//===----------------------------------------------------------------------===//

void switchContext(Context &from, const Context &to) {
  departTo(to, &from.frames);
  tk_emu_switch(&from.stackPointer, to.stackPointer);
  arrive(from.frames);
}

// AddressSanitizer frees the frame that it would keep of this function before the switch.
__attribute__((no_sanitize("address"))) void leaveFor(const Context &to) {
  departTo(to, nullptr);
  void *gone = nullptr;
  tk_emu_switch(&gone, to.stackPointer);
  __builtin_unreachable();
}

namespace {
/// What a computation begins with. It stands at the top of its stack.
struct Start {
  void (*entry)(void *);
  void *argument;
};
} // namespace

static void begin(void *start) {
  arrive(nullptr);
  auto *first = static_cast<Start *>(start);
  first->entry(first->argument);
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
  char *bottom = memory + index * stackBytes;
  auto *start = reinterpret_cast<Start *>(bottom + stackBytes) - 1;
  *start = {entry, argument};
  // As tk_emu_switch leaves it: six registers, then where to return to. tk_emu_begin finds the
  // stack aligned to 16 bytes.
  auto *top = reinterpret_cast<uint64_t *>(start);
  *--top = reinterpret_cast<uint64_t>(&tk_emu_begin);
  *--top = 0;                                  // rbp
  *--top = 0;                                  // rbx
  *--top = reinterpret_cast<uint64_t>(start);  // r12
  *--top = reinterpret_cast<uint64_t>(&begin); // r13
  *--top = 0;                                  // r14
  *--top = 0;                                  // r15
  Context context;
  context.stackPointer = top;
  context.bottom = bottom + guardBytes;
  context.bytes = stackBytes - guardBytes;
  return context;
}

} // namespace tk::emu
