//===- Shrink.h - the smallest program that still fails --------*- C++ -*-===//
#ifndef TK_TESTS_FUZZ_SHRINK_H
#define TK_TESTS_FUZZ_SHRINK_H

#include "tests/fuzz/Program.h"

#include <functional>

namespace tk::fuzz {

/// Greedily applies the first cut after which `fails` still holds, until none is left or `attempts`
/// calls were made.
Program shrink(const Program &program, const std::function<bool(const Program &)> &fails,
               int attempts);

} // namespace tk::fuzz

#endif // TK_TESTS_FUZZ_SHRINK_H
