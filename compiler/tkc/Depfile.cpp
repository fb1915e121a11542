//===- Depfile.cpp - what a build depends on, as a rule for make ----------===//
#include "compiler/tkc/Commands.h"
#include "runtime/Files.h"

#include <filesystem>

namespace tk::tkc {

/// A path as makefiles have it, absolute, so that it is the same from every folder; nullopt where
/// make has no way to write it.
static std::optional<std::string> escaped(const std::string &path) {
  std::string text;
  size_t backslashes = 0; // that stand before c
  for (char c : std::filesystem::absolute(path).lexically_normal().string()) {
    if (c == '\n' || c == '\r')
      return std::nullopt;
    // Backslashes are literal but before what they escape.
    if (c == ' ' || c == '\t')
      text.append(backslashes + 1, '\\');
    if (c == '#')
      text += '\\';
    if (c == '$')
      text += '$';
    text += c;
    backslashes = c == '\\' ? backslashes + 1 : 0;
  }
  return text;
}

Status writeDepfile(const std::string &path, const std::string &made,
                    const CompiledSource &source) {
  std::vector<std::string> files = {made};
  for (const std::string &file : source.fileNames())
    files.push_back(file);
  std::string rule;
  for (const std::string &file : files) {
    std::optional<std::string> text = escaped(file);
    if (!text)
      return Error(ErrorCode::invalid_argument,
                   "--depfile cannot name a file with a line break: '" + file + "'");
    rule += rule.empty() ? *text + ":" : " \\\n  " + *text;
  }
  return detail::write_file(path, rule + "\n");
}

} // namespace tk::tkc
