//===- MemoryLimit.h - memory that a trial may take -------------*- C++ -*-===//
#ifndef TK_TESTS_FUZZ_MEMORYLIMIT_H
#define TK_TESTS_FUZZ_MEMORYLIMIT_H

#include <cstddef>
#include <sys/resource.h>

namespace tk::fuzz {

/// Lets the process allocate no more than that, so that a flood fails and does not take the machine
/// with it. Sanitizers reserve terabytes of addresses: under them there is no limit.
inline void limitMemory([[maybe_unused]] size_t bytes) {
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
  rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
}

} // namespace tk::fuzz

#endif // TK_TESTS_FUZZ_MEMORYLIMIT_H
