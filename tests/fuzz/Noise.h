//===- Noise.h - damaged programs ------------------------------*- C++ -*-===//
#ifndef TK_TESTS_FUZZ_NOISE_H
#define TK_TESTS_FUZZ_NOISE_H

#include <cstdint>
#include <string>

namespace tk::fuzz {

/// A few random edits: characters, tokens and whole lines are dropped, doubled, swapped or
/// replaced.
std::string damaged(std::string text, uint64_t seed);

} // namespace tk::fuzz

#endif // TK_TESTS_FUZZ_NOISE_H
