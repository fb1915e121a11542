//===- Comments.h - comments in CUDA text ------------------------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_CUDA_COMMENTS_H
#define TK_COMPILER_CODEGEN_CUDA_COMMENTS_H

#include <algorithm>
#include <string>
#include <string_view>

namespace tk::cuda {

/// A text as a line comment can hold it: printable ASCII without backslashes, and not too long.
std::string commentText(std::string_view text, size_t longest = 100);

/// Line comments that hold all of a text, which is broken behind commas.
std::string commentLines(std::string_view text);

/// Emitted text with empty lines for those that are comments, so that a fault's line is the line of
/// the text. Compilers are given this text: what they make of it, and its key in the cache, do not
/// depend on what comments say.
inline std::string withoutComments(std::string_view text) {
  std::string code;
  code.reserve(text.size());
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    const size_t first = line.find_first_not_of(' ');
    if (first == line.npos || line.substr(first, 2) != "//")
      code += line;
    else
      code += '\n';
    text.remove_prefix(line.size());
  }
  return code;
}

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_COMMENTS_H
