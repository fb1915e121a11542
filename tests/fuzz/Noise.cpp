//===- Noise.cpp - damaged programs ---------------------------------------===//
#include "tests/fuzz/Noise.h"

#include "tests/fuzz/Generating.h"

#include <cctype>

namespace tk::fuzz {

static bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The token at a position: a word, or one character.
static std::pair<size_t, size_t> tokenAt(const std::string &text, size_t at) {
  size_t begin = at, end = at + 1;
  if (!isWord(text[at]))
    return {begin, end};
  while (begin > 0 && isWord(text[begin - 1]))
    --begin;
  while (end < text.size() && isWord(text[end]))
    ++end;
  return {begin, end};
}

std::string damaged(std::string text, uint64_t seed) {
  static constexpr const char *pieces[] = {"(",
                                           ")",
                                           "[",
                                           "]",
                                           "{",
                                           "}",
                                           ",",
                                           ":",
                                           ";",
                                           "\n",
                                           " in ",
                                           "0..",
                                           "let ",
                                           "sum",
                                           "max[",
                                           "pad(",
                                           "if ",
                                           "then ",
                                           "else",
                                           "-inf",
                                           "nan",
                                           "softmax",
                                           "cumsum",
                                           "argmax",
                                           "f32",
                                           "bf16",
                                           "i64",
                                           "u8",
                                           "bool",
                                           "f8e4m3",
                                           "M",
                                           "N",
                                           "i0",
                                           "i1",
                                           "/ 0",
                                           "% 0",
                                           "* 9223372036854775807",
                                           "1e999",
                                           "inout ",
                                           "strided ",
                                           "where M > N",
                                           "@deterministic ",
                                           "@batch_invariant ",
                                           "; exact",
                                           "fn f(x) = x\n"};
  Random random(seed ^ 0x5EED);
  for (int edits = 1 + random.below(3); edits > 0 && !text.empty(); --edits) {
    size_t at = random.next() % text.size(), other = random.next() % text.size();
    auto [begin, end] = tokenAt(text, at);
    auto [from, to] = tokenAt(text, other);
    std::string taken = text.substr(from, to - from);
    switch (random.below(6)) {
    case 0:
      text.erase(begin, end - begin);
      break;
    case 1:
      text.replace(begin, end - begin, taken);
      break;
    case 2:
      text.insert(begin, taken);
      break;
    case 3:
      text.insert(begin, random.of(pieces));
      break;
    case 4:
      text.replace(begin, end - begin, random.of(pieces));
      break;
    default:
      text[at] = static_cast<char>(random.below(256));
      break;
    }
  }
  return text;
}

} // namespace tk::fuzz
