// From a file or a text to the tree of a whole program, imports included.

#ifndef TK_FRONTEND_PROGRAM_H
#define TK_FRONTEND_PROGRAM_H

#include "frontend/AST.h"
#include "frontend/Diagnostics.h"

#include <map>
#include <memory>
#include <string>

namespace tk {

/// Bounds that keep compiling of untrusted text within bounds of time and memory.
struct Limits {
  std::uint32_t sourceBytes = 1u << 20; ///< of each file
  std::uint32_t nesting = 256;          ///< brackets, and operators that nest to the right
  std::uint32_t depth = 1024;           ///< height of an expression's tree
  std::uint32_t operations = 10000;     ///< expressions in one item
  std::uint32_t files = 64;             ///< in one program
};

struct ParseOptions {
  bool requireKernel = true;  ///< report a main file without a kernel
  bool followImports = true;  ///< off: imports stay unresolved (the formatter, an editor)
  FileId schedules = kNoFile; ///< a file of schedule blocks that replace the program's
  /// Texts that stand for the files of these canonical paths: an editor's unsaved buffers.
  const std::map<std::string, std::string> *open = nullptr;
  Limits limits = {};
};

/// Parses the file `main` and what it imports, relative to each importing file. Never null, and the
/// tree is complete enough to walk even where errors were reported to `diags`; it must not be
/// analysed further then.
std::unique_ptr<ast::Program> parseProgram(SourceManager &sources, FileId main, Diagnostics &diags,
                                           const ParseOptions &options = {});

} // namespace tk

#endif // TK_FRONTEND_PROGRAM_H
